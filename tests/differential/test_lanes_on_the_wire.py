"""The server sees the same requests, in the same order, of both tools, where a child overlapped the turn that starts it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from agentx_corpus import FILE, request
from aiperf_command_simulate.testing import running
from test_agent_traces import PROGRAMS, vocabulary

pytestmark = pytest.mark.skipif(not PROGRAMS, reason="AIPERF_REFERENCE names no reference; make differential installs one")


def trace() -> str:
    """A root whose first request took 5 s, and a subagent that was started 1 s behind it."""
    root = [request(0, [1], 4), request(6, [1, 2], 5), request(7, [1, 2, 3], 6)]
    root[0]["api_time"] = 5
    agent = {
        "t": 1, "type": "subagent", "agent_id": "x", "subagent_type": "Explore", "duration_ms": 500, "status": "completed",
        "models": ["m"], "requests": [request(1, [9], 7), request(1.2, [9, 10], 8)],
    }  # fmt: skip
    requests = [root[0], agent, *root[1:]]
    return json.dumps({"id": "tr0", "models": ["m"], "block_size": 64, "hash_id_scope": "local", "requests": requests})


def sent(program: list[str], folder: Path) -> list[tuple[list[str], int, bool]]:
    """Roles, output limit and ``ignore_eos`` of each request of the first tree, as they came."""
    folder.mkdir()
    (folder / FILE).write_text(trace() + "\n")
    with running(truth_bodies=True, first_token_ms=2000, decode_ms=1, decode_batch_us=0) as simulator:
        words = [
            "profile", "--scenario", "inferencex-agentx-mvp", "--unsafe-override", "--url", simulator.url, "--endpoint-type",
            "chat", "--model", "m", "--concurrency", "1", "--benchmark-duration", "9", "--random-seed", "1", "--tokenizer",
            "builtin", "--input-file", str(folder / FILE), "--custom-dataset-type", "weka_trace", "--use-server-token-count",
            "--no-gpu-telemetry", "--no-server-metrics", "--trajectory-start-min-ratio", "0", "--trajectory-start-max-ratio",
            "0", "--ui", "none", "--output-artifact-dir", str(folder / "artifacts"),
        ]  # fmt: skip
        env = {**os.environ, "TIKTOKEN_CACHE_DIR": str(vocabulary(folder)), "AIPERF_CACHE_DIR": str(folder / "cache")}
        done = subprocess.run([*program, *words], cwd=folder, capture_output=True, text=True, timeout=600, check=False, env=env)
        bodies = [json.loads(each["body"]) for each in simulator.truth()["requests"]]
    assert len(bodies) >= 5, done.stdout + done.stderr
    return [
        ([message["role"] for message in body["messages"]], body["max_completion_tokens"], body["ignore_eos"])
        for body in bodies[:5]
    ]


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_child_that_overlapped_its_turn_is_sent_beside_it(program: str, tmp_path: Path) -> None:
    ours = sent([sys.executable, "-m", "aiperf"], tmp_path / "ours")
    assert [limit for _, limit, _ in ours] == [4, 7, 8, 5, 6], "the child's first request comes before the root's answer"
    assert sent([PROGRAMS[program]], tmp_path / "theirs") == ours
