"""Rounds of coding agents: their order and blocks, which session started which, and what is refused with its line."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from aiperf import BadDataset, ConfigError
from aiperf_dataset_tracelab.recording import Recording
from aiperf_dataset_tracelab.rounds import safe_id
from aiperf_traces.sessions import RecordedRequest, RecordedSession, Subagent


def at(second: float) -> str:
    return f"2026-01-01T00:{int(second) // 60:02}:{second % 60:06.3f}Z"


def event(kind: str, second: float) -> dict[str, Any]:
    return {"event_type": kind, "timestamp": at(second)}


def row(
    session: str, second: float, *, total: int = 128, prefix: int = 0, answer_s: float | None = 1, **more: Any
) -> dict[str, Any]:
    """A round that was sent at that second, and answered *answer_s* later."""
    events = [event("user_message", second), *([] if answer_s is None else [event("text", second + answer_s)])]
    return {
        "session_id": session, "round_index": 0, "input_tokens_total": total, "prefix_tokens": prefix,
        "newly_append_tokens": total - prefix, "timing_events": events, "user": "u", "project": "p", **more,
    }  # fmt: skip


def call(tool: str, begin: float, end: float, latency_ms: float | None = None) -> dict[str, Any]:
    measured = {"tool_wall_latency_ms": latency_ms if latency_ms is not None else 1000 * (end - begin)}
    return {"tool_name": tool, "emitted_at": at(begin), "result_at": at(end), **measured}


def written(path: Path, *rows: Any) -> Path:
    path.write_text("".join((one if isinstance(one, str) else json.dumps(one)) + "\n" for one in rows))
    return path


def recording(tmp_path: Path, *rows: Any, block_tokens: int = 64) -> Recording:
    return Recording(written(tmp_path / "rounds.jsonl", *rows), block_tokens)


def sessions(tmp_path: Path, *rows: Any, block_tokens: int = 64) -> dict[str, RecordedSession]:
    return {one.id: one for one, _ in recording(tmp_path, *rows, block_tokens=block_tokens).sessions()}


def requests(session: RecordedSession) -> list[RecordedRequest]:
    return [entry for entry in session.requests if isinstance(entry, RecordedRequest)]


def subagents(session: RecordedSession) -> list[Subagent]:
    return [entry for entry in session.requests if isinstance(entry, Subagent)]


def test_blocks_that_the_server_had_are_kept(tmp_path: Path) -> None:
    rows = [row("c:1", 0, total=200), row("c:1", 5, total=320, prefix=210), row("c:1", 9, total=100, prefix=64)]
    found = requests(sessions(tmp_path, *rows)["c_1"])
    assert [list(one.blocks) for one in found] == [[1, 2, 3], [1, 2, 3, 4, 5], [1]]
    assert [one.input_tokens for one in found] == [200, 320, 100]


@pytest.mark.parametrize(("block_tokens", "blocks"), [(100, [1, 2]), (300, [])])
def test_blocks_have_the_length_that_is_asked_for(tmp_path: Path, block_tokens: int, blocks: list[int]) -> None:
    (one,) = requests(sessions(tmp_path, row("a", 0, total=200), block_tokens=block_tokens)["a"])
    assert list(one.blocks) == blocks


def test_a_prefix_is_no_longer_than_its_prompt_and_the_one_before(tmp_path: Path) -> None:
    rows = [row("a", 0, total=128), row("a", 5, total=256, prefix=256), row("a", 9, total=64, prefix=500)]
    assert [list(one.blocks) for one in requests(sessions(tmp_path, *rows)["a"])] == [[1, 2], [1, 2, 3, 4], [1]]


def test_a_round_is_sent_at_its_last_input_and_ends_at_its_last_output(tmp_path: Path) -> None:
    kinds = (("user_message", 1), ("tool_result", 3), ("text", 4), ("tool_call", 7), ("other", 99))
    second_row = row("a", 2, timing_events=[event(*one) for one in kinds], first_input_event_type="tool_result")
    first, second = requests(sessions(tmp_path, row("a", 0), second_row)["a"])
    assert (first.at_s, first.answer_s, first.think_s, first.stop, first.tool_result) == (0, 1, None, "end_turn", False)
    assert (second.at_s, second.answer_s, second.think_s, second.stop, second.tool_result) == (3, 4, 2, "tool_use", True)


def test_a_round_without_input_is_sent_at_its_first_output(tmp_path: Path) -> None:
    (one,) = requests(sessions(tmp_path, row("a", 2, timing_events=[event("text", 3), event("text", 5)]))["a"])
    assert one.answer_s == 2


def test_rounds_come_by_their_times_then_by_their_index(tmp_path: Path) -> None:
    rows = [row("a", 9, total=64), row("a", 2, total=65, round_index=3), row("a", 2, total=66, round_index=1)]
    assert [one.input_tokens for one in requests(sessions(tmp_path, *rows)["a"])] == [66, 65, 64]


def test_answers_have_their_reasoning_and_are_never_empty(tmp_path: Path) -> None:
    rows = [row("a", 0, output_tokens=5, reasoning_output_tokens=7), row("a", 1), row("a", 2, total=0, output_tokens=0)]
    found = requests(sessions(tmp_path, *rows)["a"])
    assert [one.output_tokens for one in found] == [12, 1, 1]
    assert found[2].input_tokens == 1 and found[0].model == "unknown"


def test_rounds_without_times_and_rows_without_sessions_are_counted(tmp_path: Path) -> None:
    undated = row("a", 0) | {"timing_events": [{"event_type": "text"}]}
    found = recording(tmp_path, row("a", 5), undated, {**row("a", 7), "session_id": None})
    ((session, began_s),) = found.sessions()
    assert (found.undated, found.stray, len(session.requests)) == (1, 1, 1)
    assert began_s == 1767225605.0  # 2026-01-01, 5 s


def test_a_session_within_a_call_is_its_subagent(tmp_path: Path) -> None:
    parent = row("w", 0, total=150, tools=[call("Task", 1, 21)])
    found = sessions(tmp_path, parent, row("w", 25, total=200, prefix=150), row("x", 2, total=64))
    assert list(found) == ["w"]
    (agent,) = subagents(found["w"])
    assert (agent.id, agent.at_s, agent.duration_ms, agent.end_s) == ("x", 1, 20000, 21)
    assert [(one.at_s, list(one.blocks)) for one in agent.requests] == [(2, [4])]  # the root has 1 to 3
    assert [isinstance(entry, Subagent) for entry in found["w"].requests] == [False, True, False]


@pytest.mark.parametrize(
    ("parent", "child"),
    [
        ({"tools": [call("Bash", 1, 21)]}, {}),
        ({"tools": [call("Task", 1, 21, 9999)]}, {}),
        ({"tools": [call("Task", 1, 21) | {"tool_wall_latency_ms": None}]}, {}),
        ({"tools": [call("Task", 1, 21) | {"result_at": None}]}, {}),
        ({"tools": [call("Task", 1, 2.5, 20000)]}, {}),
        ({"tools": [call("Task", 1, 21)]}, {"user": "v"}),
        ({"tools": [call("Task", 1, 21)]}, {"project": None}),
        ({"tools": [call("Task", 1, 21)]}, {"tools": [call("Bash", 2, 22)]}),
        ({"tools": [call("Task", 1, 21)], "provider": "codex"}, {}),
        ({"tools": [call("spawn_agent", 1, 1), call("wait_agent", 3, 21)]}, {}),
        ({"tools": [call("spawn_agent", 1, 21)], "provider": "codex"}, {}),
    ],
)
def test_other_sessions_stay_on_their_own(tmp_path: Path, parent: dict[str, Any], child: dict[str, Any]) -> None:
    assert list(sessions(tmp_path, row("w", 0, **parent), row("x", 2, **child))) == ["w", "x"]


def test_codex_waits_from_its_first_spawn_to_its_last_wait(tmp_path: Path) -> None:
    calls = [call("spawn_agent", 1, 1), call("spawn_agent", 2, 2), call("wait_agent", 3, 5), call("wait_agent", 6, 9)]
    found = sessions(tmp_path, row("w", 0, tools=calls, provider="codex"), row("x", 2, answer_s=2), row("y", 8, answer_s=1))
    assert [(agent.id, agent.at_s, agent.duration_ms) for agent in subagents(found["w"])] == [("x", 1, 8000), ("y", 1, 8000)]


def test_the_tightest_window_has_the_session(tmp_path: Path) -> None:
    windows = (("a", call("Task", 1, 31)), ("b", call("Task", 1.5, 21)), ("c", call("Agent", 1.8, 21.4)))
    found = recording(tmp_path, *(row(name, 0, tools=[one]) for name, one in windows), row("x", 2))
    assert {one.id: [agent.id for agent in subagents(one)] for one, _ in found.sessions()} == {"a": [], "b": ["x"], "c": []}
    assert found.links.ambiguous == 1 and found.links.found == 3


def test_a_subagent_of_a_subagent_is_a_session(tmp_path: Path) -> None:
    rows = [row("a", 0, tools=[call("Task", 1, 41)]), row("b", 2, tools=[call("Task", 3, 23)]), row("c", 4)]
    found = recording(tmp_path, *rows)
    assert {one.id: [agent.id for agent in subagents(one)] for one, _ in found.sessions()} == {"a": ["b"], "c": []}
    assert found.links.deeper == 1


def test_a_subagent_before_the_first_request_is_a_session(tmp_path: Path) -> None:
    found = sessions(tmp_path, row("w", 30, tools=[call("Task", 1, 21)]), row("x", 2), row("y", 40))
    assert list(found) == ["w", "y", "x"] and not subagents(found["w"])


@pytest.mark.parametrize(
    ("name", "value", "children"),
    [
        ("MIN_SPAWN_MS", "30000", []),
        ("MIN_SPAWN_MS", "0", ["x"]),
        ("SUBAGENT_JOIN", "false", []),
        ("CODEX_SUBAGENT_JOIN", "0", ["x"]),
    ],
)
def test_variables_say_which_sessions_are_subagents(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str, children: list[str]
) -> None:
    monkeypatch.setenv(f"AIPERF_DATASET_TRACELAB_{name}", value)
    found = sessions(tmp_path, row("w", 0, tools=[call("Task", 1, 21)]), row("x", 2))
    assert [agent.id for agent in subagents(found["w"])] == children


def test_codex_can_be_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIPERF_DATASET_TRACELAB_CODEX_SUBAGENT_JOIN", "false")
    calls = [call("spawn_agent", 1, 1), call("wait_agent", 3, 21)]
    assert list(sessions(tmp_path, row("w", 0, tools=calls, provider="codex"), row("x", 2))) == ["w", "x"]


def test_a_variable_that_is_no_number_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIPERF_DATASET_TRACELAB_MIN_SPAWN_MS", "soon")
    with pytest.raises(ConfigError, match="AIPERF_DATASET_TRACELAB_MIN_SPAWN_MS is 'soon'"):
        recording(tmp_path, row("a", 0))


def test_a_compressed_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "rounds.jsonl.gz"
    path.write_bytes(gzip.compress(json.dumps(row("a", 0)).encode()))
    assert [one.id for one, _ in Recording(path, 64).sessions()] == ["a"]


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        ('{"session_id": ', ":2: no JSON"),
        ("[1]", ":2: list is no JSON object"),
        (row("a", 0) | {"input_tokens_total": -1}, ":2: input_tokens_total: expected `int` >= 0"),
        (row("a", 0) | {"prefix_tokens": "many"}, ":2: prefix_tokens: expected `int"),
        (row("a", 0) | {"timing_events": {}}, ":2: timing_events: expected `array"),
        (row("a", 0) | {"timing_events": [{"timestamp": "soon"}]}, ":2: timestamp 'soon' is no time in ISO 8601"),
        (row("a", 0) | {"tools": [{"emitted_at": "2026"}]}, ":2: emitted_at '2026' is no time in ISO 8601"),
        (row("a/b", 0), ":2: the sessions 'a b' and 'a/b' are both called 'a_b' in results"),
    ],
)
def test_a_bad_row_is_refused_with_its_line(tmp_path: Path, bad: Any, why: str) -> None:
    with pytest.raises(BadDataset) as caught:
        recording(tmp_path, row("a b", 0), bad)
    assert why in caught.value.message


def test_a_file_without_sessions_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadDataset, match="has no row with a session_id"):
        recording(tmp_path, {"round_index": 0})


def test_times_without_a_zone_are_of_utc(tmp_path: Path) -> None:
    stamps = (("user_message", "2026-01-01T02:00:00+02:00"), ("text", "2026-01-01 00:00:03"))
    events = [{"event_type": kind, "timestamp": stamp} for kind, stamp in stamps]
    (one,) = requests(sessions(tmp_path, row("a", 0, timing_events=events))["a"])
    assert one.answer_s == 3


def test_a_name_keeps_letters_digits_and_150_characters() -> None:
    assert safe_id("claude:a/é b.c_d-e") == "claude_a_b.c_d-e"
    assert len(safe_id("x" * 200)) == 150
