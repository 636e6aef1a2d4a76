"""The reference's own templates: each is valid here, or the one key is named that waits for a package."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from aiperf.errors import AiperfError
from aiperf.parts.plans import asked
from aiperf.registry.registry import Registry

REFERENCE = os.environ.get("AIPERF_REFERENCE", "")
pytestmark = pytest.mark.skipif(not REFERENCE, reason="AIPERF_REFERENCE names no reference; make differential installs one")
TRACE = "".join(f'{{"timestamp": {n}, "input_length": 30, "output_length": 4, "hash_ids": [{n}]}}\n' for n in range(3))
WAITING = {
    "gpu_telemetry": "telemetry of GPUs", "long_context": "telemetry of GPUs", "time_based_soak": "telemetry of GPUs",
    "sweep_with_plot": "pictures at the end of a run",
}  # fmt: skip
"""What the message of a template says that can't run yet."""


def test_each_template_is_valid_or_names_the_key_that_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for folder in ("data", "datasets/speed-bench"):
        (tmp_path / folder).mkdir(parents=True)
    for name in ("precise_schedule", "production_trace"):
        (tmp_path / "data" / f"{name}.jsonl").write_text(TRACE)
    row = {"question_id": "x" * 32, "category": "coding", "messages": [{"role": "user", "content": "Say a."}]}
    (tmp_path / "datasets" / "speed-bench" / "qualitative.jsonl").write_text(json.dumps(row) + "\n")
    listing = Path(REFERENCE).parent / "python"
    where = "import aiperf.config.templates as t; print(list(t.__path__)[0])"
    done = subprocess.run([listing, "-c", where], capture_output=True, text=True, check=True, timeout=600)
    files = sorted(Path(done.stdout.strip()).glob("*.yaml"))
    assert len(files) == 27
    registry, refused = Registry.discover(), {}
    for file in files:
        try:
            asked(registry, ["--config", str(file)])
        except AiperfError as error:
            refused[file.stem] = str(error)
    assert refused.keys() == WAITING.keys()
    for name, sentence in WAITING.items():
        assert sentence in refused[name], refused[name]
