"""Runs of conversations that start others, judged by what the server saw, and when."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from aiperf_command_simulate.testing import running
from program import Program

_ROWS = (
    {"session_id": "p", "turns": [{"messages": [{"role": "user", "content": "plan"}], "spawns": ["c"]},
                                  {"messages": [{"role": "user", "content": "merge"}], "delay": 5}]},
    {"session_id": "c", "turns": [{"messages": [{"role": "user", "content": "part"}], "max_tokens": 8},
                                  {"messages": [{"role": "user", "content": "rest"}], "max_tokens": 8}]},
    {"session_id": "r", "turns": [{"messages": [{"role": "user", "content": "base"}], "forks": ["x"], "max_tokens": 6}]},
    {"session_id": "x", "turns": [{"messages": [{"role": "user", "content": "left"}], "max_tokens": 6}]},
    {"session_id": "o", "orchestrator": True, "spawns": ["w"], "rounds": 2, "think_time_ms": 20},
    {"session_id": "w", "turns": [{"messages": [{"role": "user", "content": "work"}], "max_tokens": 6}]},
)  # fmt: skip


def _run(tmp_path: Path, *words: str | float | Path) -> tuple[list[dict[str, Any]], Program, Any]:
    (tmp_path / "trees.jsonl").write_text("".join(json.dumps(row) + "\n" for row in _ROWS))
    with running(truth_bodies=True, first_token_ms=5, decode_ms=1, decode_batch_us=0) as simulator:
        program = Program(tmp_path)
        done = program(
            "profile", "--model", "m", "--url", simulator.url, "--streaming", "--tokenizer", "builtin", "--ui", "none",
            "--input-file", tmp_path / "trees.jsonl", "--dataset-sampling-strategy", "sequential", *words,
        )  # fmt: skip
        return simulator.truth()["requests"], program, done


def _said(request: dict[str, Any]) -> list[str]:
    return [message["content"] if message["role"] == "user" else "…" for message in json.loads(request["body"])["messages"]]


def test_children_begin_behind_their_turn_and_joins_wait(tmp_path: Path) -> None:
    seen, program, done = _run(tmp_path, "--concurrency", 2, "--num-sessions", 6, "--workers-max", 2)
    assert done.code == 0, done.err
    trees: dict[str, list[dict[str, Any]]] = {}
    for request in seen:
        trees.setdefault(request["correlation_id"][-12:], []).append(request)
    assert sorted(sorted("/".join(_said(one)) for one in tree) for tree in trees.values()) == sorted(2 * [
        ["part", "part/…/rest", "plan", "plan/…/merge"], ["base", "base/…/left"], ["work", "work"],
    ])  # fmt: skip
    for tree in trees.values():
        at = {"/".join(_said(one)): one for one in tree}
        for first, then in (("plan", "part"), ("part/…/rest", "plan/…/merge"), ("base", "base/…/left")):
            if first in at:
                assert at[then]["received_mono_ns"] >= at[first]["last_mono_ns"], f"{then} before the end of {first}"
        if "work" in at:
            one, other = sorted(tree, key=lambda request: request["received_mono_ns"])
            assert other["received_mono_ns"] - one["last_mono_ns"] >= 20e6, "the second round did not wait its think time"
    records = [line["metadata"] for line in done.lines("profile_export.jsonl")]
    ids = {line["x_correlation_id"]: line["conversation_id"] for line in records}
    parents = {(line["conversation_id"], ids.get(line.get("parent_correlation_id"))) for line in records}
    assert parents == {("p", None), ("c", "p"), ("r", None), ("x", "r"), ("w", None)}
    assert {line["conversation_id"]: line["agent_depth"] for line in records} == {"p": 0, "c": 1, "r": 0, "x": 1, "w": 1}
    assert {line["conversation_id"]: line["turn_index"] for line in records if line["turn_index"]} == {"p": 1, "c": 1}
    assert {line["x_correlation_id"] for line in records} == {request["correlation_id"] for request in seen}
    document = json.loads((done.artifacts / "inputs.json").read_text())
    inputs = {entry["session_id"]: len(entry["payloads"]) for entry in document["data"]}
    assert inputs == {"p": 2, "c": 2, "r": 1, "x": 1, "w": 1}
    validated = program("validate", done.artifacts)
    assert validated.code == 0, validated.out


def test_every_request_of_a_tree_counts(tmp_path: Path) -> None:
    seen, _, done = _run(tmp_path, "--request-rate", 50, "--request-count", 11)
    assert done.code == 0, done.err
    assert len(seen) == 11
    assert done.json()["request_count"]["avg"] == 11
