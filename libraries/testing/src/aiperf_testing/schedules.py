"""The contract of schedules: arithmetic, independent of the order and size of the requested parts."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pytest
from aiperf.sdk.columns import Ints
from aiperf.sdk.plan import PhasePlan
from aiperf.sdk.schedule import Schedule, ScheduleContext, SessionSchedule

from aiperf_testing.findings import unlike
from aiperf_testing.manifests import row_of

_MANY = 9000  # more than two blocks of draws


class ThreeTurns:
    """A data set of 40 conversations with three turns, recorded 25 ms apart."""

    count = 40

    def entry(self, session: int) -> int:
        return session % self.count

    def turns(self, entry: int) -> int:
        return 3

    def timestamp_ns(self, entry: int, turn: int) -> int:
        return (25 * entry + 400 * turn) * 1_000_000


PHASE = PhasePlan("profiling", "profiling", 0, "any", rate=200.0, users=6)
CONTEXT = ScheduleContext(7, PHASE, data=ThreeTurns(), source="the contract's data set")
"""A phase with a rate, users and a data set, which suits most schedules."""


class ScheduleContract:
    """Subclass with a schedule's class, and another context where it needs one::

        class TestMineKeepsTheContract(ScheduleContract):
            schedule = Mine

    registered: a package registers the schedule by name; False for schedules of hooks.
    """

    schedule: ClassVar[type[Schedule]]
    context: ClassVar[ScheduleContext] = CONTEXT
    registered: ClassVar[bool] = True

    def made(self) -> Schedule:
        """A new schedule."""
        return type(self).schedule(self.context)

    def _whole(self) -> Ints:
        return self.made().due_block(0, _MANY)

    def test_its_manifest_says_what_it_is(self) -> None:
        if not self.registered:
            pytest.skip("no package registers it by name")
        row = row_of("schedules", self.schedule)
        assert row.summary, "the manifest row has no summary: write one sentence"
        follows = row.capabilities.get("follows")
        assert follows is None or self.made().paced is (follows != "free_slots"), (
            f"its manifest has capabilities: {{follows: {follows}}}, and paced is {self.made().paced}"
        )

    def test_due_times_are_whole_nanoseconds_that_never_go_back(self) -> None:
        due = self._whole()
        assert due.dtype == np.int64, unlike(due.dtype, np.int64, "due times are whole ns")
        assert len(due) <= _MANY, unlike(len(due), f"at most {_MANY}", "give no more than count due times")
        assert (due >= 0).all() and (np.diff(due) >= 0).all(), (
            "a due time is negative, or before the one ahead of it: give times since the phase began, in their order"
        )

    def test_there_are_due_times_where_it_is_paced_and_none_elsewhere(self) -> None:
        assert bool(len(self._whole())) is self.made().paced, (
            unlike(len(self._whole()), f"due times: {self.made().paced}", "a paced schedule has due times, any other has none")
        )

    def test_the_same_context_gives_the_same_due_times(self) -> None:
        np.testing.assert_array_equal(self._whole(), self._whole())

    @pytest.mark.parametrize("size", [1, 97, 4096])
    def test_blocks_of_any_size_join_to_the_whole(self, size: int) -> None:
        whole, made = self._whole()[: 50 * size], self.made()
        blocks = [made.due_block(first, min(size, len(whole) - first)) for first in range(0, len(whole), size)]
        np.testing.assert_array_equal(np.concatenate([np.empty(0, dtype=np.int64), *blocks]), whole)

    def test_shards_that_ask_for_their_arrivals_alone_share_out_the_whole(self) -> None:
        whole = self._whole()[:300]
        for shard in range(3):
            made = self.made()
            mine = [made.due_block(n, 1)[0] for n in range(shard, len(whole), 3)]
            np.testing.assert_array_equal(np.array(mine, dtype=np.int64), whole[shard::3])

    def test_arrivals_may_be_asked_for_in_any_order(self) -> None:
        whole, made = self._whole(), self.made()
        for first in (5000, 0, 4090, 17):
            np.testing.assert_array_equal(made.due_block(first, 20), whole[first : first + 20])

    def test_sessions_start_when_they_are_due_with_what_the_data_set_has(self) -> None:
        made = self.made()
        if not isinstance(made, SessionSchedule):
            pytest.skip("it says nothing of sessions")
        assert self.context.data is not None, "context.data is None: sessions need a context with a data set"
        starts = made.starts(0, 100)
        np.testing.assert_array_equal(starts.due_ns, self.made().due_block(0, 100))
        assert len(starts.due_ns) == len(starts.entry) == len(starts.turns), (
            unlike(len(starts.due_ns), len(starts.entry), "due_ns, entry and turns have a value for each session")
        )
        for entry, turns in zip(starts.entry.tolist(), starts.turns.tolist(), strict=True):
            assert 0 <= entry < self.context.data.count, (
                unlike(entry, f"an entry from 0 to {self.context.data.count - 1}", "name entries of the data set")
            )
            assert 1 <= turns <= self.context.data.turns(entry), (
                unlike(turns, f"1 to {self.context.data.turns(entry)} turns", "as many as its entry has, at most")
            )
