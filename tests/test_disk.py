"""A disk that fills in the middle of a run.  A limit on file sizes stands in for it: writes beyond it fail the same way."""

from __future__ import annotations

import json
import resource
import signal
import subprocess
import sys
from pathlib import Path

from aiperf_command_simulate.testing import running

LIMIT = 120_000


def limited() -> None:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (LIMIT, LIMIT))


def test_a_full_disk_stops_the_load_is_said_and_leaves_a_partial_report(tmp_path: Path) -> None:
    with running(first_token_ms=5, decode_ms=1, decode_batch_us=0, truth_log=100) as simulator:
        done = subprocess.run(
            [
                sys.executable, "-m", "aiperf", "profile", "--model", "sim", "--url", simulator.url, "--streaming",
                "--tokenizer", "builtin", "--concurrency", "4", "--benchmark-duration", "60", "--isl", "10", "--osl", "20",
                "--num-dataset-entries", "5", "--export-level", "summary", "--artifact-dir", str(tmp_path), "--ui", "none",
            ],
            preexec_fn=limited, capture_output=True, text=True, timeout=50, check=False,
        )  # fmt: skip
        assert simulator.summary()["in_flight"] == 0
    assert done.returncode == 1
    assert "Traceback" not in done.stderr, done.stderr
    assert "can't be written: File too large" in done.stderr
    results = json.loads((tmp_path / "profile_export_aiperf.json").read_text())
    assert results["is_complete"] is False
    assert results["request_count"]["avg"] > 0
