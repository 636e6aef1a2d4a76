"""How a plan is shown: to its display and live views, to hooks and companions, and in the log."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from time import monotonic_ns
from typing import TYPE_CHECKING

from aiperf.errors import AiperfError
from aiperf.processes import control
from aiperf.registry.third_party import why
from aiperf.run.display import Display
from aiperf.run.progress import phase_every_s
from aiperf.run.snapshots import Snapshots, completed
from aiperf.run.start import Interruption, Signals
from aiperf.sdk.live import LiveEnd, LiveRun
from aiperf.sdk.plan import PhasePlan
from aiperf.sdk.reducer import PhaseFigures
from aiperf.sdk.snapshot import CellProgress, LiveSeries, Snapshot

if TYPE_CHECKING:
    from aiperf.run.run import PlannedRun
    from aiperf.sdk.summary import Summary

_EVERY_S, _JUDGE_S = 0.5, 5.0
_NS = 1_000_000_000


class Showing:
    """Shows the plan of *run* twice a second.  *every_s*: between lines of progress in the log, 0 for none."""

    def __init__(self, run: PlannedRun, every_s: float) -> None:
        self._run, self.every_s = run, every_s
        self._snapshots = Snapshots(run.plan)
        self._shown_s = 0.0
        self._phase: PhasePlan | None = None
        self._series: list[LiveSeries] = []
        self._begun_ns = self._ended_ns = 0
        self._judged_s = 0.0
        self._asked = False

    def begin(self) -> None:
        """The plan begins."""
        run = self._run
        place = None if run.place is None else run.place.progress(None)
        run.display.begin(run.plan, LiveRun(run.plan.public(), place, time.time_ns()), run.directories.log_file)

    @property
    def watched(self) -> bool:
        """Whether anybody looks at live numbers: only then reducers fold them."""
        return self.looked or self.every_s > 0

    @property
    def looked(self) -> bool:
        """Whether somebody looks at each snapshot; lines of progress look at few."""
        return self._run.display.looks or bool(self._run.plan.plugins.hooked("aiperf_snapshot"))

    @property
    def lines_s(self) -> dict[int, float]:
        """Seconds between lines of progress, by the index of the phase."""
        return {phase.index: phase_every_s(self.every_s, phase) for phase in self._run.plan.load.phases}

    def built(self) -> None:
        """The data set is made, and phases know their due times."""
        self._snapshots = Snapshots(self._run.plan)

    def begin_phase(self, phase: PhasePlan, begun_ns: int) -> None:
        """The phase begins at this monotonic instant."""
        self._phase, self._begun_ns, self._ended_ns = phase, begun_ns, 0
        self._judged_s = time.monotonic()
        self._run.display.views.stand_back()
        self._snapshots.begin(phase)

    def end_phase(self, ended_ns: int) -> None:
        """The phase ended at this monotonic instant."""
        self._ended_ns = ended_ns
        snapshot = self._made(ended_ns, sending=False)
        self._told(snapshot)
        self._run.display.show(snapshot)

    def show(self, *, sending: bool) -> Snapshot | None:
        """Show the phase, if the last time is long enough ago: what was shown."""
        now_s = time.monotonic()
        if now_s - self._shown_s < _EVERY_S:
            return None
        self._shown_s = now_s
        snapshot = self._made(monotonic_ns(), sending=sending)
        self._told(snapshot)
        self._run.display.show(snapshot)
        self._judge(snapshot, now_s)
        return snapshot

    def ask(self) -> None:
        """Let the reducers tell their numbers: a line of progress is due soon."""
        if not self.looked:
            self._asked = True
            for reducer in self._run.children.reducers:
                self._run.mailbox.send(reducer, control.TellFigures())

    def _judge(self, snapshot: Snapshot, now_s: float) -> None:
        """Ask the first reducer what is to be said of the run so far."""
        due = self._asked or (self.looked and now_s - self._judged_s >= _JUDGE_S)
        if due and snapshot.kind == "profiling":
            self._judged_s, self._asked = now_s, False
            self._run.mailbox.send(self._run.children.reducers[0], control.Judge(snapshot))

    def show_rest(self) -> None:
        """Show how the rest is reduced, if the last time is long enough ago."""
        now_s = time.monotonic()
        if self._phase is not None and self._run.display.looks and now_s - self._shown_s >= _EVERY_S:
            self._shown_s = now_s
            self._run.display.show(self._made(self._ended_ns, sending=False, over=True))

    def finish(self, summary: Summary) -> None:
        """All is reduced: show the numbers of the report."""
        if self._phase is not None:
            snapshot = completed(self._made(self._ended_ns, sending=False, over=True, last=True), summary)
            self._run.hooks.call("aiperf_snapshot", snapshot=snapshot)
            self._run.display.show(snapshot)

    def _made(self, at_ns: int, *, sending: bool, over: bool = False, last: bool = False) -> Snapshot:
        run, phase = self._run, self._phase
        assert phase is not None, "a phase has begun"
        if run.display.looks and not over:
            series: list[LiveSeries] = []
            run.companions.each(lambda each: series.extend(each.series()))
            self._series = series
        counters = run.mailbox.counters.values()
        self._snapshots.verdict = run.mailbox.verdict
        return self._snapshots.make(
            phase, (at_ns - self._begun_ns) / _NS, counters, self._figures(), sending=sending, over=over, last=last,
            gap_s=run.reach.gap_s, workers=run.children.workers, series=self._series, log=run.display.tail,
            logged=run.display.logged, cell=self._cell,
        )  # fmt: skip

    def _cell(self, left_s: float | None) -> CellProgress | None:
        return None if self._run.place is None else self._run.place.progress(left_s)

    def _figures(self) -> dict[int, PhaseFigures]:
        """The first reducer has what all have told it; empty where nobody looks."""
        live = self._run.mailbox.live.get(0)
        return {each.phase: each for each in live.phases} if live is not None else {}

    def _told(self, snapshot: Snapshot) -> None:
        self._run.hooks.call("aiperf_snapshot", snapshot=snapshot)
        self._run.companions.each(lambda each: each.snapshot(snapshot))


@contextlib.contextmanager
def told_of_end(display: Display, signals: Signals) -> Iterator[None]:
    """Tell what watches the run that it has no results."""
    try:
        yield
    except (AiperfError, OSError, Interruption) as error:
        failure = "it was interrupted before its results" if isinstance(error, Interruption) else why(error)
        code = signals.code or (error.exit_code if isinstance(error, AiperfError) else 1)
        display.end(LiveEnd(code=code, failure=failure))
        raise
