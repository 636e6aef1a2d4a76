"""The process of a source: samples at the edges of phases and at the interval between.

python -m aiperf_companion_telemetry.process REPLIES
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path

from aiperf.parts.hooks import Hooks
from aiperf.parts.loading import isolated, load, why
from aiperf.parts.processes import Inbox, ignore_endings, leave, scrub_output, send_reply
from aiperf.parts.samples import SampleWriter, folds_path
from aiperf.sdk.descriptor import PluginRef
from aiperf.sdk.errors import PluginError
from aiperf.sdk.series import Moment, RunningSeries, SourceHeader
from aiperf.sdk.telemetry import MOST_POINTS, Absent, Point, TelemetrySource

from aiperf_companion_telemetry.messages import (
    BEGIN,
    END,
    Begun,
    Edge,
    Reply,
    SourceStart,
    SourceTrouble,
    decode_message,
)

log = logging.getLogger(__name__)

_NS = 1_000_000_000
_MIN_INTERVAL_S = 0.01


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
        match decode_message(line):
            case SourceStart() as opened:
                scrub_output(opened.secrets)
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
            points += islice(self._source.sample(), MOST_POINTS + 1)
            if len(points) > MOST_POINTS:
                raise ValueError(f"sample() gave more than {MOST_POINTS:,} points: it must end with those of the moment")
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
    leave(0)  # a source may have left a thread
