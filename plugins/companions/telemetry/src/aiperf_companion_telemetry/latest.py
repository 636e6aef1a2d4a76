"""The last values of a source's series, for who looks at the run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from aiperf.sdk.series import Moment
from aiperf.sdk.snapshot import MOST_SERIES, LiveSeries
from aiperf.sdk.telemetry import Digest, Histogram, Point, SeriesKind

from aiperf_companion_telemetry.targets import NS, Taken

_MOST_BYTES = 40_000
"""Texts of an answer: the run reads it twice a second, and the pipe takes 64 KiB."""
_ROW_BYTES = 80
"""Bytes of a row beside its texts."""
_Key = tuple[str, tuple[tuple[str, str], ...]]


class LatestValues:
    """Keeps the last two samples of each target, as they came."""

    def __init__(self) -> None:
        self._samples: dict[int, list[tuple[Sequence[Point], Moment]]] = {}

    def note(self, taken: Taken) -> None:
        if taken.points is not None:
            kept = self._samples.setdefault(taken.target, [])
            kept.append((taken.points, taken.moment))
            del kept[:-2]

    def clear(self) -> None:
        """Another plan begins."""
        self._samples.clear()

    def rows(self, source: str, targets: Sequence[str]) -> tuple[list[LiveSeries], int]:
        """The last value of each series of *source*, as many as one answer holds, and how many more there are."""
        rows, further, size = list[LiveSeries](), 0, 0
        for target, kept in self._samples.items():
            points, moment = kept[-1]
            before = {_key(point): point for point in kept[0][0]} if len(kept) > 1 else {}
            span_s = (moment.at_ns - kept[0][1].at_ns) / NS
            for row in _rows(points, before, span_s, source, targets[target], moment.wall_ns):
                texts = (row.name, row.unit, row.target, *row.labels, *row.labels.values())
                size += _ROW_BYTES + sum(map(len, texts))
                if len(rows) == MOST_SERIES or size > _MOST_BYTES:
                    further += 1
                else:
                    rows.append(row)
        return rows, further


def _key(point: Point) -> _Key:
    return point.name, tuple(point.labels.items())


def _rows(
    points: Iterable[Point], before: dict[_Key, Point], span_s: float, source: str, target: str, at_ns: int
) -> Iterable[LiveSeries]:
    for point in points:
        if point.kind is not SeriesKind.INFO and point.finite:
            value = _value(point, before.get(_key(point)), span_s)
            about = point.unit, point.labels, target, point.kind.value
            yield LiveSeries(source, point.name, value, *about, point.at_ns or at_ns)


def _value(point: Point, before: Point | None, span_s: float) -> float | None:
    """A level; the increase a second of a counter; the mean of what a histogram has observed since *before*."""
    now, then = point.value, None if before is None else before.value
    if isinstance(now, Histogram):
        count = now.counts[-1] - (then.counts[-1] if isinstance(then, Histogram) else now.counts[-1])
        return (now.sum - then.sum) / count if isinstance(then, Histogram) and count > 0 else None
    if isinstance(now, Digest):
        return now.quantiles.get(0.5)
    if point.kind is not SeriesKind.COUNTER:
        return now
    if not isinstance(then, float | int) or span_s <= 0 or now < then:
        return None
    return (now - then) / span_s
