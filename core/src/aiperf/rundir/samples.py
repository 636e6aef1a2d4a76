"""Samples on disk: ``journal/telemetry-<n>.jsonl`` has a line per sample, and a line per series before its first sample.

Writers append whole lines, so a file that ``kill -9`` left can be read to its last sample.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import msgspec
from msgspec.structs import replace

from aiperf.sdk.exporter import visible
from aiperf.sdk.series import FailedSample, Line, Moment, Sample, SeriesHeader, SourceHeader, Value
from aiperf.sdk.telemetry import Digest, Histogram, Point, SeriesKind

MOST_SERIES = 10_000
"""Series of one source; further ones are left out."""


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Line).decode


class SampleWriter:
    """Appends samples to the file of one source.  *written* gets each line that is on disk."""

    def __init__(self, path: Path, origin: SourceHeader, written: Callable[[Line], None] = lambda line: None) -> None:
        self._written = written
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self._ids: dict[tuple[object, ...], int] = {}
        self._shapes: dict[str, dict[tuple[object, ...], int]] = {}
        """By name: kind, unit, label names and bounds, with the number of the sample that had them first."""
        self._samples = 0
        self._new: list[SeriesHeader] = []
        self._usual: list[tuple[Point, int | None]] = []
        """The points of the last sample, with the numbers of their series."""
        self._write(origin)

    def add(self, points: Iterable[Point], moment: Moment) -> list[str]:
        """Append a sample; gives the sentences of :meth:`sample`.

        Raises:
            OSError: The disk can't be written.
            TypeError, ValueError: *points* has something else than points; nothing is written.
        """
        sample, sentences = self.sample(points, moment)
        self.write(sample)
        return sentences

    def sample(self, points: Iterable[Point], moment: Moment) -> tuple[Sample, list[str]]:
        """The points as a sample, and sentences about series that changed, or were left out.

        Where a series without times of its own occurs twice, its last value counts.

        Raises:
            TypeError, ValueError: *points* has something else than points.
        """
        sentences: list[str] = []
        sample, usual, place = Sample(moment, {}, []), self._usual, 0
        for point in _plain(points):
            if not point.finite:
                continue
            if place < len(usual) and _alike(usual[place][0], point):  # most sources give the same series in the same order
                number = usual[place][1]
            else:
                number = self._id(point, sentences)
                usual[place : place + 1] = [(point, number)]
            place += 1
            if number is not None and point.at_ns is None:
                sample.values[number] = _value(point)
            elif number is not None and point.at_ns is not None:
                sample.timed.append((number, point.at_ns, _value(point)))
        self._samples += 1
        return sample, sentences

    def write(self, sample: Sample) -> None:
        """Append a sample that was made here, after the lines of its new series.

        Raises:
            OSError: The disk can't be written.
        """
        new, self._new = self._new, []
        self._write(*new, sample)

    def failed(self, at_ns: int, phase: int, why: str) -> None:
        self._write(FailedSample(at_ns, phase, why))

    def close(self) -> None:
        os.close(self._fd)

    def _id(self, point: Point, sentences: list[str]) -> int | None:
        """The number of the point's series; None for one too many."""
        bounds = point.value.bounds[:-1] if isinstance(point.value, Histogram) else ()
        labels = tuple(sorted(point.labels.items()))
        key = (point.name, point.kind, point.unit, labels, bounds)
        if key not in self._ids:
            if len(self._ids) == MOST_SERIES:
                sentences.append(f"has more than {MOST_SERIES:,} series; further ones are left out")
                return None
            number = self._ids[key] = len(self._ids)
            self._new.append(SeriesHeader(number, point.name, point.kind, point.unit, dict(labels), point.help, bounds))
            shapes = self._shapes.setdefault(point.name, {})
            shape = (point.kind, point.unit, tuple(name for name, _ in labels), bounds)
            if shapes and shape not in shapes and self._samples not in shapes.values():
                sentences.append(f"changes the kind, unit, labels or buckets of {point.name}, which goes on as another series")
            shapes.setdefault(shape, self._samples)
        return self._ids[key]

    def _write(self, *lines: Line) -> None:
        data = visible(b"".join(_encode(line) + b"\n" for line in lines))
        while data:
            data = data[os.write(self._fd, data) :]
        for line in lines:
            self._written(line)


def _plain(points: Iterable[Point]) -> Iterator[Point]:
    """The points, with a gauge for each quantile of a digest, and counters of its observations."""
    for point in points:
        if not isinstance(point.value, Digest):
            yield point
            continue
        for quantile, value in point.value.quantiles.items():
            yield replace(point, value=value, labels={**point.labels, "quantile": f"{quantile:g}"})
        for name, unit, total in (("sum", point.unit, point.value.sum), ("count", "", point.value.count)):
            if total is not None:
                yield replace(point, name=f"{point.name}_{name}", value=total, kind=SeriesKind.COUNTER, unit=unit)


def _alike(one: Point, other: Point) -> bool:
    """Whether the points are of one series."""
    if one.name != other.name or one.labels != other.labels or one.kind is not other.kind or one.unit != other.unit:
        return False
    if isinstance(one.value, Histogram) and isinstance(other.value, Histogram):
        return one.value.bounds == other.value.bounds
    return type(one.value) is not Histogram and type(other.value) is not Histogram


def _value(point: Point) -> Value:
    value = point.value
    if isinstance(value, Histogram):
        if len(value.counts) != len(value.bounds):
            raise ValueError(f"{point.name} has {len(value.counts)} counts for {len(value.bounds)} bounds")
        return [value.sum, *value.counts]
    assert not isinstance(value, Digest)  # _plain leaves none
    return float(value)


def sample_path(journal: Path, number: int) -> Path:
    """The file of source *number*."""
    return journal / f"telemetry-{number}.jsonl"


def folds_path(samples: Path) -> Path:
    """The file beside a file of samples for what the plugin for series makes of them."""
    return samples.with_suffix(".folds")


def sample_files(journal: Path) -> list[Path]:
    """The files of all sources, by number."""
    return sorted(journal.glob("telemetry-*.jsonl"), key=lambda path: int(path.stem.removeprefix("telemetry-")))


def read_samples(path: Path) -> Iterator[Line]:
    """The lines of a file, without an unfinished last line."""
    with path.open("rb") as file:
        for line in file:
            if line.endswith(b"\n"):
                yield _decode(line)
