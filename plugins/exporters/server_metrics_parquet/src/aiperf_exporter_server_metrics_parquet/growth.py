"""Counters and histograms since the phase began; one that became less began again at 0."""

from __future__ import annotations

from collections.abc import Iterable

from aiperf.sdk.series import SeriesHeader, Value
from aiperf.sdk.telemetry import SeriesKind


class Growth:
    """The growth of each series, by its number, since its value when the phase began."""

    def __init__(self) -> None:
        self._last: dict[int, list[float]] = {}
        self._grown: dict[int, list[float]] = {}

    def take(self, header: SeriesHeader, value: Value) -> list[float]:
        """Take the next value; a gauge's alone, of others what they grew."""
        values = value if isinstance(value, list) else [value]
        if header.kind not in (SeriesKind.COUNTER, SeriesKind.HISTOGRAM):
            return values
        last = self._last.get(header.id)
        self._last[header.id] = values
        if last is None:
            grown = self._grown[header.id] = [0.0] * len(values)
            return grown
        begins = [0.0] * len(values) if values[-1] < last[-1] else last  # the last one counts all observations
        grown = self._grown[header.id]
        grown = self._grown[header.id] = [
            total + value - before for total, value, before in zip(grown, values, begins, strict=True)
        ]
        return grown

    def begin(self, numbers: Iterable[int]) -> None:
        """The phase may begin behind these values: growth so far is not its own."""
        for number in numbers:
            if number in self._last:
                self._grown[number] = [0.0] * len(self._last[number])
