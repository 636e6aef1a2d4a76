"""Samples on disk: ``journal/telemetry-<n>.samples`` has a line per sample, and a line per series before its first sample.

A sample has the values that changed.  Lines stand in pieces: the length of the piece (4 bytes, little-endian), then a list of
lines in msgpack, compressed with zlib where they are long.  Writers append whole pieces, so a file that ``kill -9`` left can be
read to its last sample.  Earlier versions wrote ``telemetry-<n>.jsonl``, a line of JSON each, which is read, too.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import cache
from itertools import accumulate
from operator import sub
from pathlib import Path
from typing import BinaryIO, TypeAlias

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from aiperf.sdk.errors import AiperfError
from aiperf.sdk.series import FailedSample, Line, Moment, Sample, SeriesHeader, SourceHeader, Value
from aiperf.sdk.telemetry import Digest, Histogram, Point, SeriesKind

MOST_SERIES = 100_000
"""Series of one source; further ones are left out."""
_WHOLE_NS = 60_000_000_000
"""A target's sample is written whole once in that time: a reader of a part of the file needs not go back further."""
_MOST_EXACT = 1 << 53
"""Whole numbers from here on are written as they are."""
_LONG = 512
"""Bytes from which on a piece is compressed."""
_COMPRESSED = b"\x78"
"""The first byte of what zlib makes; no list in msgpack begins with it."""
_SUFFIX, _OLD_SUFFIX = ".samples", ".jsonl"

_StoredValue: TypeAlias = float | list[float | list[float]]
"""Of a histogram, its sum, the first count, and how much more each further one is; where counts are no whole numbers, a list
with the :data:`Value`."""


class _StoredSample(Struct, frozen=True, tag="sample", omit_defaults=True):
    """A :class:`Sample` on disk."""

    moment: Moment
    values: dict[int, _StoredValue] = {}
    timed: list[tuple[int, int, _StoredValue]] = []
    target: int = 0
    ended: list[int] = []
    whole: bool = False


_encode = msgspec.msgpack.Encoder().encode


class _Written:
    """What a reader of the file knows of a target.

    last: the points of its last sample in their order, with the numbers of their series.
    values: by series.  timed_ns: by series, the latest time of a value that has one of its own.
    """

    def __init__(self) -> None:
        self.last: list[tuple[Point, int | None]] = []
        self.numbers: list[int] = []
        self.values: dict[int, Value] = {}
        self.timed_ns: dict[int, int] = {}
        self.whole_ns: int | None = None


class _Draft:
    """A sample of a target while its points come in; :meth:`settle` makes it what the target was last."""

    def __init__(self, written: _Written) -> None:
        self._written = written
        self.last: list[tuple[Point, int | None]] = []
        self.numbers: list[int] = []
        self.values: dict[int, Value] = {}
        self.timed: list[tuple[int, int, Value]] = []

    def keep(self, point: Point, number: int) -> None:
        """Add a point with the value that the one at its place had in the sample before."""
        self.numbers.append(number)
        if number in self.values:  # the series was there before in this sample, with another value
            self.values[number] = _value(point)

    def add(self, point: Point, number: int) -> None:
        """Add any other point."""
        if point.at_ns is not None:
            self.timed.append((number, point.at_ns, _value(point)))
            return
        self.numbers.append(number)
        value = _value(point)
        if number in self.values or self._written.values.get(number) != value:
            self.values[number] = value

    def settle(self, moment: Moment, target: int) -> Sample:
        written = self._written
        ended = [] if self.numbers == written.numbers else sorted(set(written.numbers).difference(self.numbers))
        for number in ended:
            del written.values[number]
        written.values.update(self.values)
        written.last, written.numbers = self.last, self.numbers
        timed = []
        for number, at_ns, value in self.timed:
            if at_ns > written.timed_ns.get(number, at_ns - 1):
                written.timed_ns[number] = at_ns
                timed.append((number, at_ns, value))
        whole = written.whole_ns is None or moment.at_ns >= written.whole_ns + _WHOLE_NS
        if whole:
            written.whole_ns = moment.at_ns
        values = {number: written.values[number] for number in written.numbers} if whole else self.values
        return Sample(moment, values, timed, target, ended, whole)


