"""The process of a source: a thread for its start, one for each of its targets, and the main one, which waits for none of them.

python -m aiperf_companion_telemetry.process REPLIES
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from aiperf.parts.hooks import Hooks
from aiperf.parts.loading import isolated, load
from aiperf.parts.processes import Inbox, ignore_endings, leave, scrub_output, send_reply
from aiperf.sdk.errors import PluginError
from aiperf.sdk.telemetry import Absent, TelemetrySource, TelemetryTarget

from aiperf_companion_telemetry.edges import Edges
from aiperf_companion_telemetry.exact import Exact
from aiperf_companion_telemetry.latest import LatestValues
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
    Ready,
    Reply,
    Rest,
    SourceStart,
    SourceTrouble,
    message_decoder,
)
from aiperf_companion_telemetry.queued import Queued
from aiperf_companion_telemetry.recording import Recording
from aiperf_companion_telemetry.targets import NS, Taken, TargetLoop

_NICE = 10
"""How far a sampling process stands back behind the load, in steps of the system's priority (0 to 19)."""


def stand_back(nice: int) -> None:
    """Let the load come first: the run may have raised the priority of this process's threads behind the last one."""
    threads = [int(path.name) for path in Path("/proc/self/task").iterdir()] if sys.platform == "linux" else [0]
    for thread in threads:
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, thread, nice)


def in_thread(work: Callable[[], object]) -> None:
    threading.Thread(target=work, daemon=True).start()


def _clocks() -> tuple[int, int]:
    return time.monotonic_ns(), time.time_ns()


