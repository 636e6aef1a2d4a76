"""Replayed traces and users who come one after the other: tables of numbers."""

from __future__ import annotations

import logging
import math
from typing import Any

import numpy as np
import pytest
from aiperf.errors import ConfigError
from aiperf.sdk.plan import PhasePlan, Replay
from aiperf.sdk.schedule import ScheduleContext, SessionSchedule, SessionStarts
from aiperf_schedule_standard.replay import FixedSchedule
from aiperf_schedule_standard.user_centric import UserCentric, virtual_history
from hypothesis import given, settings
from hypothesis import strategies as st


class Told:
    """Conversations of so many turns, that begin at such times (ms, None has none)."""

    def __init__(self, turns: list[int], begins_ms: list[float | None] | None = None) -> None:
        self.count, self._turns, self._begins = len(turns), turns, begins_ms or [None] * len(turns)

    def entry(self, session: int) -> int:
        return session % self.count

    def turns(self, entry: int) -> int:
        return self._turns[entry]

    def timestamp_ns(self, entry: int, turn: int) -> int:
        begins = self._begins[entry]
        return -1 if begins is None or turn else round(begins * 1e6)


def phase(schedule: str, **changes: Any) -> PhasePlan:
    return PhasePlan(**{"name": "profiling", "kind": "profiling", "index": 0, "schedule": schedule, **changes})


def users(turns: list[int], n: int, q: float) -> UserCentric:
    return UserCentric(ScheduleContext(1, phase("user_centric", users=n, rate=q), data=Told(turns)))


def replayed(begins_ms: list[float | None], turns: list[int] | None = None, **window: Any) -> FixedSchedule:
    data = Told(turns or [1] * len(begins_ms), begins_ms)
    made = phase("fixed_schedule", replay=Replay(**window) if window else None)
    return FixedSchedule(ScheduleContext(1, made, data=data, source="trace.jsonl"))


def table(starts: SessionStarts) -> list[tuple[float, int]]:
    """(seconds, turns) of each session."""
    return [(due / 1e9, turns) for due, turns in zip(starts.due_ns.tolist(), starts.turns.tolist(), strict=True)]


def requests(schedule: UserCentric, sessions: int) -> list[int]:
    """When every turn of the first sessions is due where answers are on time, earliest first."""
    made = schedule.starts(0, sessions)
    each = zip(made.due_ns.tolist(), made.turns.tolist(), strict=True)
    return sorted(due + k * schedule.spacing_ns for due, turns in each for k in range(turns))


# Users


def test_five_users_begin_in_the_steady_state() -> None:
    """Acceptance check 7: five users, four turns, 5 requests/s, 30 requests."""
    schedule = users([4, 4, 4], 5, 5.0)
    assert table(schedule.starts(0, 7)) == [(0.0, 4), (0.2, 2), (0.4, 3), (0.6, 1), (0.8, 2), (1.6, 4), (2.2, 4)]
    assert requests(schedule, 20)[:30] == [n * 200_000_000 for n in range(30)]


def by_definition(n: int, mean_turns: int) -> list[tuple[int, int]]:
    """Spec timing §15, word for word."""
    lifetime, c = max(1, mean_turns - 1), 1
    if n > 2:
        c = min(c for c in range(2, n) if math.gcd(c, n) == 1)
    rows = []
    for i in range(1, n):
        age = (n - i) * lifetime
        left = lifetime - age // n
        order = n - (age % n) if math.gcd(n, lifetime) == 1 else n - ((i * c) % n)
        rows.append((order, left))
    return rows


@given(st.integers(1, 300), st.integers(2, 60))
def test_the_history_is_what_its_definition_says(n: int, mean_turns: int) -> None:
    history = virtual_history(n, mean_turns)
    assert history == by_definition(n, mean_turns)
    assert sorted(order for order, _ in history) == list(range(1, n))
    assert all(1 <= left < mean_turns for _, left in history)


