"""Agentic replay in whole runs, judged by what the server saw."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest
from aiperf_command_simulate.testing import running
from program import Done, Program, wait_for

_BLOCK = 64


def _request(at_s: float, blocks: list[int], out: int) -> dict[str, Any]:
    return {"t": at_s, "type": "s", "model": "m", "in": _BLOCK * len(blocks), "out": out, "hash_ids": blocks, "api_time": 0.1}


def _traces(folder: Path) -> Path:
    """The example of the specification (agentic §13), ten times as fast."""
    folder.mkdir()
    for trace in range(4):
        own = trace * 1000
        rows: list[dict[str, Any]] = [_request(0.4 * turn, list(range(own, own + 2 + turn)), 8) for turn in range(6)]
        inner = [_request(0.55, [own + 500], 4), _request(0.8, [own + 500, own + 501], 4)]
        rows.insert(2, {
            "t": 0.55, "type": "subagent", "agent_id": "a1", "subagent_type": "Explore", "duration_ms": 400,
            "status": "completed", "models": ["m"], "requests": inner,
        })  # fmt: skip
        text = {"id": f"tr{trace}", "models": ["m"], "block_size": _BLOCK, "hash_id_scope": "local", "requests": rows}
        (folder / f"tr{trace}.json").write_text(json.dumps(text))
    return folder


def _words(tmp_path: Path, url: str, *more: str | float | Path) -> list[str | float | Path]:
    return [
        "profile", "--model", "m", "--url", url, "--streaming", "--tokenizer", "builtin", "--ui", "none",
        "--scheduling-mode", "agentic_replay", "--custom-dataset-type", "weka_trace",
        "--input-file", _traces(tmp_path / "traces"), "--concurrency", 2, "--random-seed", 42, *more,
    ]  # fmt: skip


def _run(tmp_path: Path, *words: str | float | Path, **server: Any) -> tuple[list[dict[str, Any]], Program, Any]:
    with running(truth_bodies=True, first_token_ms=20, decode_ms=1, decode_batch_us=0, **server) as simulator:
        program = Program(tmp_path)
        done = program(*_words(tmp_path, simulator.url, *words))
        return simulator.truth()["requests"], program, done


def check_ledger(done: Done) -> Counter[str]:
    """Each turn from the first one that a stream sends has one line; outcomes of the profiling phase."""
    lines = done.lines("profile_export_arrivals.jsonl")
    streams = defaultdict(list)
    for line in lines:
        streams[line["session"], line["stream"]].append(line["turn"])
    assert all(sorted(turns) == list(range(min(turns), 2 if stream else 6)) for (_, stream), turns in streams.items()), streams
    unsent = [line for line in lines if "n" not in line]
    assert {line["outcome"] for line in unsent} <= {"truncated", "released", "unknown"}
    told, counts = done.json()["measurement"]["arrivals"], Counter(line["outcome"] for line in lines if line["phase_index"])
    assert all(told[name] == counts[name] for name in ("completed", "overflowed", "truncated", "released", "unknown"))
    assert told["planned"] == told["sent"] + told["unknown"]
    return counts


def test_lanes_go_on_from_their_cuts_on_two_workers(tmp_path: Path) -> None:
    seen, program, done = _run(
        tmp_path, "--warmup-requests-per-lane", 2, "--benchmark-duration", 3, "--cache-bust", "first_turn_prefix",
        "--workers", 2,
    )  # fmt: skip
    assert done.code == 0, done.err
    bodies = [json.loads(one["body"]) for one in seen]
    warm = [body["max_completion_tokens"] == 1 for body in bodies]
    assert sum(warm) == 7 and all(warm[:7]), "three primers and two requests more of each lane come first"
    ids = [one["correlation_id"][19:] for one in seen]
    tr0, tr1, agent, tr2 = (f"b00{stream}-{tree:012x}" for stream, tree in ((0, 0), (0, 1), (1, 1), (0, 2)))
    assert ids[:3] == [tr1, agent, tr0]
    assert sorted(ids[3:7]) == sorted([tr0, tr0, tr1, agent])
    assert ids[7] == tr2, "the empty lane begins the next trace at once"
    for identity in (tr1, agent, tr2):
        lengths = [len(body["messages"]) for body, each in zip(bodies, ids, strict=True) if each == identity]
        assert lengths == list(range(lengths[0], lengths[0] + len(lengths))), "each request has one message more"
    trees = defaultdict(set)
    for body, identity in zip(bodies, ids, strict=True):
        trees[identity[5:]].add(body["messages"][0]["content"][:18])
    markers = [marker for found in trees.values() for marker in found]
    assert all(marker.startswith("[rid:") for marker in markers)
    assert len(markers) == len(set(markers)) == len(trees), "a tree has one marker, over both phases and all streams"
    at = {(identity, len(body["messages"])): one for body, identity, one in zip(bodies, ids, seen, strict=True)}
    waited_ns = at[tr2, 2]["received_mono_ns"] - at[tr2, 1]["last_mono_ns"]
    assert waited_ns >= 0.299e9, "turn 1 leaves its delay of 0.3 s behind the answer before"
    records = [line["metadata"] for line in done.lines("profile_export.jsonl")]
    told = {(line["x_correlation_id"][19:], line["benchmark_phase"]) for line in records}
    assert {(tr1, "warmup"), (tr1, "profiling"), (tr2, "profiling")} <= told and (tr2, "warmup") not in told
    assert {line["agent_depth"] for line in records} == {0, 1} == {line["lane"] for line in records}
    assert "lane 1: trace tr1" in done.err + done.out
    assert check_ledger(done)["truncated"] > 0 and "turns of trees: " in done.out
    validated = program("validate", done.artifacts)
    assert validated.code == 0, validated.out


def test_an_overflow_is_no_failure_and_ends_its_conversation(tmp_path: Path) -> None:
    seen, program, done = _run(tmp_path, "--benchmark-duration", 3, "--cache-bust", "first_turn_prefix", max_context=420)
    assert done.code == 0, done.err
    refused = [one for one in seen if one["status"] == 400]
    assert refused
    ids = [one["correlation_id"] for one in seen]
    for one in refused:
        assert one["correlation_id"] not in ids[seen.index(one) + 1 :], "a conversation goes on behind an overflow"
    summary = done.json()
    assert summary["outcomes"]["overflowed"] == len(refused)
    lines = [line["metadata"] for line in done.lines("profile_export.jsonl")]
    skipped = {line["x_request_id"] for line in lines if line.get("context_overflow_skip")}
    assert skipped == {one["request_id"] for one in refused}
    errors = [line["error"]["message"] for line in done.lines("profile_export.jsonl") if line.get("error")]
    assert len(errors) == len(refused) and all("maximum context length is 420" in text for text in errors)
    assert summary["error_summary"] == [], "what ends a conversation is no failure"
    told = {row["quantity"]: row["value"] for row in summary["lanes"]}
    assert told["requests longer than the context"] == len(refused)
    assert check_ledger(done)["overflowed"] == len(refused)
    assert told["trees"] == len(summary["lane_trees"]) == len({each["correlation_id"][-12:] for each in seen})
    validated = program("validate", done.artifacts)
    assert validated.code == 0, validated.out


def test_a_server_that_refuses_a_primer_ends_the_run(tmp_path: Path) -> None:
    seen, _, done = _run(tmp_path, "--benchmark-duration", 3, "--cache-bust", "first_turn_prefix", max_context=100)
    assert done.code == 1
    assert "the warmup of lane" in done.err and "trace tr" in done.err
    assert check_ledger(done) == {}
    assert all(json.loads(one["body"])["max_completion_tokens"] == 1 for one in seen), "nothing is measured"


@pytest.mark.long
def test_a_report_of_killed_lanes_has_what_was_observed(tmp_path: Path) -> None:
    with running(first_token_ms=20, decode_ms=1, decode_batch_us=0) as simulator:
        program = Program(tmp_path)
        going = program.start(*_words(tmp_path, simulator.url, "--benchmark-duration", 60))
        wait_for(lambda: len(simulator.truth()["requests"]) > 20)
        going.process.kill()
        going.process.wait()
        wait_for(lambda: not going.survivors())
        sent = {each["request_id"] for each in simulator.truth()["requests"]}
    done = program("report", going.artifacts)
    assert done.code == 1 and "the run did not record its end" in done.err
    summary = json.loads((going.artifacts / "profile_export_aiperf.json").read_text())
    lines = [json.loads(line)["metadata"] for line in (going.artifacts / "profile_export.jsonl").read_text().splitlines()]
    assert {line["x_request_id"] for line in lines} <= sent
    assert summary["is_complete"] is False
    killed = Done(1, "", "", going.artifacts)
    counts, ledger = check_ledger(killed), killed.lines("profile_export_arrivals.jsonl")
    assert counts["truncated"] + counts["unknown"] > 0
    sessions = {line["conversation_num"] for line in lines if line["benchmark_phase"] == "profiling"}
    assert sessions <= {row["session"] for row in summary["lane_trees"]}
    assert program("validate", going.artifacts).code == 0
    assert program("report", going.artifacts).code == 1
    assert killed.lines("profile_export_arrivals.jsonl") == ledger


@pytest.mark.long
def test_ctrl_c_behind_the_primers_ends_the_run_before_anything_is_measured(tmp_path: Path) -> None:
    with running(first_token_ms=20, decode_ms=1, decode_batch_us=0) as simulator:
        program = Program(tmp_path)
        going = program.start(
            *_words(tmp_path, simulator.url, "--benchmark-duration", 60, "--warmup-requests-per-lane", 10_000)
        )
        wait_for(lambda: len(simulator.truth()["requests"]) > 20)
        going.interrupt()
        done = going.end()
        told = simulator.truth()["requests"]
    assert done.code == 130
    assert done.json()["incomplete_reason"].endswith("phase profiling did not begin")
    lines = [line["metadata"] for line in done.lines("profile_export.jsonl")]
    assert {line["benchmark_phase"] for line in lines} == {"warmup"}
    assert {line["x_request_id"] for line in lines} <= {each["request_id"] for each in told}
    assert check_ledger(done) == {}
    assert any(line["outcome"] == "truncated" for line in done.lines("profile_export_arrivals.jsonl"))
    assert program("validate", done.artifacts).code == 0
