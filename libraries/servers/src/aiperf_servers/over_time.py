"""Quantities of a server over the time of a phase, from its samples."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache

from aiperf.sdk.series import Line, Sample, SeriesHeader, SourceHeader, Value, Window
from aiperf.sdk.telemetry import SeriesKind

from aiperf_servers.engines import Engine, engine_of

MOST_POINTS = 256
"""Points of a quantity; with more, the least and the greatest of each 128th of the time stay."""
_TOTAL = "_total"

Points = list[tuple[float, float]]
"""Seconds since the begin of the phase, and values."""


def over_time(
    lines: Iterable[Line], window: Window, most: int | None = MOST_POINTS
) -> Iterator[tuple[str, Engine, str, str, Points]]:
    """By target and engine, each quantity with its unit and at most *most* points of the phase; None is all.

    A gauge has its values, a latency the mean of what ended since the sample before, a count its growth a second.
    """
    targets: tuple[str, ...] = ()
    followed: dict[tuple[int, str], _Followed] = {}
    by_id: dict[int, _Followed] = {}
    for line in lines:
        if isinstance(line, SourceHeader):
            targets = tuple(target.name for target in line.targets)
        elif isinstance(line, SeriesHeader):
            engine = engine_of(line.name)
            if engine is not None:
                name = targets[line.target] if line.target < len(targets) else ""
                one = followed.setdefault((line.target, engine.name), _Followed(name, engine, window))
                if one.takes(line):
                    by_id[line.id] = one
        elif isinstance(line, Sample):
            touched = {id(by_id[number]): by_id[number] for number in (*line.values, *line.ended) if number in by_id}
            for one in touched.values():
                one.change(line)
            for (target, _), one in followed.items():
                if target == line.target:
                    one.moment(line.moment.at_ns)
    for one in followed.values():
        for quantity, (unit, points) in one.points.items():
            if len(points) > 1:
                yield one.target, one.engine, quantity, unit, points if most is None else thinned(points, most)


def thinned(points: Points, most: int = MOST_POINTS) -> Points:
    """The points, or the least and the greatest of each of *most* / 2 equal parts of them, in the order of time."""
    if len(points) <= most:
        return points
    parts, kept = most // 2, Points()
    for part in range(parts):
        some = points[len(points) * part // parts : len(points) * (part + 1) // parts]
        ends = {min(some, key=lambda point: point[1]), max(some, key=lambda point: point[1])}
        kept += sorted(ends)
    return kept


class _Followed:
    """The families of one engine at one target: their last values, and the points that these make."""

    def __init__(self, target: str, engine: Engine, window: Window) -> None:
        self.target, self.engine, self._window = target, engine, window
        self.points: dict[str, tuple[str, Points]] = {}
        self._families: dict[int, str] = {}
        self._values: dict[int, Value] = {}
        self._labels: dict[int, Mapping[str, str]] = {}
        self._before: dict[str, tuple[int, float, float]] = {}
        """By quantity: when its numerator and its denominator last had these values."""

    def takes(self, series: SeriesHeader) -> bool:
        """Whether a quantity needs the series; remember it then."""
        name = series.name.removeprefix(self.engine.prefix)
        name = name.removesuffix(_TOTAL) if series.kind is SeriesKind.COUNTER else name
        if name not in _needed(self.engine):
            return False
        self._families[series.id], self._labels[series.id] = name, series.labels
        return True

    def change(self, sample: Sample) -> None:
        for number in sample.ended:
            self._values.pop(number, None)
        self._values.update((number, value) for number, value in sample.values.items() if number in self._families)

    def moment(self, at_ns: int) -> None:
        """Add the points of this moment; the changes between two samples belong to the later one."""
        known: defaultdict[str, list[tuple[int, Value]]] = defaultdict(list)
        for number, value in self._values.items():
            known[self._families[number]].append((number, value))
        for level in self.engine.levels:
            for family in level.families:
                numbers = [(number, value) for number, value in known.get(family, ()) if isinstance(value, int | float)]
                if numbers:
                    self._gauge(level.quantity, level.unit, self._level(numbers, level.scale, level.mean, level.parts), at_ns)
                    break
        for latency in self.engine.latencies:
            if observed := next((known[name] for name in latency.families if known.get(name)), None):
                summed, count = _histograms(observed)
                self._growth(latency.quantity, "ms", at_ns, summed * latency.scale, count)
        for count_of in self.engine.counts:
            if counted := next((known[name] for name in count_of.families if known.get(name)), None):
                more = [value for name in count_of.besides for value in known.get(name, ())]
                whole = sum(_sum(value) for _, value in (*counted, *more))
                self._growth(count_of.quantity, f"{count_of.unit}/s", at_ns, whole, at_ns / 1e9)

    def _level(
        self, numbers: Sequence[tuple[int, Value]], scale: float, mean: bool, parts: tuple[str, str, str] | None
    ) -> float:
        plain = [(self._labels[number], float(value)) for number, value in numbers if isinstance(value, int | float)]
        if parts is not None:
            label, part, whole = parts
            below = sum(value for labels, value in plain if labels.get(label) == whole)
            above = sum(value for labels, value in plain if labels.get(label) == part)
            return scale * above / below if below else math.nan
        return scale * sum(value for _, value in plain) / (len(plain) if mean else 1)

    def _gauge(self, quantity: str, unit: str, value: float, at_ns: int) -> None:
        if self._window.begin_ns <= at_ns <= self._window.end_ns and math.isfinite(value):
            self.points.setdefault(quantity, (unit, []))[1].append(((at_ns - self._window.begin_ns) / 1e9, value))

    def _growth(self, quantity: str, unit: str, at_ns: int, above: float, below: float) -> None:
        """The growth of *above* for each *below* since the last point."""
        _, last_above, last_below = self._before.get(quantity, (at_ns, above, below))
        if above < last_above or below < last_below or quantity not in self._before:
            self._before[quantity] = at_ns, above, below  # the server began again, or this is the first
        elif below > last_below:
            self._before[quantity] = at_ns, above, below
            self._gauge(quantity, unit, (above - last_above) / (below - last_below), at_ns)


@cache
def _needed(engine: Engine) -> frozenset[str]:
    found = [name.removesuffix(_TOTAL) for each in engine.counts for name in (*each.families, *each.besides)]
    found += [name for each in engine.latencies for name in each.families]
    return frozenset((*found, *(name for each in engine.levels for name in each.families)))


def _histograms(series: Sequence[tuple[int, Value]]) -> tuple[float, float]:
    """Sum and count of all observations."""
    lists = [value for _, value in series if isinstance(value, list) and len(value) > 1]
    return sum(value[0] for value in lists), sum(value[-1] for value in lists)


def _sum(value: Value) -> float:
    return value[0] if isinstance(value, list) else float(value)
