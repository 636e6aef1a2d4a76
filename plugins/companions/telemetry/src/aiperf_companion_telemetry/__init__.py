"""Telemetry beside the run: starts a process for each source, requests samples at edges, and ends it."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from aiperf import PhasePlan, Plan, Snapshot
from aiperf.parts.processes import SideProcess, fate
from aiperf.parts.samples import folds_path, sample_path
from aiperf.sdk.companion import Companion, CompanionContext, Waiting
from aiperf.sdk.environment import number
from aiperf.sdk.model import names
from aiperf.sdk.snapshot import LiveSeries
from aiperf.sdk.telemetry import TelemetryContext

from aiperf_companion_telemetry.messages import (
    BEGIN,
    END,
    AskLatest,
    AskQueue,
    Begun,
    Edge,
    Folded,
    Folding,
    Gone,
    Latest,
    Queue,
    Ready,
    Rest,
    SourceStart,
    SourceTrouble,
    reply_decoder,
)

log = logging.getLogger("aiperf.companions.telemetry")

_NAMED_S = 0.5
"""Longest time behind the build that the load waits for the first samples of sources that the user named."""
_BEGIN_S, _END_S = 0.1, 0.2
"""Longest time that a phase waits for samples at its begin and at its end."""
_CLOSE_S = 0.5
"""Longest time behind the load until a source's process says that it folds its samples; one that doesn't is killed."""
_FOLDS_S = 10.0
"""Longest time for the last folds of a source that answers; without them its samples are folded again, which takes longer."""
_STOP_S = 0.2
_QUEUE_S = 0.5
"""Longest time for a word on the servers' queues."""
_ABSENT_S = 60.0
"""How long a source is left out of later plans that had nothing to sample."""


def flush_s() -> float:
    """``AIPERF_SERVER_METRICS_COLLECTION_FLUSH_PERIOD``, 0.5 s: longest time behind the last phase until two samples agree."""
    return number("AIPERF_SERVER_METRICS_COLLECTION_FLUSH_PERIOD", 0, 30, 0.5)


class _Source:
    """The process of a source, and what it has said.  waited: whether the load waits for its first samples."""

    # More than 20 attributes would be two ideas: these are the process, its latest plan, and what it has said since.

    def __init__(self, start: SourceStart, process: SideProcess) -> None:
        self.name, self.process, self.waited = str(start.ref), process, start.named
        self.absent: list[str] = []
        """What it said of targets that there are not."""
        self.begin(start)

    def begin(self, start: SourceStart) -> None:
        """Sample for a plan."""
        self.start = start
        self.ready = self.gone = self.folding = self.folded = False
        self.late = False
        """Whether it didn't return an edge in time: it is not waited for until it has."""
        self.reached: list[Edge] = []
        self.asked = 0
        """Questions on queues that are not answered."""
        self.queued: float | None = None
        self.latest: list[LiveSeries] = []
        self.asks_latest = False
        """Whether it has yet to tell its last values."""
        self.process.send(start)

    def close(self) -> None:
        """Let go of the process, which has ended; a killed one may have left half of its folds."""
        self.process.close()
        with contextlib.suppress(OSError):
            folds_path(Path(self.start.path)).with_suffix(".draft").unlink(missing_ok=True)

    @property
    def rests(self) -> bool:
        """Whether all of its plan is written, and it can sample for another one."""
        whole = self.ready and self.folded and not self.gone and not self.absent and not self.late
        return whole and self.process.poll() is None


