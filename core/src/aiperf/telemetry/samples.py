"""Samples on disk: ``journal/telemetry-<n>.jsonl`` has a line per sample, and a line per series before its first sample.

Writers append whole lines, so a file that ``kill -9`` left can be read to its last sample.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TypeAlias

import msgspec
from msgspec import Struct

from aiperf.sdk.descriptor import PluginRef
from aiperf.sdk.telemetry import Histogram, Point, SeriesKind


class SourceHeader(Struct, frozen=True, tag="source"):
    """The first line: the source of the samples."""

    ref: PluginRef
    interval_s: float


class SeriesHeader(Struct, frozen=True, tag="series", omit_defaults=True):
    """The series of an *id* in samples.  *bounds*: bounds of a histogram without the last, infinite one."""

    id: int
    name: str
    kind: SeriesKind
    unit: str = ""
    labels: dict[str, str] = {}
    help: str = ""
    bounds: tuple[float, ...] = ()


class Moment(Struct, frozen=True, omit_defaults=True):
    """The time of a sample.

    at_ns, wall_ns: monotonic and wall clock at the middle of the sample, which took *took_ns*.
    phase: index of the running phase.  edge: ``begin`` or ``end`` for samples at an edge of the phase.
    missed: samples since the previous one that were due and not taken.
    """

    at_ns: int
    wall_ns: int
    took_ns: int
    phase: int
    edge: str | None = None
    missed: int = 0


class Sample(Struct, frozen=True, tag="sample"):
    """The values of a moment by series id; a histogram has its sum, then its counts."""

    moment: Moment
    values: dict[int, float | list[float]]


class FailedSample(Struct, frozen=True, tag="failed"):
    """A sample that failed."""

    at_ns: int
    phase: int
    why: str


Line: TypeAlias = SourceHeader | SeriesHeader | Sample | FailedSample
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Line).decode


class SampleWriter:
    """Appends samples to the file of one source."""

    def __init__(self, path: Path, origin: SourceHeader) -> None:
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self._ids: dict[tuple[object, ...], int] = {}
        self._write(origin)

    def add(self, points: Iterable[Point], moment: Moment) -> None:
        """Append a sample.  Where a series occurs twice, its last value counts.

        Raises:
            OSError: The disk can't be written.
            TypeError, ValueError: *points* has something else than points.
        """
        new: list[SeriesHeader] = []
        values = {self._id(point, new): _value(point) for point in points if point.finite}
        self._write(*new, Sample(moment, values))

    def failed(self, at_ns: int, phase: int, why: str) -> None:
        self._write(FailedSample(at_ns, phase, why))

    def close(self) -> None:
        os.close(self._fd)

    def _id(self, point: Point, new: list[SeriesHeader]) -> int:
        bounds = point.value.bounds[:-1] if isinstance(point.value, Histogram) else ()
        labels = tuple(sorted(point.labels.items()))
        key = (point.name, point.kind, point.unit, labels, bounds)
        if key not in self._ids:
            number = self._ids[key] = len(self._ids)
            new.append(SeriesHeader(number, point.name, point.kind, point.unit, dict(labels), point.help, bounds))
        return self._ids[key]

    def _write(self, *lines: Line) -> None:
        data = b"".join(_encode(line) + b"\n" for line in lines)
        while data:
            data = data[os.write(self._fd, data) :]


def _value(point: Point) -> float | list[float]:
    value = point.value
    return [value.sum, *value.counts] if isinstance(value, Histogram) else float(value)


def sample_path(journal: Path, number: int) -> Path:
    """The file of source *number*."""
    return journal / f"telemetry-{number}.jsonl"


def sample_files(journal: Path) -> list[Path]:
    """The files of all sources, by number."""
    return sorted(journal.glob("telemetry-*.jsonl"), key=lambda path: int(path.stem.removeprefix("telemetry-")))


def read_samples(path: Path) -> Iterator[Line]:
    """The lines of a file, without an unfinished last line."""
    with path.open("rb") as file:
        for line in file:
            if line.endswith(b"\n"):
                yield _decode(line)
