"""What becomes of a source's samples: lines of its file, and folds beside the load."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

from aiperf.parts.loading import isolated, load, why
from aiperf.parts.samples import SampleWriter, folds_path
from aiperf.sdk.descriptor import PluginRef
from aiperf.sdk.series import Line, RunningSeries, SeriesHeader, SourceHeader, TargetHeader
from aiperf.sdk.telemetry import SeriesKind

from aiperf_companion_telemetry.messages import SourceStart
from aiperf_companion_telemetry.targets import NS, Taken

log = logging.getLogger(__name__)

_FOLDS_AFTER_NS = NS
"""Folding begins so long behind the begin of the load: it imports numpy, and a short run has few samples to fold at its end."""


class Recording:
    """The files of a source.  report: takes a sentence for the report.  clock: monotonic, in ns."""

    def __init__(self, start: SourceStart, report: Callable[[str], None], clock: Callable[[], int]) -> None:
        self._start, self._report, self._clock = start, report, clock
        self._writer: SampleWriter | None = None
        self._header = SourceHeader(start.ref, 0.0)
        self.failed = False
        """Whether the disk can't be written."""
        self._failing: set[int] = set()
        self._told: set[str] = set()
        self._counting: set[int] = set()
        """The counters and histograms of requests."""
        self._folder: PluginRef | None = None if start.series is None else start.series[0]
        self._kept: set[int] = set()
        self._counters: set[int] = set()
        """Targets that have given a sample, and those of them with counters of requests."""
        self._fold: RunningSeries | None = None
        self._steps: list[Callable[[RunningSeries], None]] = []
        """What the folds wait for, until they begin."""
        self._fold_at_ns: int | None = None

    def open(self, targets: list[tuple[str, float]]) -> None:
        """targets: their names and intervals in s.  A file is made for the first sample."""
        headers = tuple(TargetHeader(*target) for target in targets)
        self._header = SourceHeader(self._start.ref, min(each.interval_s for each in headers), headers)

    def keep(self, taken: Taken, who: str) -> bool:
        """Write a sample, or that it failed; whether its counters of requests are those of the sample before.

        who: the source, and its target, in sentences.
        """
        failures = [taken.failure] if taken.points is None else []
        if self.failed:
            return False
        try:
            writer = self._writer = self._writer or self._opened()
            if taken.points is not None:
                with isolated(who, failures.append):  # labels that are no texts, for one
                    sample, sentences = writer.sample(taken.points, taken.moment, taken.target)
            if failures:
                self._fail(writer, taken, failures[0], who)
                return False
            writer.write(sample)
            self._kept.add(taken.target)
        except OSError as error:
            self._report(f"{self._start.ref} stops: its samples can't be written: {why(error)}")
            self.failed = True
            return False
        for sentence in sentences:
            if (told := f"{who} {sentence}") not in self._told:
                self._told.add(told)
                self._report(told)
        return self._counting.isdisjoint(writer.changed)

    def counts(self, target: int) -> bool:
        """Whether the target has counters of requests, or may have them: it has given no sample yet."""
        return target in self._counters or target not in self._kept

    def begin(self, phase: int, at_ns: int) -> None:
        """The phase begins."""
        self._folding(lambda fold: fold.begin(phase, at_ns))
        if self._fold_at_ns is None and self._folder is not None:
            self._fold_at_ns = at_ns + _FOLDS_AFTER_NS

    def end(self, phase: int, at_ns: int) -> None:
        """The phase ended, and its samples are written."""
        self._folding(lambda fold: fold.end(phase, at_ns))

    def rest_s(self) -> float | None:
        """Time until :meth:`step` has something to do; None without any."""
        return None if self._fold_at_ns is None else max(0.0, (self._fold_at_ns - self._clock()) / NS)

    def step(self) -> None:
        """Begin to fold, once the run is no short one."""
        if self.rest_s() != 0.0 or self._start.series is None:
            return
        self._fold_at_ns = None
        ref, encoded = self._start.series
        with isolated(ref, self._report):
            series = load(ref)(None if encoded is None else encoded.decoded())
            self._fold = series.running(folds_path(Path(self._start.path)), self._start.slices)
        if self._fold is None:
            self._folder = None
        steps, self._steps = self._steps, []
        for each in steps:
            self._folding(each)

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()
        if self._fold is not None:
            self._folding(lambda fold: fold.close())

    def _opened(self) -> SampleWriter:
        return SampleWriter(Path(self._start.path), self._header, self._written)

    def _written(self, line: Line) -> None:
        if isinstance(line, SeriesHeader) and line.kind in (SeriesKind.COUNTER, SeriesKind.HISTOGRAM) and not line.flows:
            self._counting.add(line.id)
            self._counters.add(line.target)
        self._folding(lambda fold: fold.take(line))

    def _fail(self, writer: SampleWriter, taken: Taken, failure: str, who: str) -> None:
        """Note a sample that failed; the run is told of a target's first."""
        if taken.target not in self._failing:
            self._failing.add(taken.target)
            self._report(failure)
        writer.failed(taken.moment.at_ns, taken.moment.phase, failure.removeprefix(f"{who} failed: "), taken.target)

    def _folding(self, step: Callable[[RunningSeries], None]) -> None:
        """Go on with the folds; after an error the samples are folded when the summary is made."""
        fold, self._fold = self._fold, None
        if fold is None:
            if self._folder is not None:
                self._steps.append(step)
            return
        try:
            with isolated(self._folder, self._report, passing=OSError):
                step(fold)
                self._fold = fold
        except OSError as error:
            log.warning("%s: its folds can't be written: %s", self._start.ref, why(error))
        if self._fold is None:
            with isolated(self._folder, self._report):
                fold.drop()
            self._folder = None
