"""The contract of series: what becomes of the samples of telemetry sources.

A companion takes samples, one process a source, and writes them to the journal (:mod:`aiperf.parts.samples`).  A plugin of this
category makes statistics of each series by phase and by time slice; it may fold the samples beside the load, in the process of
the source.  A run uses one plugin: the pinned one, else that with the highest priority, else a third party's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from aiperf.sdk.descriptor import PluginRef
from aiperf.sdk.options import OptionsT, WithOptions
from aiperf.sdk.summary import SourceSummary
from aiperf.sdk.telemetry import SeriesKind


class TargetHeader(Struct, frozen=True):
    """A target of a source, named as :attr:`aiperf.sdk.telemetry.TelemetryTarget.name`."""

    name: str
    interval_s: float


class SourceHeader(Struct, frozen=True, tag="source", omit_defaults=True):
    """The first line: the source of the samples.  interval_s: the shortest of its targets.  targets: numbered from 0."""

    ref: PluginRef
    interval_s: float
    targets: tuple[TargetHeader, ...] = ()


class SeriesHeader(Struct, frozen=True, tag="series", omit_defaults=True):
    """The series of an *id* in samples; they count from 0.  *bounds*: of a histogram, without the last, infinite one.

    kind: a ``summary`` is one of its quantiles, named by the label ``quantile``.  target: its number.
    flows: the series grows by itself, without requests.
    """

    id: int
    name: str
    kind: SeriesKind
    unit: str = ""
    labels: dict[str, str] = {}
    help: str = ""
    bounds: tuple[float, ...] = ()
    target: int = 0
    flows: bool = False


class Moment(Struct, frozen=True, omit_defaults=True):
    """The time of a sample.

    at_ns, wall_ns: monotonic and wall clock at the first byte, where that is known, else at the middle of the sample, which
    took *took_ns*.  sent_ns, first_byte_ns: wall clock, where the target tells it.
    phase: index of the running phase; -1 while none runs.  edge: ``begin`` or ``end`` for samples at an edge of the phase.
    missed: samples of the target since the previous one that were due and not taken.
    """

    at_ns: int
    wall_ns: int
    took_ns: int
    phase: int
    edge: str | None = None
    missed: int = 0
    sent_ns: int | None = None
    first_byte_ns: int | None = None


Value: TypeAlias = float | list[float]
"""Of a histogram, its sum, then its counts."""


class Sample(Struct, frozen=True, tag="sample", omit_defaults=True):
    """The values of a target at a moment, by series id, where they changed: a series that is left out has its value still.

    timed: values with wall clocks of their own: series id, ns, value; such a value is of its time alone.
    ended: series without a value from this moment on.  whole: *values* has all series, as about once a minute.
    """

    moment: Moment
    values: dict[int, Value] = {}
    timed: list[tuple[int, int, Value]] = []
    target: int = 0
    ended: list[int] = []
    whole: bool = False


class FailedSample(Struct, frozen=True, tag="failed", omit_defaults=True):
    """A sample of a target that failed."""

    at_ns: int
    phase: int
    why: str
    target: int = 0


Line: TypeAlias = SourceHeader | SeriesHeader | Sample | FailedSample
"""A line of a source's samples: the source's header is the first, a series' header comes before its first value."""

def whole_samples(lines: Iterable[Line]) -> Iterator[Line]:
    """The lines, each sample with the values of all series of its target that go on."""
    known: dict[int, dict[int, Value]] = {}
    for line in lines:
        if not isinstance(line, Sample):
            yield line
            continue
        values = known.setdefault(line.target, {})
        for number in line.ended:
            values.pop(number, None)
        values.update(line.values)
        yield replace(line, values=dict(values), whole=True)


MOST_SLICES = 100_000
"""Time slices of one phase: a report with more would be unreadable."""


class Window(Struct, frozen=True):
    """A phase, or a time slice of it, from *begin_ns* to *end_ns* of the monotonic clock."""

    phase: int
    begin_ns: int
    end_ns: int


class RunningSeries:
    """Folds the samples of one source while they come; this one leaves all to the summary.

    An OSError, or another exception, which is reported, ends the folding and nothing else.
    """

    def take(self, line: Line) -> None:
        """Take a line, which is on disk.  The samples at the end of a phase come before :meth:`end`."""

    def begin(self, phase: int, begin_ns: int) -> None:
        """The phase begins at this monotonic instant; a sample of a moment before was taken already."""

    def end(self, phase: int, end_ns: int) -> None:
        """The phase ended at this monotonic instant; samples of moments behind it were taken already."""

    def close(self) -> None:
        """The last call: write what was folded, if all phases ended."""

    def drop(self) -> None:
        """The last call after an error: the samples are folded when the summary is made."""


class Series(WithOptions[OptionsT]):
    """Makes statistics of series.  options: the plugin's own (None where it declares none)."""

    def preload(self) -> None:
        """Import what :meth:`summary` needs, while a run still waits for the last samples."""

    def running(self, folds: Path, slices: tuple[int, int] | None) -> RunningSeries:
        """A fold beside the load, into the file *folds*.  slices: the phase that has time slices, and their length in ns.

        What is not whole stands in a file of that name that ends in ``.draft``: it is removed where the process is killed.
        """
        return RunningSeries()

    def summary(
        self, folds: Path, samples: Callable[[], Iterator[Line]], windows: Sequence[Window], slices: Sequence[Window]
    ) -> SourceSummary | None:
        """The summary of a source: from *folds*, where it has exactly these windows, else from all samples, with one result.

        windows: a phase each; one that never began has no length.  slices: of one phase; empty without time slices.
        None for a source without its first line.
        """
        raise NotImplementedError(f"{type(self).__name__} must define summary(folds, samples, windows, slices)")


__all__ = [
    "MOST_SLICES", "FailedSample", "Line", "Moment", "RunningSeries", "Sample", "Series", "SeriesHeader", "SourceHeader",
    "TargetHeader", "Value", "Window", "whole_samples",
]  # fmt: skip