class SourceProcess:
    """Turns messages into samples.

    reply: sends to the run.  clocks: reads the monotonic and the wall clock in ns.  wake: called when a thread has something
    for :meth:`step`.  begin: begins a thread.
    """

    def __init__(
        self, reply: Callable[[Reply], None], clocks: Callable[[], tuple[int, int]] = _clocks,
        wake: Callable[[], object] = lambda: None, begin: Callable[[Callable[[], object]], None] = in_thread,
        stand_back: Callable[[], object] = lambda: None,
    ) -> None:  # fmt: skip
        self._reply, self._clocks, self._wake, self._begin, self._stand_back = reply, clocks, wake, begin, stand_back
        self.over = False
        """Whether there is nothing to sample, and never will be."""
        self._done: deque[Callable[[], None]] = deque()
        """What threads leave for this one."""
        self._source: TelemetrySource | None = None
        self._start: SourceStart
        self.loops: list[TargetLoop] = []
        self._names: list[str] = []
        self._silent: set[int] = set()
        """Targets that have not answered at all."""
        self._recording: Recording | None = None
        self._hooks = Hooks(self._report)
        self._edges = Edges(lambda: clocks()[0], 0)
        self._phase: int | None = None
        self._rests = False
        """Whether the plan is over, and its last samples are waited for."""
        self._queue, self._latest = Queued(self._reply), LatestValues()
        self._exact = Exact()

    def take(self, line: bytes) -> None:
        """Take a message of the run."""
        match message_decoder()(line):
            case SourceStart() as start:
                scrub_output(start.secrets)
                self._start = start
                self._edges = Edges(lambda: self._clocks()[0], round(start.flush_s * NS), self._edges.number)
                self._recording = Recording(start, self._report, lambda: self._clocks()[0])
                if self._source is None:
                    self._open()
                else:
                    self._resume(self._recording)
            case Rest():
                self._rests = True
            case AskLatest():
                self._reply(Latest(*self._latest.rows(self._start.ref.name, self._names)))
            case AskQueue(fresh):
                self._queue.ask(self._start.tables, self.loops, self._edges.next() if fresh else None)
            case Edge(phase, edge) as reached:
                self._pass(now=True)
                self._phase = phase if edge == BEGIN else None
                self._exact.reach(reached)
                self._edges.reach(reached, self.loops)
                self._pass()
            case Begun(phase, at_ns):
                if self._recording is not None:
                    self._recording.begin(phase, at_ns)

    def rest_s(self) -> float | None:
        """Time until the next :meth:`step`; None: as soon as there is a message, or something to do."""
        waits = [self._edges.rest_s(), None if self._recording is None else self._recording.rest_s()]
        known = [wait for wait in waits if wait is not None]
        return 0.0 if self._done else min(known, default=None)

    def step(self) -> None:
        """Do what threads left, and what is due."""
        while self._done:
            self._done.popleft()()
        self._pass()
        if self._recording is not None:
            self._recording.step()
        if self._rests and not self.flushing:
            self._rests = False
            self._pass(now=True)
            self._finish()

    @property
    def flushing(self) -> bool:
        """Whether samples behind the last phase are still waited for."""
        return self._edges.rest_s() is not None

    def close(self) -> None:
        """The run is over: write what there is, and let the source go."""
        self.step()
        self._pass(now=True)
        for loop in self.loops:
            loop.end()
        self._finish()
        source, self._source = self._source, None
        if source is not None:
            with isolated(self._start.ref, self._report, "failed at its end"):
                source.stop()

    def _finish(self) -> None:
        """Write what there is of the plan."""
        silent = [self._who(number) for number in sorted(self._silent)]
        if self._source is None and not self.over and self._recording is not None:
            silent = [str(self._start.ref)]  # it is being started
        for who in silent:
            self._reply(SourceTrouble(f"{who} has given no sample", absent=not self._start.named))
        self._reply(Folding())
        recording, self._recording = self._recording, None
        if recording is not None:
            recording.close()
        self._reply(Folded())

    def _resume(self, recording: Recording) -> None:
        """Sample for another plan."""
        self._stand_back()
        self._latest.clear()
        self._phase, self._silent = None, {loop.number for loop in self.loops}
        self._exact.begin()
        self._hooks = self._listening()
        recording.open([(name, loop.interval_ns / NS) for name, loop in zip(self._names, self.loops, strict=True)])
        self._edges.first(self.loops, -1, runs=False)

    def _listening(self) -> Hooks:
        listening = [(ref, None if encoded is None else encoded.decoded()) for ref, encoded in self._start.hooks]
        return Hooks.load(listening, self._report)

    def _open(self) -> None:
        """Import the source, in this thread, since a module may want the main one; start it in another."""
        start, made, troubles = self._start, list[TelemetrySource](), list[SourceTrouble]()
        with self._blamed(troubles):
            options = None if start.options is None else start.options.decoded()
            made.append(load(start.ref)(options, start.context))
            self._hooks = self._listening()
        if troubles:
            self._opened(None, [], troubles)
        else:
            self._begin(partial(self._started, made[0]))

    def _started(self, source: TelemetrySource) -> None:
        """In a thread of its own."""
        troubles, targets = list[SourceTrouble](), list[TelemetryTarget]()
        with self._blamed(troubles):
            source.start()
            targets += _distinct(source.targets())
        self._leave(partial(self._opened, source, [] if troubles else targets, troubles))

    @contextlib.contextmanager
    def _blamed(self, troubles: list[SourceTrouble]) -> Iterator[None]:
        """Collect why the source can't be started."""

        def report(message: str) -> None:
            troubles.append(SourceTrouble(message))

        try:
            with isolated(self._start.ref, report, "can't be started", passing=(PluginError, Absent)):
                yield
        except PluginError as error:  # its message names the plugin
            report(error.message)
        except Absent as absent:
            troubles.append(SourceTrouble(f"{self._start.ref}: {absent.message}" if absent.message else "", absent=True))

    def _opened(self, source: TelemetrySource | None, targets: list[TelemetryTarget], troubles: list[SourceTrouble]) -> None:
        for trouble in troubles:
            self._reply(trouble)
        if not targets or self._recording is None:
            self._end_early()
            return
        self._source, self._names = source, [target.name for target in targets]
        clocks = self._clocks
        self.loops = [
            TargetLoop(number, one, self._who(number), clocks, self._given) for number, one in enumerate(targets)
        ]
        self._silent = {loop.number for loop in self.loops}
        self._recording.open([(one.name, loop.interval_ns / NS) for one, loop in zip(targets, self.loops, strict=True)])
        self._edges.first(self.loops, -1 if self._phase is None else self._phase, runs=self._phase is not None)
        for loop in self.loops:
            self._begin(loop.work)

    def _given(self, taken: Taken) -> None:
        """In the thread of a target."""
        self._leave(partial(self._keep, taken))

    def _leave(self, work: Callable[[], None]) -> None:
        self._done.append(work)
        self._wake()

    def _keep(self, taken: Taken) -> None:
        """Write a sample, and go on with the edge that it belongs to."""
        self._queue.note(taken, self._start.tables)
        self._latest.note(taken)
        recording = self._recording
        if recording is None:
            return
        agrees = False
        if taken.absent:
            self._reply(SourceTrouble(f"{self._who(taken.target)}: {taken.failure}", absent=True))
            self.loops = [loop for loop in self.loops if loop.number != taken.target]
            self._edges.gone(taken.target)
        else:
            agrees = recording.keep(taken, self._who(taken.target))
            if taken.points is not None:
                name = self._start.ref.name
                self._hooks.call("aiperf_samples_arrived", source=name, points=taken.points, moment=taken.moment)
        counts, counted = recording.counts(taken.target), self._exact.counted(taken, agrees=agrees)
        self._edges.answered(taken.target, taken.asked, taken.began_ns, agrees=agrees, counts=counts, counted=counted)
        if self._silent:
            self._silent.discard(taken.target)
            if not self._silent:
                self._reply(Ready())
        if not self.loops or recording.failed:
            self._end_early()

    def _pass(self, *, now: bool = False) -> None:
        """Tell the run of an edge that is reached."""
        edge = self._edges.passed(self.loops, now=now)
        if edge is not None:
            self._reply(edge)
            if edge.edge == END and self._recording is not None:
                self._recording.end(edge.phase, edge.at_ns)

    def _end_early(self) -> None:
        """Nothing is sampled any more: the process may end."""
        self._reply(Gone())
        self.over = True

    def _who(self, target: int) -> str:
        name = self._names[target]
        return f"{self._start.ref} ({name})" if name else str(self._start.ref)

    def _report(self, message: str) -> None:
        self._reply(SourceTrouble(message))


