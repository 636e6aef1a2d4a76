"""The contract of plots: results of runs in, a figure as plain data out.

A plot draws nothing itself: what shows the figure, as a picture or as numbers, is the command's affair.  It reads what a run's
directory holds under the reference's names, so that results of either tool can stand in one picture.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

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


class PlotRun:
    """What a run's directory says.

    label: what tells it from the others.  summary: ``profile_export_aiperf.json``, whole.
    """

    def __init__(self, label: str, summary: Mapping[str, Any], records: Path | None = None) -> None:
        self.label, self.summary, self._records = label, summary, records
        self._lines: list[Mapping[str, Any]] | None = None

    def number(self, tag: str, statistic: str = "avg") -> float | None:
        """A metric's statistic; None where the run doesn't have it."""
        found = self.summary.get(tag)
        value = found.get(statistic) if isinstance(found, Mapping) else None
        return float(value) if isinstance(value, int | float) else None

    def column(self, name: str) -> Floats:
        """A value for each good request of the profiling phase, in the order of the file; NaN where it has none.

        *name*: a metric's tag, or a field of the metadata in ns (``request_start_ns``).  Empty without a file of requests.
        """
        import numpy as np

        return np.array([_value(line, name) for line in self._requests()], dtype=np.float64)

    def _requests(self) -> list[Mapping[str, Any]]:
        if self._lines is None:
            lines = () if self._records is None else _lines(self._records)
            self._lines = [line for line in lines if _counts(line)]
        return self._lines


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
        AiperfError: A path holds none, or its summary can't be read.
    """
    found: dict[Path, Path] = {}
    for path in paths:
        if not path.is_dir():
            raise AiperfError(f"{path} is {'a file' if path.exists() else 'not there'}; results are a directory", _GIVE)
        below = {summary.parent.resolve(): summary for summary in _summaries(path)}
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
        for below in sorted(each for each in path.iterdir() if each.is_dir() and not each.is_symlink()):
            yield from _summaries(below, depth - 1)


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


def _lines(path: Path) -> Iterator[Mapping[str, Any]]:
    import msgspec

    decode = msgspec.json.Decoder(dict[str, Any]).decode
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            try:
                yield decode(line)
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                remedy = f"aiperf report {path.parent} makes it anew"
                raise AiperfError(f"{path}:{number} can't be read: {error}", remedy) from error


def _counts(line: Mapping[str, Any]) -> bool:
    about = line.get("metadata", {})
    return not line.get("error") and about.get("benchmark_phase", "profiling") == "profiling" and not about.get("was_cancelled")


def _value(line: Mapping[str, Any], name: str) -> float:
    metric = line.get("metrics", {}).get(name)
    value = metric.get("value") if isinstance(metric, Mapping) else line.get("metadata", {}).get(name)
    return float(value) if isinstance(value, int | float) else float("nan")


def _told_apart(paths: Sequence[Path]) -> list[str]:
    """The last part of each path, or as many as it takes for all to differ."""
    for count in range(1, max((len(path.parts) for path in paths), default=1) + 1):
        names = ["/".join(path.parts[-count:]) for path in paths]
        if len(set(names)) == len(paths):
            return names
    return [str(path) for path in paths]


__all__ = ["Axis", "Figure", "Plot", "PlotRun", "Series", "open_runs"]
