"""The contract of plots: results of runs in, a figure as plain data out.

A plot draws nothing itself: what shows the figure, as a picture or as numbers, is the command's affair.  It reads what a run's
directory holds under the reference's names, so that results of either tool can stand in one picture.
"""

from __future__ import annotations

import json
import math
import re
from array import array
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeGuard

from msgspec import Struct

from aiperf.errors import AiperfError
from aiperf.exporter import Target, prefix_of

if TYPE_CHECKING:
    from aiperf.columns import Floats

KINDS = ("line", "points", "steps")
"""How a series is drawn: neighbours joined, not joined, or each value kept until the next."""


class Axis(Struct, frozen=True):
    """*label* with its unit in brackets; *log*: in decades."""

    label: str
    log: bool = False


class Series(Struct, frozen=True):
    """As many *x* as *y*, all finite; *x* ascends where *kind* joins neighbours."""

    name: str
    x: Floats
    y: Floats
    kind: str = "line"


class Figure(Struct, frozen=True):
    """What a picture shows: series over two axes."""

    title: str
    x: Axis
    y: Axis
    series: tuple[Series, ...]


def checked(figure: object) -> Figure:
    """The figure itself, where it can be drawn.

    Raises:
        ValueError: It can't; says why.
    """
    if not isinstance(figure, Figure):
        raise ValueError(f"draw() gave {type(figure).__name__}, not a Figure")
    if not figure.series:
        raise ValueError("a figure without a series; where there is nothing to show draw() gives None")
    names = set()
    for one in figure.series:
        _check(one, figure)
        if one.name in names:
            raise ValueError(f"two series are called {one.name!r}")
        names.add(one.name)
    return figure


def _check(one: Series, figure: Figure) -> None:
    import numpy as np

    whose = f"the series {one.name!r}"
    if one.kind not in KINDS:
        raise ValueError(f"{whose} is of kind {one.kind!r}, not {', '.join(KINDS)}")
    for which, values, axis in (("x", one.x, figure.x), ("y", one.y, figure.y)):
        if not (isinstance(values, np.ndarray) and values.ndim == 1 and values.dtype.kind in "fiu"):
            raise ValueError(f"{which} of {whose} is no array of numbers")
        if not np.isfinite(values).all():
            raise ValueError(f"{which} of {whose} isn't finite throughout")
        if axis.log and not (values > 0).all():
            raise ValueError(f"{which} of {whose} isn't positive throughout, and its axis is in decades")
    if len(one.x) != len(one.y):
        raise ValueError(f"{whose} has {len(one.x)} x and {len(one.y)} y")
    if not len(one.x):
        raise ValueError(f"{whose} has no value")
    if one.kind != "points" and (one.x[1:] < one.x[:-1]).any():
        raise ValueError(f"x of {whose} doesn't ascend, and neighbours are joined")


class PlotRun:
    """What a run's directory says.

    label: what tells it from the others.  summary: ``profile_export_aiperf.json``, whole.
    """

    def __init__(self, label: str, summary: Mapping[str, Any], records: Path | None = None) -> None:
        self.label, self.summary, self._records = label, summary, records
        self._columns: _Columns | None = None

    def number(self, tag: str, statistic: str = "avg") -> float | None:
        """A metric's statistic; None where the run doesn't have it, or it isn't finite."""
        found = self.summary.get(tag)
        value = found.get(statistic) if isinstance(found, Mapping) else None
        return float(value) if _is_number(value) and math.isfinite(value) else None

    def column(self, name: str) -> Floats:
        """A value for each good request of the profiling phase, in the order of the file; NaN where it has none.

        *name*: a metric's tag, or a field of the metadata in ns (``request_start_ns``; exact to 256 ns, as epoch times are
        in a float).  Empty without a file of requests.

        Raises:
            AiperfError: The file can't be read; names the line.
        """
        if self._columns is None:
            self._columns = _Columns(self._records)
        return self._columns[name]


class Plot:
    """One kind of picture.  *options* has the plot's own options as attributes (None where it declares none).

    title: what it shows, for people.  runs: how many it takes at least.
    """

    title: ClassVar[str]
    runs: ClassVar[int] = 1

    def __init__(self, options: Any = None) -> None:
        self.options = options

    def draw(self, runs: Sequence[PlotRun]) -> Figure | None:
        """The figure of *runs*, at least as many as it takes; None where they don't have what it shows."""
        raise NotImplementedError(f"{type(self).__name__} must define draw(runs)")


