"""Sessions on disk: planned turns, known times, and refused schedules."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from aiperf.errors import PluginError
from aiperf.prepare.due_times import PhaseConversations
from aiperf.prepare.session_starts import with_sessions
from aiperf.rundir.store import Store
from aiperf.rundir.store_writer import StoreWriter
from aiperf.sdk.model import Conversation, HttpRequest, Turn
from aiperf.sdk.plan import PhasePlan
from aiperf.sdk.schedule import ScheduleContext, SessionStarts
from aiperf_testing.journals import plan_for
from schedule_fakes import Lines, Trace, sequential

MS = 10**6


def stored(folder: Path, *conversations: list[float | None]) -> Store:
    """Conversations with the recorded times (ms) of their turns."""
    (folder / "journal").mkdir(parents=True)
    with StoreWriter(folder / "journal") as store:
        for times in conversations:
            turns = tuple(Turn(("x",), timestamp_ms=time) for time in times)
            store.add(Conversation("c", turns), [[HttpRequest("/", b"x")]] * len(turns))
    return Store(folder / "journal")


class Planned(msgspec.Struct):
    """A phase with its files, read."""

    phase: PhasePlan
    due: list[int]
    rows: list[list[int]]


def planned(folder: Path, store: Store, schedule: Any, **changes: Any) -> Planned:
    fields = {"name": "profiling", "kind": "profiling", "index": 2, "schedule": "x", "entries": store.entries, **changes}
    phase = PhasePlan(**fields)
    data = PhaseConversations(phase, store, sequential, 7)
    if isinstance(schedule, type):
        schedule = schedule(ScheduleContext(7, phase, data=data))
    plan = plan_for(folder, phases=(phase,), journal=str(folder / "journal"))
    found = with_sessions(plan, phase, data, schedule, "the plugin schedules:x of acme 1.2")
    due, rows = (np.fromfile(str(file), dtype="<i8") for file in (found.due_file, found.sessions_file))
    return Planned(found, due.tolist(), rows.reshape(-1, 3).tolist())


def test_later_turns_have_their_recorded_time_or_wait_for_the_answer(tmp_path: Path) -> None:
    store = stored(tmp_path, [1000, 1400, None], [900], [1100, 800])
    found = planned(tmp_path, store, Trace)
    assert found.rows == [[1, 1, 0], [0, 3, 1], [2, 2, 4]]
    assert found.due == [0, 100 * MS, 500 * MS, -1, 200 * MS, 0]
    assert (found.phase.planned, found.phase.zero_ns, found.phase.spacing_ns) == (6, 900 * MS, None)
    assert (Path(str(found.phase.due_file)).name, Path(str(found.phase.sessions_file)).name) == ("due-2.bin", "sessions-2.bin")


def test_users_later_turns_follow_their_first_by_the_spacing(tmp_path: Path) -> None:
    """Five users, four turns, 5 requests/s, 30 requests."""
    store = stored(tmp_path, [None] * 4, [None] * 4, [None] * 4)
    found = planned(tmp_path, store, Lines, users=5, rate=5.0, request_count=30)
    assert found.phase.spacing_ns == 1000 * MS
    starts = [found.due[first] // MS for _, _, first in found.rows]
    assert starts[:7] == [0, 200, 400, 600, 800, 1200, 2400]
    assert sum(due == -1 for due in found.due) == 30 - len(starts)
    sent = sorted(start + k * 1000 for start, (_, turns, _) in zip(starts, found.rows, strict=True) for k in range(turns))
    assert sent == [n * 200 for n in range(30)]
    assert found.phase.planned == 30
    assert [entry for entry, _, _ in found.rows] == [n % 3 for n in range(len(found.rows))]


def test_entries_are_numbered_in_the_whole_data_set(tmp_path: Path) -> None:
    store = stored(tmp_path, [None], [20], [10])
    assert planned(tmp_path, store, Trace, first_entry=1, entries=2).rows == [[2, 1, 0], [1, 1, 1]]


@pytest.mark.parametrize(("limits", "rows"), [
    ({}, [[0, 2, 0], [1, 1, 2], [2, 2, 3]]),
    ({"request_count": 2}, [[0, 1, 0], [1, 1, 1]]),
    ({"request_count": 3}, [[0, 1, 0], [1, 1, 1], [2, 1, 2]]),
    ({"request_count": 9}, [[0, 2, 0], [1, 1, 2], [2, 2, 3]]),
    ({"session_count": 2}, [[0, 2, 0], [1, 1, 2]]),
    ({"duration_ns": 200 * MS}, [[0, 1, 0], [1, 1, 1]]),
    ({"duration_ns": 501 * MS}, [[0, 2, 0], [1, 1, 2], [2, 1, 3]]),
    ({"duration_ns": 501 * MS, "request_count": 3}, [[0, 1, 0], [1, 1, 1], [2, 1, 2]]),
])  # fmt: skip
def test_counts_and_durations_cut_the_trace(tmp_path: Path, limits: dict[str, int], rows: list[list[int]]) -> None:
    """Acceptance check 10.  Turns at 0 and 500 ms; 100 ms; 200 and 900 ms."""
    store = stored(tmp_path, [0, 500], [100], [200, 900])
    found = planned(tmp_path, store, Trace, **limits)
    assert found.rows == rows
    assert found.phase.planned == len(found.due) == sum(turns for _, turns, _ in rows)


def test_live_answers_leave_the_count_of_a_duration_open(tmp_path: Path) -> None:
    store = stored(tmp_path, [0, None], [100])
    assert planned(tmp_path, store, Trace).phase.planned == 3
    found = planned(tmp_path, store, Trace, duration_ns=10**9)
    assert (found.phase.planned, len(found.due)) == (None, 3)


def test_users_due_after_the_end_are_not_started(tmp_path: Path) -> None:
    store = stored(tmp_path, [None] * 3)
    found = planned(tmp_path, store, Lines, users=4, rate=5.0, duration_ns=10**9)
    assert [due // MS for due in found.due if due >= 0] == [0, 200, 400, 600]
    assert len(found.due) == 5, "one request a slot: the first user's second turn is the fifth"
    assert planned(tmp_path, store, Lines, users=4, rate=5.0, session_count=6).rows[5][0] == 0


@pytest.mark.parametrize("count", [1, 4, 4095, 4097, 20_000])
def test_a_request_count_is_met_exactly_by_the_first_slots(tmp_path: Path, count: int) -> None:
    store = stored(tmp_path, [None] * 2, [None] * 7, [None])
    found = planned(tmp_path, store, Lines, users=6, rate=1.0, request_count=count)
    assert found.phase.planned == len(found.due) == count
    slots = [found.due[first] // 10**9 + 6 * k for _, turns, first in found.rows for k in range(turns)]
    assert sorted(slots) == list(range(count))


class Given:
    """A third-party schedule."""

    paced, spacing_ns, zero_ns = True, None, 0

    def __init__(self, *columns: Any) -> None:
        self.columns = columns

    def due_block(self, first: int, count: int) -> Any:
        raise NotImplementedError

    def starts(self, first: int, count: int) -> Any:
        return SessionStarts(*(np.array(column)[first : first + count] for column in self.columns))


@pytest.mark.parametrize(("columns", "said"), [
    (([5, 4], [0, 0], [1, 1]), "go back in time"),
    (([-1, 4], [0, 0], [1, 1]), "go back in time"),
    (([0.0, 4.0], [0, 0], [1, 1]), "gave float64 of shape"),
    (([0, 4], [0], [1, 1]), "for 3 sessions"),
    (([0, 4], [0, 1], [1, 1]), "gave session 1 the entry 1, and the phase has 1"),
    (([0, 4], [0, 0], [1, 3]), "gave session 1 3 turns, and its conversation has 2"),
    (([0, 4], [0, 0], [0, 1]), "gave session 0 0 turns"),
    ((7,), "failed at session 0"),
])  # fmt: skip
def test_a_schedule_that_breaks_its_contract_is_named(tmp_path: Path, columns: tuple[Any, ...], said: str) -> None:
    store = stored(tmp_path, [None, None])
    with pytest.raises(PluginError) as caught:
        planned(tmp_path, store, Given(*columns), session_count=3)
    assert said in caught.value.message
    assert "of acme 1.2" in caught.value.message
