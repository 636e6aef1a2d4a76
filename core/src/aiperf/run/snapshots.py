"""What is known of a run while it goes on, twice a second: from the workers' counters and the reducers' figures."""

from __future__ import annotations

import mmap
import time
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from aiperf.processes import control
from aiperf.run.children import Child
from aiperf.run.reach import TELL_S
from aiperf.run.worker_load import WorkerLoads
from aiperf.sdk.plan import PhasePlan, Plan
from aiperf.sdk.reducer import PhaseFigures
from aiperf.sdk.snapshot import (
    COMPLETE,
    GRACE,
    MOST_SERIES,
    PROCESSING,
    PROFILING,
    RECENT_S,
    WAITING,
    WARMUP,
    WARMUP_GRACE,
    CellProgress,
    LiveMetric,
    LiveSeries,
    LiveStatistics,
    LogLine,
    PhaseProgress,
    Snapshot,
    VerdictSoFar,
)

if TYPE_CHECKING:
    from aiperf.sdk.summary import Summary

_NS = 1_000_000_000


class Snapshots:
    """The snapshots of a plan, one after the other.

    verdict: the latest; None before the first.
    """

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._number = 0
        self._phases = {
            each.index: PhaseProgress(each.index, each.name, each.kind, planned=_planned(each)) for each in plan.load.phases
        }
        self._ended: deque[tuple[float, int]] = deque()
        self._reduced: deque[tuple[float, int]] = deque()
        self._loads = WorkerLoads()
        self._dues: dict[int, Dues] = {}
        self.verdict: VerdictSoFar | None = None

    def begin(self, phase: PhasePlan) -> None:
        """The phase begins: what is recent is of it alone."""
        self._ended.clear()
        self._reduced.clear()
        self._dues[phase.index] = Dues(phase)

    def make(
        self, phase: PhasePlan, elapsed_s: float, counters: Collection[control.Counters],
        figures: Mapping[int, PhaseFigures], *, sending: bool, over: bool = False, last: bool = False, gap_s: float = 0.0,
        cell: Callable[[float | None], CellProgress | None] = lambda left_s: None, workers: Sequence[Child] = (),
        series: Sequence[LiveSeries] = (), log: Sequence[LogLine] = (), logged: int = 0,
    ) -> Snapshot:  # fmt: skip
        """The state of the run.

        *elapsed_s*: of the phase.  *figures*: of the reducers, by phase.  *sending*: the phase sends more.  *over*: it has
        ended, and its rest is reduced.  *last*: all is reduced.  *gap_s*: without a connection.  *cell*: from the time left.
        """
        self._number += 1
        plain = snapshot_of(phase, elapsed_s, counters, gap_s)
        known = figures.get(phase.index) or PhaseFigures(phase.index)
        status = COMPLETE if last else PROCESSING if over else _status(phase, sending=sending)
        now_s = time.monotonic()
        done = plain.completed + plain.errors
        progress = replace(
            self._phases[phase.index], status=status, share=plain.share, elapsed_s=plain.elapsed_s,
            eta_s=plain.eta_s if sending else 0.0, due=self._due(phase, elapsed_s, over=over), sent=plain.sent, late=known.late,
            in_flight=plain.in_flight, completed=plain.completed, errors=plain.errors, reduced=known.reduced,
            failed=known.failed, reduce_eta_s=0.0 if last else self._reduce_eta_s(now_s, known.reduced, done),
        )  # fmt: skip
        self._phases[phase.index] = progress
        self._close_earlier(phase, figures)
        return replace(
            plain, cell=cell(plain.eta_s), number=self._number, at_ns=time.time_ns(), status=status, last=last,
            recent_rate=self._recent_rate(now_s, elapsed_s, done), phases=tuple(self._phases.values()),
            metrics=known.metrics, good=known.good, objectives=known.objectives, failures=known.failures,
            further_failures=known.further_failures, delays=known.delays,
            workers=self._loads.rows(workers, {each.index: each for each in counters}, now_s, over=over),
            series=tuple(series[:MOST_SERIES]), further_series=max(0, len(series) - MOST_SERIES),
            log=tuple(log), logged=logged, verdict=self.verdict,
        )  # fmt: skip

    def _close_earlier(self, phase: PhasePlan, figures: Mapping[int, PhaseFigures]) -> None:
        """Phases before this one have ended; answers of theirs may still be reduced."""
        for index, each in self._phases.items():
            if index < phase.index and each.status != WAITING:
                known = figures.get(index) or PhaseFigures(index)
                self._phases[index] = replace(
                    each, status=COMPLETE, eta_s=None, in_flight=0, reduced=known.reduced, failed=known.failed, late=known.late
                )

    def _recent_rate(self, now_s: float, elapsed_s: float, done: int) -> float | None:
        ended = self._ended
        if not ended:
            ended.append((now_s - max(0.0, elapsed_s), 0))
        ended.append((now_s, done))
        while len(ended) > 2 and ended[1][0] <= now_s - RECENT_S:
            ended.popleft()
        (begun_s, before), (end_s, after) = ended[0], ended[-1]
        return (after - before) / (end_s - begun_s) if end_s > begun_s else None

    def _reduce_eta_s(self, now_s: float, reduced: int, done: int) -> float | None:
        self._reduced.append((now_s, reduced))
        while len(self._reduced) > 2 and self._reduced[1][0] <= now_s - RECENT_S:
            self._reduced.popleft()
        if reduced >= done:
            return 0.0
        (begun_s, before), (end_s, after) = self._reduced[0], self._reduced[-1]
        return (done - reduced) * (end_s - begun_s) / (after - before) if after > before else None

    def _due(self, phase: PhasePlan, elapsed_s: float, *, over: bool) -> int | None:
        """Arrivals that are due by now; behind the phase the number stays."""
        dues, known = self._dues.get(phase.index), self._phases[phase.index].due
        return known if over or dues is None else dues.until(elapsed_s)


