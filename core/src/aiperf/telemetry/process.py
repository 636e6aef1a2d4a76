"""Sources of telemetry beside the run: each has a process, which samples at the edges of phases and at the interval between.

python -m aiperf.telemetry.process REPLIES
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import msgspec
from msgspec import Struct

from aiperf import logs
from aiperf.errors import PluginError
from aiperf.processes.local import Inbox, SideProcess, fate, ignore_endings, send_reply
from aiperf.redaction import without_secrets
from aiperf.registry.hooks import Hooks
from aiperf.registry.third_party import isolated, load, why
from aiperf.sdk.descriptor import PluginRef
from aiperf.sdk.options import EncodedOptions
from aiperf.sdk.plan import Plan, Secrets
from aiperf.sdk.series import Moment, RunningSeries, SourceHeader
from aiperf.sdk.telemetry import Absent, Point, TelemetryContext, TelemetrySource
from aiperf.telemetry.samples import SampleWriter, folds_path, sample_path

log = logging.getLogger(__name__)

BEGIN, END = "begin", "end"
_NS = 1_000_000_000
_MIN_INTERVAL_S = 0.01
_START_S, _EDGE_S, _END_S = 10.0, 2.0, 2.0
_FOLDS_S = 10.0
"""Longest time for the last folds of a source that answers; without them its samples are folded again, which takes longer."""


class SourceStart(Struct, frozen=True, tag=True):
    """The first message: the source with its options, the file of samples, and the hooks plugins with their options.

    slices: the phase that has time slices, and their length in ns; None without them.
    series: the plugin that folds the samples; None without one.  secrets: what stands in no line of the log.
    """

    ref: PluginRef
    options: EncodedOptions | None
    context: TelemetryContext
    path: str
    hooks: tuple[tuple[PluginRef, EncodedOptions | None], ...] = ()
    slices: tuple[int, int] | None = None
    series: tuple[PluginRef, EncodedOptions | None] | None = None
    secrets: tuple[str, ...] = ()


class Edge(Struct, frozen=True, tag=True):
    """A phase is about to begin, or has ended at the monotonic instant *at_ns*.  *edge*: BEGIN or END.

    The process returns it when the sample at that edge is on disk, or has failed.
    """

    phase: int
    edge: str
    at_ns: int = 0


class Begun(Struct, frozen=True, tag=True):
    """The phase begins at the monotonic instant *at_ns*."""

    phase: int
    at_ns: int


Message: TypeAlias = SourceStart | Edge | Begun


class SourceTrouble(Struct, frozen=True, tag=True):
    """A message for the report; *absent*: for the log only."""

    message: str
    absent: bool = False


Reply: TypeAlias = Edge | SourceTrouble
_decode = msgspec.json.Decoder(Message).decode
decode_reply = msgspec.json.Decoder(Reply).decode


class SourceProcess:
    """Turns messages into samples.  *reply* sends to the run; *clocks* reads the monotonic and the wall clock in ns."""

    def __init__(
        self,
        reply: Callable[[Reply], None],
        clocks: Callable[[], tuple[int, int]] = lambda: (time.monotonic_ns(), time.time_ns()),
    ) -> None:
        self._reply, self._clocks = reply, clocks
        self._source: TelemetrySource | None = None
        self._writer: SampleWriter
        self._fold: RunningSeries | None = None
        self._folder: PluginRef | None = None
        self._who = self._name = ""
        self._hooks = Hooks(self._report)
        self._failed = False
        self._told: set[str] = set()
        self._phase: int | None = None
        self._interval_ns = self._due_ns = self._missed = 0

    def take(self, line: bytes) -> None:
        match _decode(line):
            case SourceStart() as opened:
                logs.scrub_output(opened.secrets)
                self._who, self._name = str(opened.ref), opened.ref.name
                try:
                    with isolated(self._who, self._report, "can't be started", passing=(PluginError, Absent)):
                        self._open(opened)
                except PluginError as error:  # its message names the plugin
                    self._report(error.message)
                except Absent as absent:
                    self._reply(SourceTrouble(f"{self._who}: {absent.message}", absent=True))
            case Edge(phase, edge, at_ns) as reached:
                self._sample(phase, edge)
                self._phase = phase if edge == BEGIN else None
                self._due_ns = self._clocks()[0] + self._interval_ns
                self._reply(reached)
                if edge == END:
                    self._folding(lambda fold: fold.end(phase, at_ns))
            case Begun(phase, at_ns):
                self._folding(lambda fold: fold.begin(phase, at_ns))

    def rest_s(self) -> float | None:
        """Time until the next sample is due; None while no phase is running."""
        if self._source is None or self._phase is None:
            return None
        return max(0.0, (self._due_ns - self._clocks()[0]) / _NS)

    def tick(self) -> None:
        """Take a sample if one is due.  Missed samples are counted, and the interval keeps its phase."""
        if self._phase is None or self.rest_s() != 0.0:
            return
        late = (self._clocks()[0] - self._due_ns) // self._interval_ns
        self._missed += late
        self._due_ns += (late + 1) * self._interval_ns
        self._sample(self._phase, None)

    def close(self) -> None:
        source, self._source = self._source, None
        if source is None:
            return
        self._writer.close()
        self._folding(lambda fold: fold.close())
        with isolated(self._who, self._report, "failed at its end"):
            source.stop()

    def _open(self, opened: SourceStart) -> None:
        options = None if opened.options is None else opened.options.decoded()
        source: TelemetrySource = load(opened.ref)(options, opened.context)
        source.start()
        interval_s = max(_MIN_INTERVAL_S, float(source.interval_s))
        listening = [(ref, None if encoded is None else encoded.decoded()) for ref, encoded in opened.hooks]
        self._hooks = Hooks.load(listening, self._report)
        path, origin = Path(opened.path), SourceHeader(opened.ref, interval_s)
        if opened.series is not None:
            self._folder, encoded = opened.series
            with isolated(self._folder, self._report):
                series = load(self._folder)(None if encoded is None else encoded.decoded())
                self._fold = series.running(folds_path(path), opened.slices)
        self._writer = SampleWriter(path, origin, lambda line: self._folding(lambda fold: fold.take(line)))
        self._source, self._interval_ns = source, round(interval_s * _NS)

    def _sample(self, phase: int, edge: str | None) -> None:
        if self._source is None:
            return
        began_ns, wall_ns = self._clocks()
        points: list[Point] = []
        failures: list[str] = []
        with isolated(self._who, failures.append):
            points += self._source.sample()
            for point in points:
                if not isinstance(point, Point):
                    raise TypeError(f"it gives {type(point).__name__}, not Point")
        if failures:
            self._fail(failures[0], began_ns, phase)
            return
        took_ns = self._clocks()[0] - began_ns
        moment = Moment(began_ns + took_ns // 2, wall_ns + took_ns // 2, took_ns, phase, edge, self._missed)
        with isolated(self._who, failures.append):  # labels that are no texts, for one
            sample, sentences = self._writer.sample(points, moment)
        if failures:
            self._fail(failures[0], began_ns, phase)
            return
        self._write(self._writer.write, sample)
        self._missed = 0
        for sentence in sentences:
            if sentence not in self._told:
                self._told.add(sentence)
                self._report(f"{self._who} {sentence}")
        self._hooks.call("aiperf_samples_arrived", source=self._name, points=points, moment=moment)

    def _fail(self, failure: str, at_ns: int, phase: int) -> None:
        """Note a sample that failed; the run is told of the first."""
        if not self._failed:
            self._report(failure)
        self._failed = True
        self._write(self._writer.failed, at_ns, phase, failure.removeprefix(f"{self._who} failed: "))

    def _write(self, write: Callable[..., None], *arguments: object) -> None:
        """Write samples; a disk error ends the sampling and nothing else."""
        try:
            write(*arguments)
        except OSError as error:
            self._report(f"{self._who} stops: its samples can't be written: {why(error)}")
            self.close()

    def _folding(self, step: Callable[[RunningSeries], None]) -> None:
        """Go on with the folds; after an error the samples are folded when the summary is made."""
        fold, self._fold = self._fold, None
        if fold is None:
            return
        try:
            with isolated(self._folder, self._report, passing=OSError):
                step(fold)
                self._fold = fold
        except OSError as error:
            log.warning("%s: its folds can't be written: %s", self._who, why(error))
        if self._fold is None:
            with isolated(self._folder, self._report):
                fold.drop()

    def _report(self, message: str) -> None:
        self._reply(SourceTrouble(message))


class Sources:
    """The run's side: starts the processes, requests samples at edges, and ends them; it never waits for long.

    *report* gets messages about failures.  Of the *secrets* a source gets the headers, to fetch from the run's servers.
    """

    def __init__(self, plan: Plan, log_file: Path, report: Callable[[str], None], secrets: Secrets | None = None) -> None:
        self._report = report
        self._patience_s = _START_S  # the first answer includes the start of the source
        self._running: dict[str, SideProcess] = {}
        self._late: set[str] = set()
        self._finish_s: float | None = None
        hooks = tuple((ref, plan.plugins.options.get(ref.key)) for ref, _ in plan.plugins.hooked("aiperf_samples_arrived"))
        target, urls = plan.target, tuple(without_secrets(url) for url in plan.target.urls)
        context = TelemetryContext(urls, target.models, target.tls, {} if secrets is None else secrets.headers)
        texts = () if secrets is None else secrets.texts
        main = next(phase.index for phase in plan.load.phases if phase.kind == "profiling")
        slices = None if plan.output.slice_ns is None else (main, plan.output.slice_ns)
        folder = plan.plugins.series
        series = None if folder is None else (folder, plan.plugins.options.get(folder.key))
        for number, ref in enumerate(plan.plugins.telemetry):
            process = SideProcess("aiperf.telemetry.process", log=log_file)
            path = str(sample_path(Path(plan.output.journal), number))
            process.send(SourceStart(ref, plan.plugins.options.get(ref.key), context, path, hooks, slices, series, texts))
            self._running[str(ref)] = process

    def finish(self) -> None:
        """Let the processes write their last folds and end; doesn't wait for them."""
        for process in self._running.values():
            if not process.backlogged:
                process.let_go()
        self._finish_s = time.monotonic()

    def close(self) -> None:
        """End all processes; a process that doesn't end in time is killed."""
        folding = self._finish_s is not None  # else the run ends before its load, and there are no folds to wait for
        since_s = time.monotonic() if self._finish_s is None else self._finish_s
        for name, process in self._running.items():
            patience_s = _FOLDS_S if folding and name not in self._late else _END_S
            process.end(max(0.0, since_s + patience_s - time.monotonic()))
            self._listen(name, process, 0.0, None)
            process.close()
        self._running.clear()

    def begun(self, phase: int, at_ns: int) -> None:
        """The phase begins at that monotonic instant."""
        for process in self._running.values():
            process.send(Begun(phase, at_ns))

    def sample(self, phase: int, edge: str, at_ns: int = 0) -> None:
        """Take samples at an edge of the phase (BEGIN or END); returns when each source has answered or is too slow.

        A source that was too slow is not waited for until it has answered.  *at_ns*: when the phase ended.
        """
        reached = Edge(phase, edge, at_ns)
        for process in self._running.values():
            process.send(reached)
        until = time.monotonic() + self._patience_s
        self._patience_s = _EDGE_S
        for name, process in list(self._running.items()):
            known_late = name in self._late
            if self._listen(name, process, 0.0 if known_late else until, reached):
                continue
            code = process.poll()
            if code is None and known_late:
                continue
            if code is None:
                self._late.add(name)
                self._report(f"{name} was too slow for a sample at the {edge} of phase {phase}")
                continue
            del self._running[name]
            process.close()
            self._report(f"{name}: its process {fate(code)}; there are no further samples")

    def _listen(self, name: str, process: SideProcess, until: float, wanted: Edge | None) -> bool:
        """Handle replies until *until* (monotonic s); True as soon as *wanted* arrives."""
        arrived = False
        while True:
            left_s = max(0.0, until - time.monotonic())
            ended = process.poll() is not None
            for line in process.receive(0.0 if ended else left_s):
                match decode_reply(line):
                    case SourceTrouble(message, absent):
                        if absent:
                            log.info("%s", message)
                        else:
                            self._report(message)
                    case sampled:
                        self._late.discard(name)
                        arrived |= sampled == wanted
            if arrived or ended or left_s == 0.0:
                return arrived


def main(arguments: list[str]) -> None:
    (replies,) = arguments
    ignore_endings()
    process = SourceProcess(lambda reply: send_reply(int(replies), reply))
    inbox = Inbox(process.take)
    while not inbox.over:
        inbox.wait(process.rest_s())
        process.tick()
    process.close()


if __name__ == "__main__":
    main(sys.argv[1:])
