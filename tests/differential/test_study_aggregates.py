"""A sweep that the reference makes now: what its runs have in common is what it wrote, and what is made here of its runs."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from aiperf.results import open_study
from aiperf_command_simulate.testing import Simulator
from aiperf_tokenizer_builtin.vocabulary import ranks

REFERENCE = os.environ.get("AIPERF_REFERENCE", "")
pytestmark = [
    pytest.mark.skipif(not REFERENCE, reason="AIPERF_REFERENCE names no reference; make differential installs one"),
    pytest.mark.long,
]
VOCABULARY = "https://openaipublic.blob.core.windows.net/encodings/o200k_base.tiktoken"
"""The address under whose hash tiktoken looks for the vocabulary in its cache."""
FIELDS = ("mean", "std", "min", "max", "cv", "se", "ci_low", "ci_high")


def vocabulary(cache: Path) -> None:
    cache.mkdir()
    content = b"".join(base64.b64encode(token) + b" %d\n" % rank for token, rank in ranks().items())
    (cache / hashlib.sha1(VOCABULARY.encode()).hexdigest()).write_bytes(content)


def test_aggregates_of_its_runs_are_those_that_it_wrote(tmp_path: Path, simulator: Simulator) -> None:
    vocabulary(tmp_path / "tiktoken")
    done = subprocess.run(
        [REFERENCE, "profile", "--model", "m", "--url", simulator.url, "--streaming", "--tokenizer", "builtin", "--isl", "20",
         "--osl", "6", "--request-count", "6", "--concurrency", "1,2", "--num-profile-runs", "2", "--ui-type", "none",
         "--no-server-metrics", "--no-gpu-telemetry", "--artifact-dir", str(tmp_path / "out")],
        env={**os.environ, "TIKTOKEN_CACHE_DIR": str(tmp_path / "tiktoken")}, cwd=tmp_path, capture_output=True, text=True,
        timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
    study = open_study(tmp_path / "out")
    assert [(cell.parameters, len(cell.runs)) for cell in study.cells] == [({"concurrency": 1}, 2), ({"concurrency": 2}, 2)]
    for cell in study.cells:
        path = tmp_path / "out" / "aggregate" / cell.name / "profile_export_aiperf_aggregate.json"
        theirs: dict[str, Any] = json.loads(path.read_text())["metrics"]
        shared = theirs.keys() & cell.rows.keys()
        assert {"request_throughput_avg", "time_to_first_token_p99", "request_latency_avg"} <= shared
        for key in shared:
            row = theirs[key]
            scale = max(abs(row["min"]), abs(row["max"]), 1e-12)
            for field in FIELDS:
                ours = getattr(cell.rows[key], field)
                if row[field] is None:  # the file's word for an infinite share of a mean of 0
                    assert not math.isfinite(ours), (key, field)
                else:
                    assert ours == pytest.approx(row[field], rel=1e-9, abs=1e-9 * scale), (key, field)