def test_fifteen_users_of_twenty_turns_start_as_in_the_worked_table() -> None:
    sequence = [(20, 0), (6, 1), (11, 2), (16, 3), (2, 4), (7, 5), (12, 6), (17, 7), (3, 8), (8, 9), (13, 10), (18, 11),
                (4, 12), (9, 13), (14, 14)]  # fmt: skip
    assert table(users([20], 15, 1).starts(0, 15)) == [(at, turns) for turns, at in sequence]
    users_of_order = {order: i + 2 for i, (order, _) in enumerate(virtual_history(15, 20))}
    assert [users_of_order[order] for order in range(1, 15)] == [5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15, 4, 8, 12]


def test_five_users_of_four_turns_are_replaced_as_in_the_worked_table() -> None:
    found = users([4], 5, 5)
    assert table(found.starts(0, 7)) == [(0, 4), (0.2, 2), (0.4, 3), (0.6, 1), (0.8, 2), (1.6, 4), (2.2, 4)]
    assert found.spacing_ns == 10**9
    # Users 6, 3, 5, 2, 4; again without 2, who is replaced by 7; then 6, and 8 in the place of 3.
    assert requests(found, 7)[:12] == [n * 200_000_000 for n in range(12)]


def test_four_users_of_three_turns_follow_the_worked_table() -> None:
    assert table(users([3], 4, 5).starts(0, 4)) == [(0, 3), (0.2, 1), (0.4, 1), (0.6, 2)]
    assert [order for order, _ in virtual_history(4, 3)] == [1, 2, 3], "users 2, 3 and 4"


@pytest.mark.parametrize(("n", "turns", "q", "starts"), [
    (1, 3, 2, [(0, 3), (1.5, 3), (3.0, 3)]),
    (2, 3, 2, [(0, 3), (0.5, 1), (1.5, 3), (3.0, 3)]),
    (2, 2, 1, [(0, 2), (1, 1), (3, 2), (4, 2)]),
])  # fmt: skip
def test_one_user_and_two_follow_the_same_rules(n: int, turns: int, q: float, starts: list[tuple[float, int]]) -> None:
    assert table(users([turns], n, q).starts(0, len(starts))) == starts


@settings(deadline=None, max_examples=60)
@given(st.lists(st.integers(1, 9), min_size=1, max_size=12), st.integers(1, 40), st.floats(0.1, 1000))
def test_every_slot_has_one_request_whatever_the_conversations_lengths(turns: list[int], n: int, q: float) -> None:
    """Acceptance check 8: a conversation shorter than its user's history is clamped, and nobody's place stays empty."""
    if round(sum(turns) / len(turns)) < 2:
        turns = [max(2, count) for count in turns]
    found = users(turns, n, q)
    starts = found.starts(0, 3 * n)
    assert all(count <= turns[entry] for entry, count in zip(starts.entry.tolist(), starts.turns.tolist(), strict=True))
    assert starts.entry.tolist() == [session % len(turns) for session in range(3 * n)]
    assert (np.diff(starts.due_ns) >= 0).all()
    # All that is due before the first session that isn't in the table.
    last = int(found.starts(3 * n, 1).due_ns[0])
    sent = [at for at in requests(found, 3 * n) if at < last - 50_000]
    assert np.abs(np.array(sent) - np.arange(len(sent)) * 1e9 / q).max() <= len(sent)


def test_starts_do_not_depend_on_who_asks_for_which() -> None:
    whole, pieces = users([2, 5, 3], 7, 3.0).starts(0, 50), users([2, 5, 3], 7, 3.0)
    assert table(pieces.starts(20, 30)) == table(whole)[20:]
    assert table(pieces.starts(0, 20)) == table(whole)[:20]
    assert pieces.due_block(3, 2).tolist() == whole.due_ns[3:5].tolist()


@pytest.mark.parametrize(("turns", "said"), [([1], "have 1"), ([1, 2, 1], "have 1.33")])
def test_short_conversations_are_refused(turns: list[int], said: str) -> None:
    with pytest.raises(ConfigError, match="at least 2 turns on average, and those of the data set have") as caught:
        users(turns, 3, 1.0)
    assert caught.value.message.endswith(said)
    assert "--session-turns-mean" in caught.value.hints[0]
    assert "--request-rate" in caught.value.hints[0]


def test_problems_of_one_turn_each_have_a_user_and_the_rate_is_kept() -> None:
    context = ScheduleContext(1, phase("user_centric", users=3, rate=2.0), data=Told([1] * 8), once=True)
    starts = UserCentric(context).starts(0, 8)
    assert table(starts) == [(place * 0.5, 1) for place in range(8)]
    assert sorted(starts.entry.tolist()) == list(range(8))


