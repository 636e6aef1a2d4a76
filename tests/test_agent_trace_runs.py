"""Replays of recorded agents, judged by what the server saw."""

from __future__ import annotations

import json
import random
from itertools import pairwise
from pathlib import Path
from typing import Any

from aiperf_command_simulate.testing import running
from aiperf_dataset_weka_trace.contract import sample_trace
from program import Program

BLOCK = 64
"""Tokens of a block."""


def _grown(name: str) -> dict[str, Any]:
    """A trace whose context grows, with a worker among its requests, and is cut in the end."""
    dice, ids = random.Random(name), list(range(4))
    requests = []
    for turn in range(5):
        length = BLOCK * len(ids) + dice.choice((0, 7, 40))
        requests.append({"t": 2.0 * turn, "type": "s", "model": "m", "in": length, "out": 70, "hash_ids": ids, "api_time": 0.5})
        ids = [*(ids if turn < 3 else ids[:2]), *range(10 * turn + 100, 10 * turn + 103)]
    worker = {**requests[0], "t": 0.1, "hash_ids": [0, 1, 500], "in": 3 * BLOCK, "model": "other"}
    return {"id": name, "models": ["m"], "block_size": BLOCK, "hash_id_scope": "local", "requests": [*requests, worker]}


def _lengths(trace: dict[str, Any]) -> list[int]:
    """Tokens of all prompts of a trace."""
    calls = [inner for request in trace["requests"] for inner in request.get("requests", [request])]
    return sorted(call["in"] for call in calls)


def test_prompts_have_their_recorded_lengths_and_share_their_blocks(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("AIPERF_CACHE_DIR", str(tmp_path / "cache"))
    traces = [_grown("a"), sample_trace("w"), _grown("b")]
    folder = tmp_path / "corpus"
    folder.mkdir()
    (folder / "traces.jsonl").write_text("".join(json.dumps(trace) + "\n" for trace in traces))
    with running(truth_bodies=True, first_token_ms=2, decode_ms=0.1, tokens=3) as simulator:
        done = Program(tmp_path)(
            "profile", "--model", "m", "--url", simulator.url, "--streaming", "--tokenizer", "builtin", "--ui", "none",
            "--hf-weka-dataset", folder, "--ignore-trace-delays", "--concurrency", 3, "--num-sessions", 3, "--workers-max", 2,
            "--cache-bust", "first_turn_prefix",
        )  # fmt: skip
        seen = simulator.truth()["requests"]
    assert done.code == 0, done.err
    assert len(seen) == sum(map(len, map(_lengths, traces))) == done.json()["request_count"]["avg"]
    streams: dict[str, list[list[dict[str, str]]]] = {}
    for request in sorted(seen, key=lambda one: one["received_mono_ns"]):
        streams.setdefault(request["correlation_id"], []).append(json.loads(request["body"])["messages"])
    for prompts in streams.values():
        assert all(prompt[-1]["role"] == "user" for prompt in prompts)
        markers = {prompt[0]["content"].partition("\n\n")[0] for prompt in prompts}
        assert len(markers) == 1 and markers.pop().startswith("[rid:")
        for before, prompt in pairwise(prompts):
            first, then = (one[0]["content"].split("\n\n", 1)[1] for one in (before, prompt))
            assert first.startswith(then) or then.startswith(first)
    records = done.lines("profile_export.jsonl")
    lengths = {name: sorted(
        line["metrics"]["input_sequence_length"]["value"] for line in records
        if line["metadata"]["conversation_id"].partition("::")[0] == name
    ) for name in "awb"}  # fmt: skip
    assert {line["metadata"]["source_trace_id"] for line in records} == set("awb")
    for trace in traces:  # a marker of twelve random digits has about ten tokens
        added = [length - own for length, own in zip(lengths[trace["id"]], _lengths(trace), strict=True)]
        assert all(5 <= tokens <= 16 for tokens in added), added
