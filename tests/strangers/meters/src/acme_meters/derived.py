"""A statistic of its own, and metrics of other packages' metrics, analyses and telemetry."""

from __future__ import annotations

import math
import struct
from typing import Self

from aiperf import Column, Metric, RecordBatch, RunMetric, Totals, Unit
from aiperf.sdk.columns import Floats
from aiperf.sdk.metric import PluginFold, PluginUnit
from aiperf.sdk.summary import Interval

from acme_meters.units import JOULES, KILOJOULES


class GeometricMean(PluginFold):
    """The geometric mean of positive values, with the interval that holds it if their logarithms are normal."""

    def __init__(self, logarithms: float = 0.0, squares: float = 0.0, count: int = 0) -> None:
        self.logarithms, self.squares, self.count = logarithms, squares, count

    def add(self, values: Floats) -> None:
        logarithms = [math.log(value) for value in values.tolist()]
        self.logarithms += sum(logarithms)
        self.squares += sum(each * each for each in logarithms)
        self.count += len(values)

    def merge(self, other: Self) -> None:
        self.logarithms += other.logarithms
        self.squares += other.squares
        self.count += other.count

    def dump(self) -> bytes:
        return struct.pack("<ddq", self.logarithms, self.squares, self.count)

    @classmethod
    def load(cls, data: bytes) -> Self:
        return cls(*struct.unpack("<ddq", data))

    def interval(self) -> Interval | None:
        if self.count < 2:
            return None
        mean = self.logarithms / self.count
        half = 1.96 * math.sqrt(max(0.0, self.squares / self.count - mean * mean) / (self.count - 1))
        return Interval(math.exp(mean - half), math.exp(mean + half), 0.95)

    def result(self) -> float | None:
        return math.exp(self.logarithms / self.count) if self.count else None


class TypicalEnergy(Metric):
    tag, title, unit, display, order = "typical_energy", "Typical Energy", JOULES, KILOJOULES, 961
    needs, fold, by = ("energy",), GeometricMean, ("model",)

    def column(self, batch: RecordBatch) -> Column:
        return batch["energy"]


class Haste(RunMetric):
    """The part of the requests in flight that waits for its first token: a metric and an analysis of other packages."""

    tag, title, unit, order = "haste", "Haste", Unit.REQUESTS, 962
    needs = ("patience", "effective_concurrency")

    def number(self, run: Totals) -> float | None:
        share, flying = run.value("patience"), run.value("effective_concurrency")
        return None if share is None or flying is None else share / 100 * flying


class EnergyPerMetre(RunMetric):
    """Another package's telemetry as a divisor."""

    tag, title, unit = "energy_per_metre", "Energy per Metre", PluginUnit("J/m")
    needs = ("energy",)

    def number(self, run: Totals) -> float | None:
        tides, energy = run.series("tides", "water", harbour="north"), run.sum("energy")
        return energy / tides[0].stats["avg"] if tides and energy is not None else None
