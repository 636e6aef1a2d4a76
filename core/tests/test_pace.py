"""A data set that is made more slowly than the load takes it is told before the load."""

from __future__ import annotations

import logging
from itertools import count

import numpy as np
import pytest
from aiperf.prepare import pace
from aiperf.prepare.pace import Pace, ahead, tell
from aiperf.sdk.columns import Ints


def made(rate: float, entries: int, monkeypatch: pytest.MonkeyPatch) -> Pace:
    """So many entries, the first one after five seconds, the others at this rate."""
    clock = count()
    monkeypatch.setattr(pace, "monotonic", lambda: 5.0 + next(clock) / rate)
    done = Pace()
    for entry in range(1, entries + 1):
        done.note(entry)
    return done


def due_ns(due_s: list[float]) -> Ints:
    return (np.array(due_s) * 1e9).astype(np.int64)


def test_the_cost_of_the_first_entry_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    assert made(20.0, 11, monkeypatch).rate == pytest.approx(20)
    assert made(20.0, 1, monkeypatch).rate == 0


def test_the_cost_of_what_is_made_once_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter([*range(20), *(19 + made / 1000 for made in range(1, 81))])
    monkeypatch.setattr(pace, "monotonic", lambda: float(next(times)))
    done = Pace()
    for entry in range(1, 101):
        done.note(entry)
    assert done.rate == pytest.approx(1000)


@pytest.mark.parametrize(("load", "told"), [
    # Entry k, from the tenth on, is made at (k - 9) / 20 s, and due at k / load s.
    (100.0, "request 14 and others would wait for their entries, up to 3.5 s"),  # 13: 0.20 - 0.13
    (26.0, "request 45 and others would wait for their entries, up to 0.7 s"),  # 44: 1.75 - 1.69
    (22.0, None), (5.0, None),
])  # fmt: skip
def test_a_load_that_outruns_the_builder_waits_for_entries(
    load: float, told: str | None, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        enough = ahead(made(20.0, 10, monkeypatch), due_ns([at / load for at in range(100)]), 100, lambda: None)
    assert (enough is not None) == (len(caplog.messages) == 1) == (told is not None)
    for message in caplog.messages:
        assert told is not None
        assert told in message
        assert "about 20 entries/s" in message
        assert "entries are made before the load, as many as it takes, all 100 in about 4 s" in message


def test_entries_are_made_ahead_until_the_others_come_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    done = made(20.0, 10, monkeypatch)
    enough = ahead(done, due_ns([at / 100.0 for at in range(100)]), 100, lambda: None)
    assert enough is not None
    monkeypatch.setattr(pace, "_LOOK_S", 0.0)
    found = []
    for entries in range(11, 101):
        done.entries = entries
        found.append(enough())
    # Beside the load entry 99 takes (100 - made) / 5 s, and is due at 0.99 s.
    assert found.index(True) + 11 == 95


def test_what_is_made_soon_needs_no_word(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        tell(made(20.0, 10, monkeypatch), 29)
        tell(made(20.0, 1, monkeypatch), 900)
    assert caplog.messages == []


def test_without_due_times_only_the_pace_is_told(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        tell(made(2.5, 3, monkeypatch), 100)
    (record,) = caplog.records
    assert (record.levelname, "the other 97 of 100 entries" in record.getMessage()) == ("INFO", True)