def completed(snapshot: Snapshot, summary: Summary) -> Snapshot:
    """The last snapshot, with those results of the report that nobody folds while a run goes on: analyses, and metrics made of
    telemetry.  It stays as it is where nobody looked."""
    results = next((phase.results for phase in summary.phases if phase.name == snapshot.phase), {})
    known = {metric.tag for metric in snapshot.metrics}
    further = tuple(
        LiveMetric(
            tag, each.title, each.unit, LiveStatistics.of(each.stats), None, each.short, each.group, each.order
        )
        for tag, each in results.items()
        if tag not in known and each.stats
    )
    return replace(snapshot, metrics=snapshot.metrics + further) if snapshot.metrics and further else snapshot


class Dues:
    """The due times of a phase, as the file has them."""

    def __init__(self, phase: PhasePlan) -> None:
        self._times: memoryview | None = None
        self._end = 0
        if phase.due_file is None or phase.sessions_file is not None:
            return
        try:
            with Path(phase.due_file).open("rb") as file:
                times = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)).cast("q")
        except (OSError, ValueError):
            return
        self._end = min(len(times), phase.planned or len(times))
        if self._end and times[0] >= 0 and times[self._end - 1] >= 0:
            self._times = times

    def until(self, elapsed_s: float) -> int | None:
        """How many are due; None where answers decide."""
        return None if self._times is None else bisect_right(self._times, round(elapsed_s * _NS), 0, self._end)


def _planned(phase: PhasePlan) -> int | None:
    if phase.planned is not None or phase.duration_ns is not None:
        return phase.planned
    return phase.turns if phase.request_count is None else phase.request_count


def _status(phase: PhasePlan, *, sending: bool) -> str:
    if phase.kind == "warmup":
        return WARMUP if sending else WARMUP_GRACE
    return PROFILING if sending else GRACE


def snapshot_of(
    phase: PhasePlan, elapsed_s: float, counters: Collection[control.Counters], unreached_s: float = 0.0
) -> Snapshot:
    """The sums of the workers.  Share and time left are unknown in a phase without a size or duration."""
    counters = [counter for counter in counters if counter.phase == phase.index]
    completed = sum(counter.completed for counter in counters)
    errors = sum(counter.errors for counter in counters)
    done = completed + errors
    shares = [] if phase.turns is None else [done / phase.turns]
    if phase.duration_ns is not None:
        shares.append(elapsed_s * _NS / phase.duration_ns)
    share = max(shares, default=None)
    return Snapshot(
        phase.name, phase.kind, max(0.0, elapsed_s), sum(counter.sent for counter in counters), completed, errors,
        in_flight=sum(counter.in_flight for counter in counters),
        rate=done / elapsed_s if elapsed_s > 0 else 0.0,
        share=share,
        eta_s=elapsed_s * (1 - share) / share if share and share < 1 else None,
        unreached_s=unreached_s if unreached_s >= TELL_S else None,
    )  # fmt: skip
