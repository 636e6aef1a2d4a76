"""The course of a run: at most 3,600 points a series, with the extremes of gauges and the sums of counters."""

from __future__ import annotations

import math
from array import array
from collections.abc import Mapping
from typing import Any

MOST_POINTS, MOST_SERIES = 3_600, 500
_NAN = math.nan


class History:
    """Points of series on one axis of times.

    Points come in groups, of which two are kept: of a counter its values at both times, so that differences always sum to the
    whole; of a gauge its least and its greatest value, in the order in which they came.  A group is two points at first, and
    each time the series are full, neighbouring groups become one.
    """

    def __init__(self, most: int = MOST_POINTS) -> None:
        self._most, self._group = most, 2
        self._times = array("d")
        self._series: dict[str, array[float]] = {}
        self._counters: set[str] = set()
        self._about: dict[str, dict[str, Any]] = {}
        self._waiting: list[tuple[float, dict[str, float]]] = []
        self.left_out = 0
        """Series beyond MOST_SERIES, which are not kept."""

    def add(self, at_s: float, counters: Mapping[str, float], gauges: Mapping[str, float | None]) -> None:
        """Add a point of every series that has one.  *at_s* increases; *counters* never fall."""
        left_out = 0
        values: dict[str, float] = {}
        for names, is_counter in ((counters, True), (gauges, False)):
            for name, value in names.items():
                if name not in self._series:
                    if len(self._series) >= MOST_SERIES:
                        left_out += 1
                        continue
                    before = 0.0 if is_counter else _NAN
                    self._series[name] = array("d", [before]) * len(self._times)
                    if is_counter:
                        self._counters.add(name)
                values[name] = _NAN if value is None else float(value)
        self.left_out = max(self.left_out, left_out)
        self._waiting.append((at_s, values))
        if len(self._waiting) == self._group:
            self._keep()

    def describe(self, name: str, about: dict[str, Any]) -> None:
        """Say what a series is; told once."""
        self._about.setdefault(name, about)

    def described(self, name: str) -> bool:
        return name in self._about

    def _keep(self) -> None:
        times, columns = self._drained()
        self._times.extend(times)
        for name, series in self._series.items():
            series.extend(columns[name])
        self._waiting.clear()
        if len(self._times) > self._most - 2:
            self._halve()

    def _drained(self) -> tuple[list[float], dict[str, list[float]]]:
        """The waiting points, as at most two."""
        times = [at_s for at_s, _ in self._waiting]
        columns = {}
        for name in self._series:
            column = [values.get(name, _NAN) for _, values in self._waiting]
            if name in self._counters:
                column = self._filled(name, column)
            columns[name] = column if len(times) <= 2 else _pair(column, name in self._counters)
        return (times if len(times) <= 2 else [times[len(times) // 2 - 1], times[-1]]), columns

    def _filled(self, name: str, column: list[float]) -> list[float]:
        """A counter that is missing in a point has its value of before."""
        last = self._series[name][-1] if self._series[name] else 0.0
        filled = []
        for value in column:
            last = last if math.isnan(value) else value
            filled.append(last)
        return filled

    def _halve(self) -> None:
        count = len(self._times) // 4 * 4
        rest = slice(count, None)
        times = array("d", (self._times[at] for start in range(0, count, 4) for at in (start + 1, start + 3)))
        for name, series in self._series.items():
            is_counter = name in self._counters
            kept = array("d")
            for start in range(0, count, 4):
                kept.extend(_pair(series[start : start + 4], is_counter))
            kept.extend(series[rest])
            self._series[name] = kept
        times.extend(self._times[rest])
        self._times = times
        self._group *= 2

    def document(self) -> dict[str, Any]:
        """``times``: seconds; ``series``: by name, what it is and its ``values``, one for each time; None is unknown."""
        times, columns = self._drained()
        return {
            "times": _rounded([*self._times, *times]),
            "series": {
                name: {
                    "kind": "counter" if name in self._counters else "gauge", **self._about.get(name, {}),
                    "values": _rounded([*series, *columns[name]]),
                }
                for name, series in self._series.items()
            },
            "left_out": self.left_out,
        }  # fmt: skip


def _pair(values: Any, is_counter: bool) -> list[float]:
    """Two points of several: the counter's at half of them and at their end; the gauge's least and greatest, as they came."""
    if is_counter:
        return [values[len(values) // 2 - 1], values[-1]]
    known = [(value, place) for place, value in enumerate(values) if not math.isnan(value)]
    if not known:
        return [_NAN, _NAN]
    low, high = min(known), max(known)
    return [low[0], high[0]] if low[1] <= high[1] else [high[0], low[0]]


def _rounded(values: list[float]) -> list[float | None]:
    """Six digits: what a chart shows, at half of the bytes.  Counts stay whole."""
    return [None if math.isnan(value) else value if value == int(value) else float(f"{value:.6g}") for value in values]


__all__ = ["MOST_POINTS", "MOST_SERIES", "History"]