class SampleWriter:
    """Appends samples to the file of one source.  *written* gets each line that is on disk."""

    def __init__(self, path: Path, origin: SourceHeader, written: Callable[[Line], None] = lambda line: None) -> None:
        self._tell = written
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self._ids: dict[tuple[object, ...], int] = {}
        self._shapes: dict[tuple[int, str], dict[tuple[object, ...], int]] = {}
        """By target and name: kind, unit, label names and bounds, with the number of the sample that had them first."""
        self._samples = 0
        self.changed: Collection[int] = ()
        """The series with another value than before in the sample that was made last."""
        self._new: list[SeriesHeader] = []
        self._targets = [_Written() for _ in origin.targets or (None,)]
        self._write(origin)

    def add(self, points: Iterable[Point], moment: Moment, target: int = 0) -> list[str]:
        """Append a sample of a target; gives the sentences of :meth:`sample`.

        Raises:
            OSError: The disk can't be written.
            TypeError, ValueError: *points* has something else than points; nothing is written.
        """
        sample, sentences = self.sample(points, moment, target)
        self.write(sample)
        return sentences

    def sample(self, points: Iterable[Point], moment: Moment, target: int = 0) -> tuple[Sample, list[str]]:
        """The points as a sample, to be written next, and sentences about series that changed, or were left out.

        Where a series without times of its own occurs twice, its last value counts.

        Raises:
            TypeError, ValueError: *points* has something else than points.
        """
        sentences: list[str] = []
        written = self._targets[target]
        draft, before = _Draft(written), written.last
        for place, point in enumerate(_plain(points)):
            known, number = before[place] if place < len(before) else (None, None)
            if known is point and number is not None and point.at_ns is None:
                draft.keep(point, number)
            elif not point.finite:
                number = None
            elif known is not None and number is not None and _alike(known, point):  # mostly the same series in the same order
                if point.at_ns is None and known.value == point.value and number in written.values:
                    draft.keep(point, number)
                else:
                    draft.add(point, number)
            else:
                number = self._id(point, target, sentences)
                if number is not None:
                    draft.add(point, number)
            draft.last.append((point, number))
        self._samples += 1
        self.changed = draft.values
        return draft.settle(moment, target), sentences

    def write(self, sample: Sample) -> None:
        """Append a sample that was made here, after the lines of its new series.

        Raises:
            OSError: The disk can't be written.
        """
        new, self._new = self._new, []
        if new:
            self._write(*new)
        self._write(sample)

    def failed(self, at_ns: int, phase: int, why: str, target: int = 0) -> None:
        self._write(FailedSample(at_ns, phase, why, target))

    def close(self) -> None:
        os.close(self._fd)

    def _id(self, point: Point, target: int, sentences: list[str]) -> int | None:
        """The number of the point's series; None for one too many."""
        bounds = point.value.bounds[:-1] if isinstance(point.value, Histogram) else ()
        labels = tuple(sorted(point.labels.items()))
        key = (target, point.name, point.kind, point.unit, labels, bounds, point.flows)
        if key not in self._ids:
            if len(self._ids) == MOST_SERIES:
                sentences.append(f"has more than {MOST_SERIES:,} series; further ones are left out")
                return None
            number = self._ids[key] = len(self._ids)
            about = point.name, point.kind, point.unit, dict(labels), point.help, bounds, target, point.flows
            self._new.append(SeriesHeader(number, *about))
            shapes = self._shapes.setdefault((target, point.name), {})
            shape = (point.kind, point.unit, tuple(name for name, _ in labels), bounds)
            if shapes and shape not in shapes and self._samples not in shapes.values():
                sentences.append(f"changes the kind, unit, labels or buckets of {point.name}, which goes on as another series")
            shapes.setdefault(shape, self._samples)
        return self._ids[key]

    def _write(self, *lines: Line) -> None:
        data = _piece([_stored(line) if isinstance(line, Sample) else line for line in lines])
        while data:
            data = data[os.write(self._fd, data) :]
        for line in lines:
            self._tell(line)


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
    if one.flows is not other.flows:
        return False
    if isinstance(one.value, Histogram) and isinstance(other.value, Histogram):
        return one.value.bounds == other.value.bounds
    return type(one.value) is not Histogram and type(other.value) is not Histogram


