"""Each test of the transport runs with both readers."""

from __future__ import annotations

import pytest
from aiperf_reader import ReaderError, SocketReader


def _missing() -> str | None:
    try:
        SocketReader.opened().close()
    except ReaderError as error:
        return str(error)
    return None


_MISSING = _missing()
_LOOPS_OWN = {
    "test_events_that_were_sent_together_hide_no_segment", "test_segments_that_were_read_together_are_counted",
    "test_what_comes_right_behind_a_read_is_later_than_it_and_counted",
}  # fmt: skip
"""Tests that need the loop to read late, or change how it reads: the thread reads at once."""


@pytest.fixture(autouse=True, params=["python", "compiled"])
def reader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The value of AIPERF_READER."""
    kind: str = request.param
    if kind == "compiled":
        if _MISSING is not None:
            pytest.skip(_MISSING)
        if request.node.originalname in _LOOPS_OWN:
            pytest.skip("it looks into the reads of the loop")
    monkeypatch.setenv("AIPERF_READER", kind)
    return kind
