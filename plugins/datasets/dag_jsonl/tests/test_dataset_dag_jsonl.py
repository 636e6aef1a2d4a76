"""Conversations that start others: their trees, and what is refused with its line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from aiperf import BadDataset, Capabilities, Conversation, DatasetContext
from aiperf.sdk.trees import Branch, Pause, faults
from aiperf_dataset_dag_jsonl.contract import DagJsonlContract
from aiperf_dataset_dag_jsonl.dataset import DagJsonl
from aiperf_dataset_dag_jsonl.options import DagJsonlOptions

_CHAT = Capabilities(system_message=True, multi_turn=True, verbatim=True, produces_tokens=True)


class TestContract(DagJsonlContract):
    """Of all data sets."""


def said(text: str = "hi", role: str = "user", **more: Any) -> dict[str, Any]:
    """A turn with one message."""
    return {"messages": [{"role": role, "content": text}], **more}


def read(tmp_path: Path, *rows: Any, **options: Any) -> list[Conversation]:
    path = tmp_path / "trees.jsonl"
    path.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))
    return list(DagJsonl(DagJsonlOptions(**options), DatasetContext(10, 1, True, None, _CHAT, path)))


def test_a_spawn_joins_the_next_turn(tmp_path: Path) -> None:
    (tree,) = read(
        tmp_path, {"session_id": "p", "turns": [said("plan", spawns=["c"]), said("merge")]},
        {"session_id": "c", "turns": [said("part", max_tokens=8)]},
    )  # fmt: skip
    places = [(one.id, one.first, one.turns, one.parent, one.depth) for one in tree.streams]
    assert places == [("p", 0, 2, -1, 0), ("c", 2, 1, 0, 1)]
    assert tree.streams[0].branches == (Branch((1,), 0, 1),)
    assert [turn.max_tokens for turn in tree.turns] == [None, None, 8]
    assert not list(faults(tree.streams, len(tree.turns)))


def test_forks_go_on_from_what_was_said(tmp_path: Path) -> None:
    (tree,) = read(
        tmp_path, {"session_id": "r", "turns": [said("base", forks=["x", {"child": "y", "background": False}])]},
        {"session_id": "x", "turns": [said("left")]}, {"session_id": "y", "turns": [said("right", delay=50)]},
    )  # fmt: skip
    assert tree.streams[0].branches == (Branch((1, 2), 0, forks=True),)
    assert [message.text for message in tree.messages(2)] == ["base", "right"]
    assert tree.turns[2].delay_ms == 50


def test_rounds_of_an_orchestrator_wait_for_each_other(tmp_path: Path) -> None:
    orchestrator = {"session_id": "o", "orchestrator": True, "spawns": ["w"], "rounds": 2, "think_time_ms": 100}
    worker = {"session_id": "w", "turns": [said("work", extra={"temperature": 0})]}
    (tree,) = read(tmp_path, orchestrator, worker)
    assert [(one.id, one.turns) for one in tree.streams] == [("o", 0), ("w", 1), ("w", 1)]
    assert tree.streams[0].branches == (Branch((1,), pause=Pause(100)), Branch((2,), behind=(0,), pause=Pause(100)))
    (tree,) = read(tmp_path, {**orchestrator, "think_time_sigma": 0.5, "think_time_max_ms": 900}, worker, delay_cap_s=0.2)
    assert tree.streams[0].branches[0].pause == Pause(100, 0.5, None, 200)


def test_a_cap_cuts_delays(tmp_path: Path) -> None:
    (one,) = read(tmp_path, {"session_id": "a", "turns": [said(), said(delay=5000)]}, delay_cap_s=2)
    assert (one.turns[1].delay_ms, one.streams) == (2000, ())


def test_only_roots_are_conversations(tmp_path: Path) -> None:
    starts = {"a": ["c"], "b": ["c"], "c": list[str]()}
    rows = [{"session_id": name, "turns": [said(spawns=children)]} for name, children in starts.items()]
    assert [one.id for one in read(tmp_path, *rows)] == ["a", "b"]


_CHILD = {"session_id": "c", "turns": [said()]}


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        ([], "has no conversations"),
        (["{"], "line 1: no JSON"),
        ([{"session_id": "a", "turns": [said()], "spawn": []}], "line 1: Object contains unknown field `spawn`"),
        ([{"session_id": "a", "turns": [said(delays=1)]}], "unknown field `delays` - at `$.turns[0]`"),
        ([{"session_id": "a", "turns": [said()]}] * 2, "line 2: the session_id 'a' is on line 1, too"),
        ([{"session_id": "a"}], "line 1: session 'a' has no turns"),
        ([{"session_id": "a", "turns": [{"messages": []}]}], "has no messages in turn 0"),
        ([{"session_id": "a", "turns": [{"messages": [{"content": "x"}]}]}], "message 0 of turn 0"),
        ([{"session_id": "a", "turns": [said(max_tokens=0)]}], "line 1: Expected `int` >= 1"),
        ([{"session_id": "a", "turns": [said(max_tokens=True)]}], "line 1: Expected `int"),
        ([{"session_id": "a", "turns": [said(spawns=["x"])]}], "starts 'x' (spawns of turn 0), and no line has that"),
        ([{"session_id": "a", "turns": [said(spawns=["c", "c"])]}, _CHILD], "spawns 'c' twice in turn 0"),
        ([{"session_id": "a", "turns": [said(forks=["c", "c"])]}, _CHILD], "forks 'c' twice in turn 0"),
        (
            [{"session_id": name, "turns": [said(forks=["c"])]} for name in "ab"] + [_CHILD],
            "session 'b' forks 'c' in turn 0, which turn 0 of 'a' forks already",
        ),
        ([{"session_id": "a", "turns": [said(spawns=["a"])]}], "starts itself: a -> a"),
        (
            [{"session_id": "r", "turns": [said(spawns=["a"])]}, {"session_id": "a", "turns": [said(spawns=["b"])]},
             {"session_id": "b", "turns": [said(spawns=["a"])]}],
            "starts itself: a -> b -> a",
        ),
        ([{"session_id": "a", "turns": [said(forks=["c"]), said()]}, _CHILD], "which is not its last"),
        (
            [{"session_id": "a", "turns": [said(spawns=[{"children": ["c"], "join_at": 0}]), said()]}, _CHILD],
            "has join_at 0 in turn 0: later turns are 1 to 1",
        ),
        ([{"session_id": "a", "turns": [said(spawns=[{"children": ["c"], "join_at": 2}]), said()]}, _CHILD], "join_at 2"),
        (
            [{"session_id": "a", "turns": [said(forks=[{"child": "c", "background": True, "join_at": 1}]), said()]}, _CHILD],
            "unknown field `join_at` - at `$.turns[0].forks[0]`",
        ),
        (
            [{"session_id": "a", "turns": [said(forks=["c"])]}, {**_CHILD, "context_mode": "message_array_with_responses"}],
            "takes no history",
        ),
        ([{"session_id": "a", "turns": [said(), said(role="system")]}], "system message in turn 1"),
        (
            [{"session_id": "a", "turns": [said(forks=["c"])]}, {"session_id": "c", "turns": [said(role="system")]}],
            "another session forks it",
        ),
        (
            [{"session_id": "a", "turns": [said(forks=["c"])], "pre_session_spawns": ["c"]}, _CHILD],
            "before its turns, which is forked elsewhere",
        ),
        (
            [{"session_id": "a", "turns": [said(spawns=["b"])]},
             {"session_id": "b", "turns": [said()], "pre_session_spawns": ["c"]}, _CHILD],
            "has pre_session_spawns, and another session starts it",
        ),
        ([{"session_id": "o", "orchestrator": True, "turns": [said()], "spawns": ["c"]}, _CHILD], "and has turns"),
        ([{"session_id": "o", "orchestrator": True}], "starts nothing"),
        (
            [{"session_id": "o", "orchestrator": True, "spawns": ["c"], "rounds": [{"spawns": ["c"]}]}, _CHILD],
            "spawns beside a list of rounds",
        ),
        ([{"session_id": "o", "orchestrator": True, "rounds": [{"spawns": ["c"]}] * 2}, _CHILD], "starts 'c' twice"),
        ([{"session_id": "o", "orchestrator": True, "spawns": ["c"], "rounds": 0}, _CHILD], "Expected `int` >= 1"),
        (
            [{"session_id": "o", "orchestrator": True, "spawns": ["c"], "pre_session_spawns": ["c"]}, _CHILD],
            "has pre_session_spawns: give them as spawns",
        ),
        ([{"session_id": "a", "turns": [said()], "rounds": 2}], "has rounds, which are for orchestrators"),
        ([{"session_id": "o", "orchestrator": True, "spawns": ["c"], "think_time_ms": 5}, _CHILD], "no rounds"),
        (
            [{"session_id": "o", "orchestrator": True, "spawns": ["c"], "rounds": 1, "think_time_sigma": 1}, _CHILD],
            "without think_time_ms",
        ),
        (
            [{"session_id": "o", "orchestrator": True, "spawns": ["c"], "rounds": 1, "think_time_ms": 1,
              "think_time_sigma": 10}, _CHILD],
            "Expected `float` < 10",
        ),
        (
            [{"session_id": "o", "orchestrator": True, "spawns": ["c"], "rounds": 1, "think_time_ms": 1,
              "think_time_max_ms": 10}, _CHILD],
            "nothing is drawn",
        ),
        (
            [{"session_id": "o", "orchestrator": True, "spawns": ["c"], "rounds": 1, "think_time_ms": 1,
              "think_time_sigma": 1, "think_time_min_ms": 9, "think_time_max_ms": 2}, _CHILD],
            "think_time_min_ms 9 above think_time_max_ms 2",
        ),
    ],
)  # fmt: skip
def test_what_contradicts_itself_is_refused(tmp_path: Path, rows: list[Any], told: str) -> None:
    with pytest.raises(BadDataset) as error:
        read(tmp_path, *rows)
    assert told in error.value.message
    assert str(tmp_path) in error.value.message


def test_a_file_that_grows_without_bound_is_refused(tmp_path: Path) -> None:
    rows = [
        {"session_id": f"s{n}", "turns": [said(spawns=[f"s{n + 1}"]), said(spawns=[f"s{n + 1}"])] if n < 20 else [said()]}
        for n in range(21)
    ]
    with pytest.raises(BadDataset, match="more than 100,000"):
        read(tmp_path, *rows)