class Telemetry(Companion[None]):
    """The run's side.  It never waits for long.  Of the run's secrets a source gets the headers, to fetch from the servers."""

    def __init__(self, options: None, context: CompanionContext) -> None:
        super().__init__(options, context)
        self._running: list[_Source] = []
        self._resting: list[_Source] = []
        """Processes of the plan before."""
        self._absent: list[tuple[SourceStart, float, list[str]]] = []
        """Sources that had nothing to sample: until when that is believed, and what they said."""
        self._clear()

    def _clear(self) -> None:
        self._built_s: float | None = None
        self._finish_s: float | None = None
        self._loaded = False
        self._ended = 0
        """Requests that have ended in the phase at hand."""
        self._flush_s = flush_s()

    @classmethod
    def check(cls, plan: Plan, options: None) -> None:
        flush_s()

    @classmethod
    def processes(cls, plan: Plan, options: None) -> int:
        return len(plan.plugins.telemetry)

    def begin(self) -> None:
        for start in self._starts():
            able = (source for source in self._resting if source.process.poll() is None)  # one may have been killed meanwhile
            resting = next((source for source in able if source.start.same(start)), None)
            if resting is not None:
                self._resting.remove(resting)
                resting.begin(start)
                self._running.append(resting)
            elif not self._is_absent(start):
                process = SideProcess("aiperf_companion_telemetry.process", log=self.context.log_file)
                self._running.append(_Source(start, process))
        self._end(self._resting)
        self._resting = []

    def _starts(self) -> Iterator[SourceStart]:
        plan, secrets = self.context.plan, self.context.secrets
        plugins = plan.plugins
        hooks = tuple((ref, plugins.options.get(ref.key)) for ref, _ in plugins.hooked("aiperf_samples_arrived"))
        shown = plan.public().target
        context = TelemetryContext(shown.urls, plan.target.models, plan.target.tls, secrets.headers, shown.control_urls)
        main = next(phase.index for phase in plan.load.phases if phase.kind == "profiling")
        slices = None if plan.output.slice_ns is None else (main, plan.output.slice_ns)
        series = None if plugins.series is None else (plugins.series, plugins.options.get(plugins.series.key))
        for at, ref in enumerate(plugins.telemetry):
            path, options = str(sample_path(Path(plan.output.journal), at)), plugins.options.get(ref.key)
            named = ref.key in plugins.given
            yield SourceStart(
                ref, options, context, path, hooks, slices, series, secrets.texts, self._flush_s, named, plugins.tables
            )

    def _is_absent(self, start: SourceStart) -> bool:
        """Whether the source had nothing to sample a moment ago; its words of then are logged again."""
        for earlier, until_s, sentences in self._absent:
            if earlier.same(start) and time.monotonic() < until_s and not start.named:
                for sentence in filter(None, sentences):
                    log.info("%s", sentence)
                return True
        return False

    def waiting(self) -> Waiting | None:
        """The load waits for sources that the user named, and not for long."""
        waited = [source for source in self._running if source.waited]
        if not waited:
            return None
        now_s = time.monotonic()
        self._built_s = now_s if self._built_s is None else self._built_s
        self._listen(waited, 0.0)
        slow = [source.name for source in waited if not source.ready and not source.gone and source.process.poll() is None]
        if not slow or now_s >= self._built_s + _NAMED_S:
            return None
        return Waiting(f"Waiting for the first sample of {names(slow)}")

    def phase_begins(self, phase: PhasePlan) -> None:
        self._reach(Edge(phase.index, BEGIN), _BEGIN_S)

    def snapshot(self, snapshot: Snapshot) -> None:
        self._ended = snapshot.completed + snapshot.errors

    def phase_began(self, phase: PhasePlan, at_ns: int) -> None:
        for source in self._running:
            source.process.send(Begun(phase.index, at_ns))

    def series(self) -> list[LiveSeries]:
        """The last values that the processes have told; they are asked for the next ones."""
        self._listen(self._running, 0.0)
        for source in self._running:
            if source.ready and not source.asks_latest and not source.process.backlogged:
                source.asks_latest = True
                source.process.send(AskLatest())
        return [row for source in self._running for row in source.latest]

    def phase_ended(self, phase: PhasePlan, at_ns: int) -> None:
        last = phase.index == self.context.plan.load.phases[-1].index  # its samples are taken beside the rest of the run
        self._reach(Edge(phase.index, END, at_ns, last, self._ended), 0.0 if last else _END_S)

    def finish(self) -> None:
        """Let the processes take their last samples, write their last folds and end; doesn't wait for them."""
        for source in self._running:
            source.process.raise_priority()
            if self.context.kept:
                source.process.send(Rest())
            elif not source.process.backlogged:
                source.process.let_go()
        self._finish_s, self._loaded = time.monotonic(), True

    def rest(self) -> bool:
        """Keep the processes that have written all of the plan, and what is known of absent sources."""
        self._await_folds()
        now_s, sources = time.monotonic(), self._running
        self._absent = [each for each in self._absent if each[1] > now_s]
        for source in sources:
            self._note_absent(source)
        self._resting = [source for source in sources if source.rests]
        self._end([source for source in sources if source not in self._resting])
        self._running = []
        return bool(self._resting or self._absent)

    def _note_absent(self, source: _Source) -> None:
        if source.gone and source.absent:
            self._absent.append((source.start, time.monotonic() + _ABSENT_S, source.absent))

    def again(self, context: CompanionContext) -> bool:
        self.context = context
        self._clear()
        return True

    def queued(self) -> float | None:
        for source in self._resting:
            if not source.asked:
                source.asked += 1
                source.process.send(AskQueue(fresh=source.queued is not None))
        self._listen(self._resting, _QUEUE_S, lambda source: not source.asked)
        known = [source.queued for source in self._resting if source.queued is not None]
        return sum(known) if known else None

    def close(self) -> None:
        """End all processes; a process that doesn't end in time is killed."""
        for source in self._running:
            source.process.let_go()
        self._await_folds()
        self._end([*self._running, *self._resting])
        self._running, self._resting = [], []

    def _await_folds(self) -> None:
        """Wait until the processes have written all of the plan, or are too slow."""
        sources = self._running
        now_s = time.monotonic()
        if self._finish_s is None:  # the run ends before its load, and there is nothing to wait for
            self._finish_s = now_s - max(_CLOSE_S, self._flush_s)
        until_s = self._finish_s + max(_CLOSE_S, self._flush_s + _STOP_S)
        self._listen(sources, until_s - now_s, lambda source: source.folding)
        folding = [source for source in sources if source.folding]
        self._listen(folding, self._finish_s + _FOLDS_S - time.monotonic(), lambda source: source.folded)
        for source in sources:
            if not source.ready and not source.folding and not source.gone and self._loaded:
                self._tell(f"{source.name} has given no sample", absent=not source.waited)

    def _end(self, sources: list[_Source]) -> None:
        for source in sources:
            source.process.let_go()
        for source in sources:
            source.process.end(_STOP_S if source.folded else 0.0)
            self._listen([source], 0.0)
            source.close()

    def _reach(self, edge: Edge, patience_s: float) -> None:
        """Take samples at an edge of a phase; returns when each source that is ready has answered, or is too slow.

        A source that was too slow is not waited for until it has answered.
        """
        for source in self._running:
            source.process.send(edge)
        waited = [source for source in self._running if source.ready and not source.late]
        self._listen(waited, patience_s, lambda source: edge in source.reached)
        for source in waited:
            if patience_s and edge not in source.reached:
                source.late = True
                log.info("%s gave no sample in time at the %s of phase %d", source.name, edge.edge, edge.phase)
        self._listen(self._running, 0.0)
        for source in [source for source in self._running if source.process.poll() is not None]:
            self._lose(source)

    def _lose(self, source: _Source) -> None:
        """The process has ended, before the run let it go."""
        self._listen([source], 0.0)
        self._note_absent(source)
        self._running.remove(source)
        code = source.process.poll()
        source.close()
        if not source.gone:
            self.context.report(f"{source.name}: its process {fate(code)}; there are no further samples")

    def _listen(self, sources: Iterable[_Source], patience_s: float, enough: Callable[[_Source], bool] | None = None) -> None:
        """Handle replies: what is there, or for up to *patience_s* until each source is *enough*, or has ended."""
        until_s = time.monotonic() + patience_s
        for source in sources:
            while True:
                ended = source.process.poll() is not None
                left_s = 0.0 if ended or enough is None or enough(source) else max(0.0, until_s - time.monotonic())
                for line in source.process.receive(left_s):
                    self._heed(source, line)
                if left_s == 0.0:
                    break

    def _heed(self, source: _Source, line: bytes) -> None:
        match reply_decoder()(line):
            case SourceTrouble(message, absent):
                source.absent += [message] if absent else []
                if message:
                    self._tell(message, absent=absent)
            case Latest(series):
                source.asks_latest, source.latest = False, series
            case Queue(requests):
                source.asked, source.queued = 0, requests
            case Ready():
                source.ready = True
            case Gone():
                source.gone = True
            case Folding():
                source.folding = True
            case Folded():
                source.folded = True
            case Edge() as edge:
                source.late = False
                source.reached.append(edge)

    def _tell(self, message: str, *, absent: bool) -> None:
        if absent:
            log.info("%s", message)
        else:
            self.context.report(message)


__all__ = ["Telemetry"]
