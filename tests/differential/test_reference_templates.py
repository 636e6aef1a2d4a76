"""The reference's own templates: each runs here, or the one key is named that waits for a package."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest
import yaml
from aiperf.errors import AiperfError
from aiperf.parts.plans import asked
from aiperf.registry.registry import Registry
from aiperf_command_simulate.testing import Simulator
from less import less
from program import Program

REFERENCE = os.environ.get("AIPERF_REFERENCE", "")
pytestmark = pytest.mark.skipif(not REFERENCE, reason="AIPERF_REFERENCE names no reference; make differential installs one")
TRACE = "".join(f'{{"timestamp": {n}, "input_length": 30, "output_length": 4, "hash_ids": [{n}]}}\n' for n in range(3))
SUBJECTS = "coding humanities math multilingual qa rag reasoning roleplay stem summarization writing"
WAITING = {
    "gpu_telemetry": "telemetry of GPUs", "long_context": "telemetry of GPUs", "time_based_soak": "telemetry of GPUs",
}  # fmt: skip
"""What the message of a template says that can't run yet."""


SMALLER = (
    (r"http://[\w.-]+:800\d", "{url}"),
    (r"(?<=stddev: )\d+", "2"),
    (r"(?<=rate: )\d+\.\d", "40"),
    (r"(?<=Ramp: )\d+\w*", "0.1"),
    (r"(?<=duration: )\$\{\w+:\w+\}", "1"),
    (r"(?<=median: )\d+", "200"),
    (r"^( *)dataset: sharegpt", r"\1dataset: sharegpt\n\1path: conversations.json"),
    (r"(?<=cooldownSeconds: )\S+", "0"),
    (r"(?<=_rate: )\d+", "40"),
    (r"(?<=_duration: )\d+", "4"),
    (r"(?<=[io]sl_target: )\d+", "20"),
    (r"(?<=base_concurrency: )\d+", "2"),
    (r"\[\d+(, \d+)+\]", "[2, 3]"),
)
"""Beside :data:`less.LESS`; ``{url}`` is that of the simulator."""


def templates(folder: Path) -> list[Path]:
    """The files, where the reference is installed; what they read is put into *folder*."""
    for name in ("data", "datasets/speed-bench"):
        (folder / name).mkdir(parents=True)
    for name in ("precise_schedule", "production_trace"):
        (folder / "data" / f"{name}.jsonl").write_text(TRACE)
    messages = [{"role": "user", "content": "Say a."}]
    rows = [{"question_id": f"{name:x<32}", "category": name, "messages": messages} for name in SUBJECTS.split()]
    path = folder / "datasets" / "speed-bench" / "qualitative.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    turns = [{"from": word, "value": f"Say {n}, and say why, at some length."} for n, word in enumerate(["human", "gpt"])]
    (folder / "conversations.json").write_text(json.dumps([{"id": str(n), "conversations": turns} for n in range(9)]))
    where = "import aiperf.config.templates as t; print(list(t.__path__)[0])"
    python = Path(REFERENCE).parent / "python"
    done = subprocess.run([python, "-c", where], capture_output=True, text=True, check=True, timeout=600)
    files = sorted(Path(done.stdout.strip()).glob("*.yaml"))
    assert len(files) == 27
    return files


def test_each_template_is_valid_or_names_the_key_that_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    registry, refused = Registry.discover(), {}
    for file in templates(tmp_path):
        try:
            asked(registry, ["--config", str(file)])
        except AiperfError as error:
            refused[file.stem] = str(error)
    assert refused.keys() == WAITING.keys()
    for name, sentence in WAITING.items():
        assert sentence in refused[name], refused[name]


@pytest.mark.long
def test_each_template_runs_but_for_the_key_that_waits(tmp_path: Path, simulator: Simulator) -> None:
    """With less of everything; of those that wait the key is taken out."""
    aiperf, wrong = Program(tmp_path, server_metrics=True), {}
    for file in templates(aiperf.folder):
        text = less(file.read_text())
        for pattern, smaller in SMALLER:
            text = re.sub(pattern, smaller.replace("{url}", simulator.url), text, flags=re.MULTILINE)
        content = yaml.safe_load(text)
        if file.stem in WAITING:
            content["benchmark"].pop("gpuTelemetry", None)
        (aiperf.folder / "run.yaml").write_text(yaml.safe_dump(content))
        words = ["--config", "run.yaml", "--tokenizer", "builtin", "--artifact-dir", f"out/{file.stem}", "--ui", "none"]
        done = aiperf("profile", *words)
        counts = [
            json.loads(path.read_text()).get("request_count", {}).get("avg", 0)
            for path in (aiperf.folder / "out" / file.stem).rglob("profile_export_aiperf.json")
        ]  # fmt: skip
        if done.code or not counts or not all(counts):
            wrong[file.stem] = done.err
    assert wrong == {}
