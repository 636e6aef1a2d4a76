"""Snapshots of a run, made of what workers and reducers tell."""

from __future__ import annotations

from array import array
from pathlib import Path

import pytest
from aiperf.processes import control
from aiperf.run import snapshots
from aiperf.run.snapshots import Snapshots
from aiperf.sdk.plan import PhasePlan
from aiperf.sdk.reducer import PhaseFigures
from aiperf.sdk.snapshot import Snapshot
from aiperf_testing.plans import sample_plan

WARMUP = PhasePlan("warmup", "warmup", 0, "burst", request_count=4, turns=4)
LOAD = PhasePlan("profiling", "profiling", 1, "burst", duration_ns=10 * 10**9, grace_ns=10**9)


class Clock:
    """A monotonic clock that a test moves."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def monotonic(self) -> float:
        return self.now_s

    def time_ns(self) -> int:
        return round(self.now_s * 1e9)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(snapshots, "time", made)
    return made


@pytest.fixture
def made(tmp_path: Path, clock: Clock) -> Snapshots:
    return Snapshots(sample_plan(tmp_path, phases=(WARMUP, LOAD)))


def of_load(made: Snapshots, elapsed_s: float, done: int, reduced: int = 0, **more: bool) -> Snapshot:
    figures = {1: PhaseFigures(1, reduced, 2)}
    return made.make(LOAD, elapsed_s, [control.Counters(0, 1, done + 3, done, 0, 3)], figures, **{"sending": True, **more})


def test_rates_are_of_the_last_ten_seconds_and_of_the_phase(made: Snapshots, clock: Clock) -> None:
    made.begin(LOAD)
    rates = []
    for at in range(1, 41):
        clock.now_s += 0.5
        now = of_load(made, at * 0.5, min(at, 20) * 10)
        rates.append((round(now.rate, 3), now.recent_rate))
    assert rates[1] == (20.0, 20.0) and rates[19] == (20.0, 20.0)
    assert rates[39] == (10.0, pytest.approx(0.0, abs=0.6)), "nothing has ended for ten seconds"


def test_a_phase_has_a_status_from_its_wait_to_its_end(made: Snapshots) -> None:
    made.begin(WARMUP)
    first = made.make(WARMUP, 1.0, [control.Counters(0, 0, 4, 2, 0, 2)], {}, sending=True)
    assert [each.status for each in first.phases] == ["Warmup", "Waiting"] and first.phases[1].planned is None
    assert made.make(WARMUP, 1.5, [], {}, sending=False).status == "Warmup Grace"
    made.begin(LOAD)
    seen = [of_load(made, 3.0, 9, **more) for more in (
        {}, {"sending": False}, {"sending": False, "over": True}, {"sending": False, "over": True, "last": True},
    )]  # fmt: skip
    assert [each.status for each in seen] == ["Profiling", "Grace Period", "Processing", "Complete"]
    assert [each.phases[0].status for each in seen] == ["Complete"] * 4 and seen[-1].last
    assert [each.number for each in seen] == [3, 4, 5, 6]


def test_the_rest_of_the_reduction_has_a_time_of_its_own(made: Snapshots, clock: Clock) -> None:
    made.begin(LOAD)
    of_load(made, 1.0, 100, 20)
    clock.now_s += 2.0
    now = of_load(made, 3.0, 100, 40)
    assert now.progress is not None
    assert (now.progress.reduced, now.progress.failed, now.progress.reduce_eta_s) == (40, 2, 6.0)
    done = of_load(made, 4.0, 100, 100).progress
    assert done is not None and done.reduce_eta_s == 0.0


def test_arrivals_are_due_by_their_file(tmp_path: Path, clock: Clock) -> None:
    due = tmp_path / "due"
    due.write_bytes(array("q", [0, 10**9, 2 * 10**9, 3 * 10**9, 9 * 10**9]).tobytes())
    paced = PhasePlan("profiling", "profiling", 1, "rate", rate=1.0, due_file=str(due), planned=4)
    made = Snapshots(sample_plan(tmp_path, phases=(WARMUP, paced)))
    made.begin(paced)
    told = [made.make(paced, at, [], {}, sending=True).phases[1].due for at in (0.0, 2.5, 60.0)]
    assert told == [1, 3, 4]
    closed = Snapshots(sample_plan(tmp_path, phases=(WARMUP, LOAD)))
    closed.begin(LOAD)
    assert closed.make(LOAD, 1.0, [], {}, sending=True).phases[1].due is None


def test_a_day_of_snapshots_keeps_what_is_recent_alone(made: Snapshots, clock: Clock) -> None:
    made.begin(LOAD)
    for at in range(5000):
        clock.now_s += 0.5
        of_load(made, at / 2, at, at // 2)
    assert len(made._ended) < 30 and len(made._reduced) < 30
