"""What is wrong with the streams of a conversation has a sentence."""

from __future__ import annotations

import math
from typing import Any

import pytest
from aiperf.sdk.trees import Branch, Pause, Stream, faults


def tree(root: dict[str, Any] | None = None, branch: dict[str, Any] | None = None, **child: Any) -> tuple[Stream, ...]:
    """A root of three turns that starts a child of one turn behind its first one; with changes to each of them."""
    branches = (Branch(**{"children": (1,), "after": 0, "joins": 2, **(branch or {})}),)
    first = {"id": "r", "first": 0, "turns": 3, "branches": branches, **(root or {})}
    return Stream(**first), Stream(**{"id": "c", "first": 3, "turns": 1, "parent": 0, "depth": 1, **child})


def test_a_good_tree_has_no_faults() -> None:
    assert list(faults(tree(), 4)) == []
    assert list(faults(tree(scope=1), 4)) == []


@pytest.mark.parametrize(("streams", "said"), [
    (tree(scope=2), "the scope of stream 1 ('c') is 2; it is the number of a stream from 0 to 1"),
    (tree(scope=-1), "the scope of stream 1 ('c') is -1; it is the number of a stream from 0 to 1"),
    (tree({"scope": 1}), "the scope of stream 0 ('r') is 1; it is the number of a stream from 0 to 0"),
    (tree(first=2), "stream 1 ('c') begins at turn 2, and the streams before it end at 3"),
    (tree(turns=2), "its streams have 5 turns, and the conversation has 4"),
    (tree({"branches": ()}), "nothing starts stream 1 ('c')"),
    (tree({"parent": 1}), "the first stream is the root, with the parent -1 and the depth 0"),
    (tree(branch={"children": ()}), "branch 0 of stream 0 ('r'): it starts nothing"),
    (tree(branch={"children": (1, 2)}), "stream 0 ('r') starts stream 2; streams behind it are 1 to 1"),
    (tree(branch={"children": (1, 1)}), "stream 0 ('r') starts stream 1, which stream 0 starts, too"),
    (tree(depth=2), "stream 1 has the parent 0 and the depth 2, and stream 0 ('r') starts it"),
    (tree(branch={"after": 3, "joins": None}),
     "branch 0 of stream 0 ('r'): it begins after turn 3, and the stream's last turn is 2"),
    (tree(branch={"joins": 0}), "branch 0 of stream 0 ('r'): turn 0 can't wait for it: later turns are 1 to 2"),
    (tree(branch={"after": None, "forks": True}),
     "branch 0 of stream 0 ('r'): nothing is said before the first turn that a fork could go on from"),
    (tree(branch={"offsets_ms": (1.0, 2.0)}), "branch 0 of stream 0 ('r'): 2 offsets for 1 children"),
    (tree(branch={"offsets_ms": (math.nan,)}), "branch 0 of stream 0 ('r'): an offset is no time from 0 ms on"),
    (tree(branch={"behind": (0,)}), "branch 0 of stream 0 ('r'): it waits for branches (0,); there are none before it"),
    (tree(branch={"start_ms": math.inf}), "branch 0 of stream 0 ('r'): its recorded start is inf ms"),
    (tree(branch={"pause": Pause(-1.0)}), "branch 0 of stream 0 ('r'): its pause is no time, or its sigma is not from 0 to 10"),
])  # fmt: skip
def test_each_fault_has_a_sentence(streams: tuple[Stream, ...], said: str) -> None:
    assert said in list(faults(streams, 4))