def open_runs(paths: Sequence[Path]) -> list[PlotRun]:
    """The runs in these directories, or in directories below them, each under the shortest name that tells it from the others.

    Raises:
        AiperfError: A path holds none or can't be looked into, or a summary can't be read.
    """
    found: dict[Path, Path] = {}
    for path in paths:
        if not path.is_dir():
            raise AiperfError(f"{path} is {'a file' if path.exists() else 'not there'}; results are a directory", _GIVE)
        try:
            below = {summary.parent.resolve(): summary for summary in _summaries(path)}
        except OSError as error:
            raise AiperfError(f"{error.filename or path} can't be read: {error.strerror}") from error
        if not below:
            raise AiperfError(f"{path} holds no results: neither it nor a directory below has a {_SUMMARY}", _GIVE)
        found |= below
    names = _told_apart(list(found))
    return [PlotRun(name, _document(summary), _records(summary)) for name, summary in zip(names, found.values(), strict=True)]


_SUMMARY = Target(Path()).file("aiperf.json").name
_GIVE = "give the artifact directory of a run, or one that holds several"
_DEPTH = 2


def _summaries(path: Path, depth: int = _DEPTH) -> Iterator[Path]:
    """Summaries of the directory itself, else of those below it."""
    own = _summary(path)
    if own is not None:
        yield own
    elif depth:
        for below in sorted((each for each in path.iterdir() if each.is_dir() and not each.is_symlink()), key=_counting):
            yield from _summaries(below, depth - 1)


def _counting(path: Path) -> list[str | int]:
    """What sorts ``c4`` before ``c16``: texts and numbers in turn."""
    return [int(part) if part.isdecimal() else part for part in re.split(r"(\d+)", path.name)]


def _summary(path: Path) -> Path | None:
    """The directory's own summary, whatever prefix it was exported under."""
    summary = Target(path, prefix=prefix_of(path)).file("aiperf.json")
    return summary if summary.is_file() else None


def _records(summary: Path) -> Path | None:
    prefix = None if summary.name == _SUMMARY else summary.stem
    path = Target(summary.parent, prefix=prefix).file("jsonl")
    return path if path.is_file() else None


def _document(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise AiperfError(f"{path} can't be read: {error}", f"aiperf report {path.parent} makes it anew") from error
    if not isinstance(found, dict):
        raise AiperfError(f"{path} is no summary: it holds {type(found).__name__}, not an object")
    return found


class _Line(Struct):
    """What counts here of a line of the per-request file."""

    metadata: dict[str, Any] = {}
    metrics: dict[str, Any] = {}
    error: Any = None

    def counts(self) -> bool:
        about = self.metadata
        return not self.error and about.get("benchmark_phase", "profiling") == "profiling" and not about.get("was_cancelled")

    def numbers(self) -> Iterator[tuple[str, float]]:
        for name, value in self.metadata.items():
            if _is_number(value) and name not in self.metrics:
                yield name, value
        for name, metric in self.metrics.items():
            if isinstance(metric, dict) and _is_number(value := metric.get("value")):
                yield name, value


class _Columns:
    """Every number of the requests that count, by name: the lines themselves would take ten times the memory."""

    def __init__(self, records: Path | None) -> None:
        self._count = 0
        self._known: dict[str, array[float]] = {}
        for line in () if records is None else _lines(records):
            if line.counts():
                for name, value in line.numbers():
                    self._upto(self._count, name).append(value)
                self._count += 1

    def __getitem__(self, name: str) -> Floats:
        import numpy as np

        return np.array(self._upto(self._count, name), dtype=np.float64)

    def _upto(self, count: int, name: str) -> array[float]:
        """The column, NaN where the requests before *count* had no such number."""
        column = self._known.setdefault(name, array("d"))
        if len(column) < count:
            column.extend([math.nan] * (count - len(column)))
        return column


def _lines(path: Path) -> Iterator[_Line]:
    import msgspec

    decode = msgspec.json.Decoder(_Line).decode
    remedy = f"aiperf report {path.parent} makes it anew"
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                try:
                    yield decode(line)
                except (msgspec.DecodeError, UnicodeDecodeError) as error:
                    raise AiperfError(f"{path}:{number} can't be read: {error}", remedy) from error
    except OSError as error:
        raise AiperfError(f"{path} can't be read: {error.strerror}", remedy) from error


def _is_number(value: object) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _told_apart(paths: Sequence[Path]) -> list[str]:
    """The last part of each path, or as many as it takes for all to differ."""
    for count in range(1, max((len(path.parts) for path in paths), default=1) + 1):
        names = ["/".join(path.parts[-count:]) for path in paths]
        if len(set(names)) == len(paths):
            return names
    return [str(path) for path in paths]


__all__ = ["Axis", "Figure", "Plot", "PlotRun", "Series", "checked", "open_runs"]
