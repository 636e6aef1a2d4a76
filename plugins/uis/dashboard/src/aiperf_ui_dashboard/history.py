"""What the curves show: the last two minutes of a few numbers, in columns of equal time."""

from __future__ import annotations

from collections import deque

from aiperf.sdk.snapshot import Snapshot

WINDOW_S = 120.0
_MOST = 512
"""Snapshots that are kept; two a second fill the window with 240."""
CURVES = (
    ("Rate", "req/s"), ("In flight", ""), ("Failures", "req/s"), ("TTFT p50", ""), ("TTFT p99", ""),
    ("ITL p50", ""), ("ITL p99", ""),
)  # fmt: skip
"""Name of each curve, and its unit; of a percentile, that of the metric."""
_PERCENTILES = (("time_to_first_token", "p50"), ("time_to_first_token", "p99"), ("inter_token_latency", "p50"),
    ("inter_token_latency", "p99"))  # fmt: skip
_LEAST_S = 1e-3
"""What a snapshot counts for that comes with the one before."""
_Values = tuple[float | None, ...]


class History:
    """Points in the order of time, in seconds of the snapshots' wall clock."""

    def __init__(self) -> None:
        self._points: deque[tuple[float, float, _Values]] = deque(maxlen=_MOST)
        """When, for how long before, and the numbers."""
        self._last: tuple[float, str, int, int] | None = None
        self.units = [unit for _, unit in CURVES]

    @property
    def now_s(self) -> float:
        """Seconds of the newest point; 0 before the first."""
        return self._points[-1][0] if self._points else 0.0

    def add(self, snapshot: Snapshot) -> None:
        """Take the numbers of a snapshot.  Rates are of the time since the one before; of a phase's first, since its begin."""
        now_s, done = snapshot.at_ns / 1e9, snapshot.completed + snapshot.errors
        last, self._last = self._last, (now_s, snapshot.phase, done, snapshot.failed)
        if last is None or last[1] != snapshot.phase:
            last = now_s - snapshot.elapsed_s, snapshot.phase, 0, 0
        took_s = now_s - last[0]
        rate = failing = None
        if took_s > 0:
            rate, failing = max(0, done - last[2]) / took_s, max(0, snapshot.failed - last[3]) / took_s
        values: list[float | None] = [rate, float(snapshot.in_flight), failing]
        for at, (tag, statistic) in enumerate(_PERCENTILES, start=3):
            metric = snapshot.metric(tag)
            recent = None if metric is None else metric.recent
            values.append(None if recent is None else recent.p50 if statistic == "p50" else recent.p99)
            if metric is not None:
                self.units[at] = metric.unit
        self._points.append((now_s, max(took_s, _LEAST_S), tuple(values)))

    def columns(self, count: int) -> tuple[float, list[list[float | None]]]:
        """Seconds of a column, and for each curve its *count* last full columns: means over time, None where there is no point.

        A column is a fixed span of time, so that columns move only when one is full.
        """
        step_s = max(WINDOW_S / max(1, count), 0.5)
        newest = int(self.now_s // step_s)
        sums = [[0.0] * count for _ in CURVES]
        counts = [[0.0] * count for _ in CURVES]
        for at_s, took_s, values in self._points:
            column = count - (newest - int(at_s // step_s))
            if 0 <= column < count:
                for curve, value in enumerate(values):
                    if value is not None:
                        sums[curve][column] += value * took_s
                        counts[curve][column] += took_s
        means = [
            [total / number if number else None for total, number in zip(of_sums, of_counts, strict=True)]
            for of_sums, of_counts in zip(sums, counts, strict=True)
        ]
        return step_s, means


__all__ = ["CURVES", "WINDOW_S", "History"]
