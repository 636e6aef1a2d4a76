"""Samples on disk: ``journal/telemetry-<n>.jsonl``, a line a sample, behind a line for each series when it is first seen.

Written whole line by whole line, so that what ``kill -9`` leaves can be read to its last sample.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TypeAlias

import msgspec
from msgspec import Struct

from aiperf.descriptor import PluginRef
from aiperf.telemetry import Histogram, Point, SeriesKind

_NAME = re.compile(r"telemetry-(\d+)\.jsonl")


class Origin(Struct, frozen=True, tag="source"):
    """The first line: whose samples these are."""

    ref: PluginRef
    interval_s: float


class Series(Struct, frozen=True, tag="series", omit_defaults=True):
    """What the *id* in samples stands for.  *bounds*: of a histogram, without the last, which is infinite."""

    id: int
    name: str
    kind: SeriesKind
    unit: str = ""
    labels: dict[str, str] = {}
    help: str = ""
    bounds: tuple[float, ...] = ()


class Moment(Struct, frozen=True, omit_defaults=True):
    """When a sample was taken: at *at_ns* of the monotonic clock, the middle of the *took_ns* that it took, and at *wall_ns*.

    phase: index of the phase that was under way.  edge: ``begin`` or ``end`` where it was just that.
    missed: samples that were due since the one before, and that there was no time for.
    """

    at_ns: int
    wall_ns: int
    took_ns: int
    phase: int
    edge: str | None = None
    missed: int = 0


class Sample(Struct, frozen=True, tag="sample"):
    """What was read at a moment.  *values*: by series; of a histogram its sum, then its counts."""

    moment: Moment
    values: dict[int, float | list[float]]


class Failed(Struct, frozen=True, tag="failed"):
    """A sample that couldn't be had."""

    at_ns: int
    phase: int
    why: str


Line: TypeAlias = Origin | Series | Sample | Failed
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Line).decode


class SampleWriter:
    """Appends to one source's file."""

    def __init__(self, path: Path, origin: Origin) -> None:
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self._ids: dict[tuple[object, ...], int] = {}
        self._write(origin)

    def add(self, points: Iterable[Point], moment: Moment) -> None:
        """One sample.  Of a series that is read twice, the last counts.

        Raises:
            OSError: The disk takes no more.
            TypeError, ValueError: What was given are no points.
        """
        new: list[Series] = []
        values = {self._id(each, new): _value(each) for each in points if each.finite}
        self._write(*new, Sample(moment, values))

    def failed(self, at_ns: int, phase: int, why: str) -> None:
        self._write(Failed(at_ns, phase, why))

    def close(self) -> None:
        os.close(self._fd)

    def _id(self, point: Point, new: list[Series]) -> int:
        bounds = point.value.bounds[:-1] if isinstance(point.value, Histogram) else ()
        key = (point.name, point.kind, point.unit, tuple(sorted(point.labels.items())), bounds)
        found = self._ids.get(key)
        if found is None:
            found = self._ids[key] = len(self._ids)
            labels = dict(sorted(point.labels.items()))
            new.append(Series(found, point.name, point.kind, point.unit, labels, point.help, bounds))
        return found

    def _write(self, *lines: Line) -> None:
        data = b"".join(_encode(line) + b"\n" for line in lines)
        while data:
            data = data[os.write(self._fd, data) :]


def _value(point: Point) -> float | list[float]:
    value = point.value
    return [value.sum, *value.counts] if isinstance(value, Histogram) else float(value)


def sample_path(journal: Path, number: int) -> Path:
    """The file of the source of this number."""
    return journal / f"telemetry-{number}.jsonl"


def sample_files(journal: Path) -> list[Path]:
    """Those there are, by number."""
    found = {int(match[1]): path for path in journal.glob("telemetry-*.jsonl") if (match := _NAME.fullmatch(path.name))}
    return [found[number] for number in sorted(found)]


def read_samples(path: Path) -> Iterator[Line]:
    """A file's lines; a last one that was cut is none."""
    with path.open("rb") as file:
        for line in file:
            if line.endswith(b"\n"):
                yield _decode(line)