def test_users_without_a_number_of_users_say_so() -> None:
    with pytest.raises(ConfigError, match="needs a rate and a number of users") as caught:
        UserCentric(ScheduleContext(1, phase("user_centric", rate=1.0), data=Told([2])))
    assert "--num-users" in caught.value.hints[0]


@pytest.mark.parametrize("schedule", [FixedSchedule, UserCentric])
def test_without_a_data_set_there_are_no_sessions(schedule: Any) -> None:
    with pytest.raises(ConfigError, match="needs a data set"):
        schedule(ScheduleContext(1, phase("user_centric", rate=1.0, users=2)))


# Traces

CHECK_9: list[float | None] = [1000, 1200, 1500, 2500]


@pytest.mark.parametrize(("window", "starts_s", "zero_s"), [
    ({}, [0, 0.2, 0.5, 1.5], 1.0),
    ({"auto_offset": False}, [1, 1.2, 1.5, 2.5], 0),
    ({"auto_offset": False, "start_ms": 1100, "end_ms": 1500}, [0.1, 0.4], 1.1),
    ({"auto_offset": False, "start_ms": 1200}, [0, 0.3, 1.3], 1.2),
    ({"end_ms": 1200}, [0, 0.2], 1.0),
    ({"start_ms": 1100}, [0, 0.3, 1.3], 1.2),
])  # fmt: skip
def test_a_trace_starts_at_its_offset(window: dict[str, Any], starts_s: list[float], zero_s: float) -> None:
    found = replayed(CHECK_9, **window)
    assert [at for at, _ in table(found.starts(0, 9))] == starts_s
    assert (found.zero_ns, found.spacing_ns) == (zero_s * 1e9, None)


def test_a_window_keeps_a_conversation_whole_or_leaves_it_out() -> None:
    """The first begins before the window, the last behind it; of the one that begins in it all three turns stay."""
    found = replayed([900, 1200, 1600], [2, 3, 4], start_ms=1000, end_ms=1500).starts(0, 9)
    assert table(found) == [(0.0, 3)]


def test_conversations_go_by_their_first_time_and_ties_by_the_file() -> None:
    found = replayed([30, 10.5, 30, 0], [1, 2, 3, 4]).starts(0, 9)
    assert found.entry.tolist() == [3, 1, 0, 2]
    assert table(found) == [(0, 4), (0.0105, 2), (0.03, 1), (0.03, 3)]


def test_a_trace_ends_and_can_be_asked_for_in_pieces() -> None:
    found = replayed(CHECK_9)
    assert [len(found.starts(first, 3).due_ns) for first in (0, 3, 6)] == [3, 1, 0]
    assert found.due_block(2, 5).tolist() == found.starts(0, 9).due_ns[2:].tolist()


def test_how_many_the_window_leaves_out_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        replayed(CHECK_9, start_ms=1100, end_ms=1500)
    window = "--fixed-schedule-start-offset 1100 --fixed-schedule-end-offset 1500"
    assert caplog.messages == [f"{window} leaves out 2 of 4 conversations of trace.jsonl"]
    caplog.clear()
    replayed(CHECK_9)
    assert not caplog.messages


def test_a_window_that_selects_nothing_is_refused_with_what_there_is() -> None:
    with pytest.raises(ConfigError) as caught:
        replayed(CHECK_9, start_ms=3000, end_ms=4000)
    assert "--fixed-schedule-start-offset 3000 --fixed-schedule-end-offset 4000: all 4 conversations" in caught.value.message
    assert "between 1000 and 2500 ms" in caught.value.hints[0]


def test_a_trace_without_times_is_refused_with_file_and_field() -> None:
    with pytest.raises(ConfigError) as caught:
        replayed([1000, None, 1500, None])
    assert caught.value.message.startswith("trace.jsonl has no 'timestamp' in the first turn of 2 of its 4 conversations")
    assert "the first is number 2" in caught.value.message


def test_both_are_schedules_of_sessions() -> None:
    assert isinstance(replayed(CHECK_9), SessionSchedule)
    assert isinstance(users([3], 4, 5), SessionSchedule)