def _distinct(targets: object) -> list[TelemetryTarget]:
    """
    Raises:
        TypeError, ValueError: They are no targets, or two have one name.
    """
    found: list[TelemetryTarget] = list(targets)  # type: ignore[call-overload]
    for target in found:
        if not isinstance(target, TelemetryTarget):
            raise TypeError(f"targets() gives {type(target).__name__}, not TelemetryTarget")
    names = [target.name for target in found]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"targets() gives {name!r} twice: each target needs a name of its own")
    return found


def main(arguments: list[str]) -> None:
    (replies,) = arguments
    ignore_endings()
    nice = min(19, os.getpriority(os.PRIO_PROCESS, 0) + _NICE)
    stand_back(nice)
    awake, wake = os.pipe()
    os.set_blocking(awake, False)
    os.set_blocking(wake, False)

    def rouse() -> None:
        with contextlib.suppress(BlockingIOError):  # it is awake
            os.write(wake, b".")

    process = SourceProcess(lambda reply: send_reply(int(replies), reply), wake=rouse, stand_back=partial(stand_back, nice))
    inbox = Inbox(process.take, awake)
    while not process.over and (not inbox.over or process.flushing):
        inbox.wait(process.rest_s())
        process.step()
    process.close()


if __name__ == "__main__":
    main(sys.argv[1:])
    leave(0)  # a source may have left a thread
