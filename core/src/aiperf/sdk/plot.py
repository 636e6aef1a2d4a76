"""The contract of plots: results of runs in, a figure as plain data out.

A plot draws nothing itself: the command ``aiperf plot`` shows the figure, as a picture or as numbers.  Results of this program
and of the reference can stand in one figure.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from msgspec import Struct

from aiperf.sdk.figures import Axis, Figure, Mark, PlotSeries, checked
from aiperf.sdk.options import OptionsT, WithOptions

if TYPE_CHECKING:
    from aiperf.sdk.columns import Column, Floats, Ints, RecordBatch


class RunTable(Protocol):
    """Columns of equal length, by name: a row for each request or arrival."""

    def __len__(self) -> int: ...

    def numbers(self, name: str) -> Floats:
        """A column of numbers: NaN where a row has none, and throughout where no row has the name."""

    def texts(self, name: str) -> list[str | None]:
        """A column of texts (``outcome``, ``error_type``); None where a row has none."""

    def __getitem__(self, name: str) -> Column:
        """A column of numbers, or of lists."""


class _NoRows:
    """A table without a row."""

    def __len__(self) -> int:
        return 0

    def numbers(self, name: str) -> Floats:
        import numpy as np

        return np.empty(0)

    def texts(self, name: str) -> list[str | None]:
        return []

    def __getitem__(self, name: str) -> Column:
        return self.numbers(name)


class TelemetrySeries(Struct, frozen=True):
    """One series that was sampled beside the load, samples in the order of time.

    source: the plugin's name, or the URL that was scraped.  kind: ``gauge``, ``counter``, ``histogram``, ``info`` or
    ``summary``; "" where the files don't tell.  at_ns: wall clock, ns since 1970.  values: of a histogram, sums.
    bounds: upper bounds of a histogram's buckets, without the last, which is infinite; empty for other kinds.
    counts: (samples, buckets), observations up to each bound so far, all of them last; None for other kinds.
    target: what was sampled, a server or a device; "" where the source has one.
    """

    source: str
    name: str
    unit: str
    labels: dict[str, str]
    at_ns: Ints
    values: Floats
    bounds: tuple[float, ...] = ()
    counts: Floats | None = None
    kind: str = ""
    target: str = ""


class PlotRun:
    """The results of one run, as a plot sees them; :func:`aiperf.results.open_run` reads them from a directory.

    label: what tells the run from others.  summary: ``profile_export_aiperf.json``, whole.
    columns: by name, a number for each good request of the profiling phase.

    group, role: as those of :class:`PlotSeries`; runs of a group are joined, "" are all.

    Everything but the label and the summary is read when it is asked for; what a run lacks is empty.
    """

    group, role = "", ""

    def __init__(self, label: str, summary: Mapping[str, Any], columns: Mapping[str, Floats] | None = None) -> None:
        self.label, self._summary, self._columns = label, summary, columns or {}

    @property
    def summary(self) -> Mapping[str, Any]:
        return self._summary

    def number(self, tag: str, statistic: str = "avg") -> float | None:
        """A metric's statistic; None where the run doesn't have it, or it isn't finite."""
        entry = self.summary.get(tag)
        value = entry.get(statistic) if isinstance(entry, Mapping) else None
        if not isinstance(value, int | float) or isinstance(value, bool):
            return None
        try:
            return float(value) if math.isfinite(value) else None
        except OverflowError:  # a whole number beyond all floats
            return None

    def parts(self) -> Sequence[PlotRun]:
        """The runs that it stands for: the repeats of a cell of a study, else itself alone."""
        return [self]

    def expect(self, names: Iterable[str]) -> None:
        """Say which columns of requests will be asked for, so that they are read at once, and no others."""

    def column(self, name: str) -> Floats:
        """A number for each good request of the profiling phase; NaN where it has none, empty without requests.

        *name*: a metric's tag, or a field of the metadata in ns (``request_start_ns``).
        """
        import numpy as np

        return self._columns.get(name, np.empty(0))

    def requests(self, names: Collection[str] | None = None, *, failed: bool = False, lists: bool = False) -> RunTable:
        """The requests of the profiling phase, metrics and times as columns.

        *names*: the columns that are read; None are all.  *failed* adds failed and cancelled requests, ``error_code``, and
        texts: ``error_type``, ``error_message``, with *names* None the identities in the metadata, too.  *lists* adds metrics
        with a list per request.
        """
        return _NoRows()

    def arrivals(self) -> RunTable:
        """Every planned arrival of every phase, sent or not."""
        return _NoRows()

    def slices(self) -> list[dict[str, Any]]:
        """Time slices: ``start_ns``, ``end_ns`` and metrics by tag; empty without ``--slice-duration``."""
        return []

    def telemetry(self) -> list[TelemetrySeries]:
        """Series of samples that were taken beside the load."""
        return []

    def batches(self) -> Iterator[RecordBatch]:
        """Every request of every phase as the run's metrics saw it, where the run has kept that."""
        return iter(())


class Plot(WithOptions[OptionsT]):
    """One kind of picture.  options: the plot's own (None where it declares none).

    title: what it shows, for people.  runs: how many it takes at least.  most_runs: how many it takes at most; None is any
    number.  columns: the columns of requests that it reads (``run.column``, ``run.requests``); those of all plots are read at
    once, and a name that none declares is read when it is asked for.
    """

    title: ClassVar[str]
    runs: ClassVar[int] = 1
    most_runs: ClassVar[int | None] = None
    columns: Sequence[str] = ()

    def draw(self, runs: Sequence[PlotRun]) -> Figure | None:
        """The figure of *runs*, at least as many as it takes; None where they don't have what it shows."""
        raise NotImplementedError(f"{type(self).__name__} must define draw(runs)")


class Painter(Protocol):
    """What ``registry.load("commands", "plot")()`` is, for commands with a figure of their own."""

    def paint(self, figure: Figure, path: Path, caption: Sequence[str] = ()) -> Path:
        """Draw into *path*, a PNG or SVG by its ending, the lines of *caption* below.

        Raises:
            AiperfError: It can't be written, or what draws pictures is not installed.
        """


__all__ = [
    "Axis", "Figure", "Mark", "Painter", "Plot", "PlotRun", "PlotSeries", "RunTable", "TelemetrySeries", "checked",
]  # fmt: skip
