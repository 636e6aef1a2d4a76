"""Lanes of agentic replay begin and wait as those of the reference do, by a log that was kept of it.

``make differential`` (tests/differential/test_lanes_of_the_reference.py) compares the log with what the release and the
nightly build tell.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from lane_rows import conversations, equal, log, rows, written


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AIPERF_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        found: dict[str, Any] = json.loads(json.dumps(rows(conversations(written(tmp_path_factory.mktemp("traces"))))))
    return found


def test_lanes_are_cut_at_the_instants_of_the_reference(told: dict[str, Any]) -> None:
    theirs = log()["lanes"]
    assert len(theirs) == len(told["lanes"]) == 2 and all(len(lanes) == 64 for lanes in theirs)
    differing = [
        pair for lanes in zip(told["lanes"], theirs, strict=True) for pair in zip(*lanes, strict=True) if not equal(*pair)
    ]
    assert differing == []


def test_turns_wait_for_what_they_wait_for_in_the_reference(told: dict[str, Any]) -> None:
    theirs = log()["streams"]
    assert any(len(turn[3]) > 1 for stream in theirs for turn in stream[2]), "some requests wait for several streams"
    differing = [pair for pair in zip(told["streams"], theirs, strict=True) if not equal(*pair)]
    assert differing == []


def test_a_time_of_a_microsecond_more_is_a_difference() -> None:
    row = ["tr0", 12.5, [["tr0", 4, False]]]
    assert equal(row, ["tr0", 12.5 + 1e-6, [["tr0", 4, False]]])
    assert not equal(row, ["tr0", 12.501, [["tr0", 4, False]]])
    assert not equal(row, ["tr0", 12.5, [["tr0", 4, True]]])