def _value(point: Point) -> Value:
    value = point.value
    if isinstance(value, Histogram):
        if len(value.counts) != len(value.bounds):
            raise ValueError(f"{point.name} has {len(value.counts)} counts for {len(value.bounds)} bounds")
        return [_number(each) for each in (value.sum, *value.counts)]
    assert not isinstance(value, Digest)  # _plain leaves none
    return _number(value)


def _number(value: float) -> float:
    """The number as it takes least room: counts mostly are whole."""
    return whole if -_MOST_EXACT < value < _MOST_EXACT and (whole := int(value)) == value else float(value)


def sample_path(journal: Path, number: int) -> Path:
    """The file of source *number*."""
    return journal / f"telemetry-{number}{_SUFFIX}"


def folds_path(samples: Path) -> Path:
    """The file beside a file of samples for what the plugin for series makes of them."""
    return samples.with_suffix(".folds")


def sample_files(journal: Path) -> list[Path]:
    """The files of all sources, by number."""
    files = [path for path in journal.glob("telemetry-*") if path.suffix in (_SUFFIX, _OLD_SUFFIX)]
    return sorted(files, key=lambda path: int(path.stem.removeprefix("telemetry-")))


def read_samples(path: Path) -> Iterator[Line]:
    """The lines of a file, without an unfinished last piece.

    Raises:
        AiperfError: The file is damaged; names it, and the place.
    """
    with path.open("rb") as file:
        try:
            yield from _old_lines(file) if path.suffix == _OLD_SUFFIX else _lines(file)
        except (msgspec.DecodeError, zlib.error) as error:
            raise AiperfError(f"{path} is damaged before byte {file.tell():,}: {error}") from error


def _old_lines(file: BinaryIO) -> Iterator[Line]:
    decode = msgspec.json.Decoder(Line).decode
    for line in file:
        if line.endswith(b"\n"):
            yield decode(line)


def _lines(file: BinaryIO) -> Iterator[Line]:
    decode = _decoder()
    while len(head := file.read(4)) == 4:
        size = int.from_bytes(head, "little")
        piece = file.read(size)
        if len(piece) < size:
            return
        for line in decode(zlib.decompress(piece) if piece.startswith(_COMPRESSED) else piece):
            yield _restored(line) if isinstance(line, _StoredSample) else line


@cache
def _decoder() -> Callable[[bytes], list[SourceHeader | SeriesHeader | _StoredSample | FailedSample]]:
    """Made where samples are read: it takes 3 ms, and a run's main process reads none."""
    return msgspec.msgpack.Decoder(list[SourceHeader | SeriesHeader | _StoredSample | FailedSample]).decode


def _piece(lines: list[SourceHeader | SeriesHeader | _StoredSample | FailedSample]) -> bytes:
    piece = _encode(lines)
    if len(piece) >= _LONG:
        piece = zlib.compress(piece, 1)
    return len(piece).to_bytes(4, "little") + piece


def _stored(sample: Sample) -> _StoredSample:
    values = {number: _stepped(value) for number, value in sample.values.items()}
    timed = [(number, at_ns, _stepped(value)) for number, at_ns, value in sample.timed]
    return _StoredSample(sample.moment, values, timed, sample.target, sample.ended, sample.whole)


def _restored(stored: _StoredSample) -> Sample:
    values = {number: _summed(value) for number, value in stored.values.items()}
    timed = [(number, at_ns, _summed(value)) for number, at_ns, value in stored.timed]
    return Sample(stored.moment, values, timed, stored.target, stored.ended, stored.whole)


def _stepped(value: Value) -> _StoredValue:
    """The value as it takes least room: counts of buckets have few digits without those of the buckets before."""
    if not isinstance(value, list):
        return value
    if type(sum(value[1:])) is not int:  # differences of others may be rounded
        return [value]
    return [*value[:2], *map(sub, value[2:], value[1:])]


def _summed(stored: _StoredValue) -> Value:
    if not isinstance(stored, list):
        return stored
    if stored and isinstance(stored[0], list):
        return stored[0]
    total, *steps = stored
    return [total, *accumulate(steps)]  # type: ignore[list-item]
