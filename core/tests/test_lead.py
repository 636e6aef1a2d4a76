"""A data set that is made shortly before its use."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from aiperf.prepare import lead
from aiperf.prepare.build import build
from aiperf.prepare.lead import Lead
from aiperf.prepare.pace import Pace
from aiperf.rundir.store import Store
from aiperf.rundir.uses import NAME, uses_of
from aiperf.sdk.plan import Plan
from test_build import fakes, no_priority_of_the_builder, promised  # noqa: F401  # fixtures

WAVE, ENTRIES = 4, 50


class SparingLoad:
    """Takes an entry whenever the builder rests.  readable: how many there were then.  rests: after so many the load ends."""

    def __init__(self, rests: int, monkeypatch: pytest.MonkeyPatch, asks: int | None = None) -> None:
        self._rests, self._asks = rests, asks
        self.readable: list[int] = []
        monkeypatch.setattr("aiperf.prepare.entries.sleep", self._rest)
        monkeypatch.setattr("aiperf.prepare.entries._HEAD_S", 0.0)
        monkeypatch.setattr(lead, "AHEAD_BYTES", 1)

    def __call__(self, plan: Plan) -> Callable[[], bool]:
        directory = Path(plan.output.journal)
        self.store, uses = Store(directory, looks=True), uses_of(directory, 0)
        assert uses is not None
        self.uses = uses
        self.first = len(list(self.store.readable()))
        return lambda: len(self.readable) == self._rests or not self._heeded()

    def _heeded(self) -> bool:
        """Take the entry that is asked for, once it is there."""
        self.store.grow()
        if self._asks is not None and self.store.has(self._asks):
            self.uses.note(self.store.place(self._asks))
            self.uses.wait(0)
            self._asks = None
        return True

    def _rest(self, seconds: float) -> None:
        self.store.grow()
        self.readable.append(len(list(self.store.readable())))
        if self._asks is not None:
            self.uses.wait(1)
        else:
            self.uses.note(self.store.place(len(self.readable) - 1))


@pytest.mark.parametrize("changes", [{}, {"any_order": True}, {"each": 3}])
def test_a_wave_is_made_ahead_of_what_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any]) -> None:
    load = SparingLoad(10, monkeypatch)
    plan = build(promised(tmp_path, data={"sparing": True, **changes}), load)
    assert load.first == WAVE
    assert load.readable == [2 * WAVE] * 5 + [9, 10, 11, 12, 13]
    directory = Path(plan.output.journal)
    assert len(list(Store(directory).readable())) == 14
    assert not (directory / NAME).exists()


def test_what_a_request_waits_for_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    load = SparingLoad(2, monkeypatch, asks=30)
    build(promised(tmp_path, data={"sparing": True}), load)
    assert load.readable[0] == 2 * WAVE
    assert 31 + WAVE <= load.readable[1] <= 32 + WAVE


def test_small_entries_are_made_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lead, "AHEAD_BYTES", 1000)
    made = Lead(2, None, ENTRIES, Pace())
    for number in range(1, 12):
        made.note(100 * number)
        assert not made.far_enough(0)
    made.note(1200)
    assert made.far_enough(0) and not made.far_enough(3)


@pytest.mark.parametrize(("due_s", "rests"), [(1.0, True), (0.1, False)])
def test_entries_whose_due_times_press_are_made_on(monkeypatch: pytest.MonkeyPatch, due_s: float, rests: bool) -> None:
    monkeypatch.setattr(lead, "AHEAD_BYTES", 1)
    monkeypatch.setattr(lead, "monotonic", lambda: 0.0)
    speed = Pace()
    speed.entries, speed.rate = 10, 10.0  # four times as long beside the load: 0.4 s an entry
    made = Lead(2, (np.arange(ENTRIES) * due_s * 1e9).astype(np.int64), ENTRIES, speed)
    for number in range(1, 11):
        made.note(number)
    assert made.far_enough(0)
    assert made.may_rest(0) is rests
