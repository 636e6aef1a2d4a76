"""What a run says while no connection can be opened, and how long it waits for one."""

from __future__ import annotations

import pytest
from aiperf.processes.control import Counters
from aiperf.run.reach import FIRST_S, LATER_S, Reach, ends_by_time
from aiperf.sdk.plan import PhasePlan

WHY = "h:80: Connection refused"


class Load:
    """A run on two workers, at 4 attempts a second; the server is away for some of the time."""

    def __init__(self) -> None:
        self.reach, self.now_s = Reach(), 0.0
        self.reached, self.refused = [0, 0], [0, 0]
        self.said: list[tuple[float, str, bool]] = []

    def run(self, seconds: float, *, away: bool, worker: int = 0) -> None:
        for _ in range(round(4 * seconds)):
            self.now_s += 0.25
            counts = self.refused if away else self.reached
            counts[worker] += 1
            self.look(WHY if away else None)

    def look(self, why: str | None = None, *, on_way: bool = False, waiting_s: float = 0.0) -> None:
        counters = [
            Counters(index, 0, 9, 9, 9, 0, why, self.refused[index], self.reached[index], on_way, waiting_s) for index in (0, 1)
        ]
        if said := self.reach.follow(counters, self.now_s):
            self.said.append((self.now_s, *said))


@pytest.mark.parametrize(
    ("away_s", "lines_s", "failed"),
    [(2, [], 0), (3.5, [3], 14), (30, [3, 13, 23], 120), (90, [3, 13, 23, 33, 43, 53, 63, 73, 83], 360)],
)
def test_a_server_that_is_away_is_told_until_it_is_back(away_s: float, lines_s: list[int], failed: int) -> None:
    load = Load()
    load.run(5, away=False)
    load.run(away_s, away=True)
    load.run(5, away=False)
    away = [sentence for _, sentence, reported in load.said if not reported]
    assert away == [
        f"no connection to the server for {seconds} s, {4 * seconds + 1} requests failed meanwhile: {WHY}"
        for seconds in lines_s
    ]
    back = [sentence for _, sentence, reported in load.said if reported]
    assert back == [
        f"the server is reached again, after {away_s:.1f} s without a connection, {failed} requests failed meanwhile"
    ] * bool(lines_s)
    assert load.reach.gap_s == 0


def test_a_server_that_comes_and_goes_fills_the_log_and_not_the_report() -> None:
    load = Load()
    for _ in range(9):
        load.run(4, away=True)
        load.run(1, away=False)
    assert sum("reached again" in sentence for _, sentence, _ in load.said) == 9
    assert sum(reported for _, _, reported in load.said) == 5


def test_one_worker_that_reaches_the_server_is_enough() -> None:
    load = Load()
    for _ in range(20):
        load.run(0.25, away=True, worker=0)
        load.run(0.25, away=False, worker=1)
    assert (load.said, load.reach.gap_s) == ([], 0)


def test_a_request_on_its_way_is_on_a_connection() -> None:
    load = Load()
    load.run(2, away=True)
    load.look(WHY, on_way=True)
    assert (load.reach.gap_s, load.reach.ever) == (0, True)


def test_attempts_without_an_answer_are_a_gap_too() -> None:
    load = Load()
    for waited in range(1, 16):
        load.now_s = waited * 1.0
        load.look(waiting_s=float(waited))
    assert [sentence for _, sentence, _ in load.said] == [
        f"no connection to the server for {seconds} s, 0 requests failed meanwhile: no attempt to connect has an answer"
        for seconds in (3, 13)
    ]
    load.now_s = 99.0
    load.look(waiting_s=15.0)
    assert load.reach.gap_s == 15, "a worker that says nothing new knows nothing new"


def test_where_nobody_tries_nothing_is_known() -> None:
    load = Load()
    load.run(0.25, away=True)
    load.now_s += 60
    load.look(WHY)
    assert (load.reach.gap_s, load.said) == (0, [])
    load.run(0.25, away=True)
    assert load.reach.gap_s == 60.25


def test_a_gap_goes_on_in_the_next_phase() -> None:
    load = Load()
    load.run(2, away=True)
    load.reach.begin()
    load.refused = [0, 0]
    load.run(2, away=True)
    ((_, sentence, _),) = load.said
    assert sentence == f"no connection to the server for 3 s, 13 requests failed meanwhile: {WHY}"


def test_a_worker_that_counts_from_0_again_changes_nothing() -> None:
    load = Load()
    load.run(5, away=False)
    load.reached = [3, 0]  # another one goes on where it stood
    load.run(4, away=True)
    assert load.reach.gap_s == 3.75
    load.run(0.25, away=False)
    assert load.reach.gap_s == 0


@pytest.mark.parametrize(
    ("ever", "timed", "typed_s", "limit_s"),
    [
        (False, False, None, FIRST_S), (True, False, None, LATER_S), (False, True, None, None), (True, True, None, None),
        (False, True, 7.0, 7.0), (True, True, 7.0, 7.0), (False, False, 7.0, 7.0), (False, False, 0.0, None),
        (True, False, 0.0, None),
    ],
)  # fmt: skip
def test_a_typed_limit_always_holds_and_none_beside_a_duration(
    ever: bool, timed: bool, typed_s: float | None, limit_s: float | None
) -> None:
    reach = Reach()
    reach.ever = ever
    assert reach.limit_s(typed_s, timed=timed) == limit_s


@pytest.mark.parametrize(
    ("durations", "timed"),
    [([60], True), ([None], False), ([5, 60], True), ([None, 60], False), ([5, None], False)],
)
def test_a_run_ends_by_time_where_all_of_its_phases_do(durations: list[int | None], timed: bool) -> None:
    phases = [PhasePlan("p", "warmup", index, "burst", duration_ns=each) for index, each in enumerate(durations)]
    assert ends_by_time(phases) is timed
