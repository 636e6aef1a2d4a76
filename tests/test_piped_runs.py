"""A run whose requests come through a pipe."""

from __future__ import annotations

import json
import subprocess

import pytest
from aiperf_command_simulate.testing import Simulator
from program import Program


@pytest.mark.parametrize("given", ["/dev/stdin", "<(cat rows.jsonl)"])
def test_a_run_reads_its_requests_from_a_pipe(given: str, aiperf: Program, simulator: Simulator) -> None:
    texts = [f"Question {number}" for number in range(3)]
    (aiperf.folder / "rows.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    (aiperf.folder / "tmp").mkdir()
    words = f'"$@" profile -m m -u {simulator.url} --tokenizer builtin --ui none --request-count 3 --input-file {given}'
    done = subprocess.run(
        ["bash", "-c", f"cat rows.jsonl | {words}", "bash", *aiperf.program], cwd=aiperf.folder, capture_output=True, text=True,
        env={**aiperf.environment, "TMPDIR": str(aiperf.folder / "tmp")}, timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (summary,) = aiperf.folder.rglob("profile_export_aiperf.json")
    assert json.loads(summary.read_text())["request_count"]["avg"] == 3
    (inputs,) = aiperf.folder.rglob("inputs.json")
    sent = [session["payloads"][0]["messages"][-1]["content"] for session in json.loads(inputs.read_text())["data"]]
    assert sent == texts and simulator.summary()["requests"] == 3
    assert [*(aiperf.folder / "tmp").iterdir()] == []
