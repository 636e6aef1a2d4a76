"""What one target of one engine said of itself over the profiling phase."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from aiperf.sdk.summary import SeriesSummary
from aiperf_histograms import of_histogram

from aiperf_servers.engines import Count, CountShare, Engine, Latency, Level

_TOTAL = "_total"


class Spread(NamedTuple):
    """A time in ms at a rank: the estimate, and the edges of the bucket that has the rank; high is infinite in the last one."""

    estimate: float
    low: float
    high: float


class Levels(NamedTuple):
    """A gauge over the phase, or another number of it as *avg*; what isn't known is None, as percentiles of several series."""

    avg: float
    least: float | None
    most: float | None
    p50: float | None = None
    p99: float | None = None


class ObservedTime(NamedTuple):
    """Observations of a time in the phase: their sum in ms, and their number."""

    total_ms: float
    number: float

    @property
    def mean_ms(self) -> float | None:
        return self.total_ms / self.number if self.number > 0 else None


class ServerCounts:
    """The series of one target, by family; counters with or without ``_total``."""

    def __init__(self, engine: Engine, series: Iterable[SeriesSummary]) -> None:
        self.engine = engine
        self._families: defaultdict[str, list[SeriesSummary]] = defaultdict(list)
        for one in series:
            name = one.name.removeprefix(engine.prefix)
            self._families[name.removesuffix(_TOTAL) if one.kind == "counter" else name].append(one)

    @property
    def began_again(self) -> bool:
        """Whether a counter began again in the phase: its growth is then not that of one server."""
        return any("resets" in one.stats for family in self._families.values() for one in family)

    def observed(self, quantity: str) -> ObservedTime | None:
        """The observations of a latency, exact: of a histogram, or of two counters; None where the server has neither."""
        for wanted in (each for each in self.engine.latencies if each.quantity == quantity):
            for name in wanted.families:
                if found := self._of(name, "histogram"):
                    total, count = (sum(one.stats.get(part, 0.0) for one in found) for part in ("sum", "count"))
                    return ObservedTime(total * wanted.scale, count)
            total_of, count_of = self.grown(wanted.total), self.grown(wanted.per)
            if total_of is not None and count_of is not None:
                return ObservedTime(total_of * wanted.scale, count_of)
        return None

    def counted(self, quantity: str) -> float | None:
        """The increase of the counter of this quantity; None where the server has none."""
        return next((self.count(each) for each in self.engine.counts if each.quantity == quantity), None)

    def leveled(self, quantity: str) -> Levels | None:
        """The gauge of this quantity over the phase; None where the server has none."""
        return next((self.level(each) for each in self.engine.levels if each.quantity == quantity), None)

    def shared(self, quantity: str) -> float | None:
        """The share of this quantity, in percent; None where the server has none."""
        return next((self.share(each) for each in self.engine.shares if each.quantity == quantity), None)

    def gauges(self, family: str) -> list[SeriesSummary]:
        """The series of a gauge, its name without the engine's prefix."""
        return self._of(family, "gauge")

    def latency(self, wanted: Latency) -> dict[str, Spread]:
        """By statistic: ``p50`` and ``p99`` of a histogram, ``avg`` of two counters; empty where there is none."""
        for name in wanted.families:
            found = self._of(name, "histogram")
            if found and sum(one.stats.get("count", 0) for one in found) > 0:
                return _percentiles(found, wanted.scale)
        total, per = self.grown(wanted.total), self.grown(wanted.per)
        if total is None or not per:
            return {}
        mean = total / per * wanted.scale
        return {"avg": Spread(mean, mean, mean)}

    def level(self, wanted: Level) -> Levels | None:
        """A gauge over the phase; None where the server has none of the families."""
        for name in wanted.families:
            found = [one for one in self._of(name, "gauge") if "avg" in one.stats]
            if not found:
                continue
            if wanted.parts is not None:
                return _quotient(found, wanted.parts, wanted.scale)
            return _added(found, wanted.scale / len(found) if wanted.mean else wanted.scale, alone=len(found) == 1)
        return None

    def count(self, wanted: Count) -> float | None:
        """The increase of a counter; None where the server has none of the families."""
        for name in wanted.families:
            grown = self.grown(name.removesuffix(_TOTAL))
            if grown is not None:
                return grown + sum(self.grown(other) or 0 for other in wanted.besides)
        return None

    def share(self, wanted: CountShare) -> float | None:
        """In percent; None where the server has not both, or the whole did not grow."""
        part, whole = self.grown(wanted.part), self.grown(wanted.whole or wanted.rest)
        if part is None or whole is None:
            return None
        whole += part if wanted.rest else 0
        return 100 * part / whole if whole > 0 else None

    def grown(self, name: str) -> float | None:
        """The increase of a counter, all of its series added, or of a histogram's sum; None where there is none."""
        if counters := self._of(name, "counter"):
            return sum(one.stats.get("total", 0.0) for one in counters)
        if histograms := self._of(name, "histogram"):
            return sum(one.stats.get("sum", 0.0) for one in histograms)
        return None

    def _of(self, name: str, kind: str) -> list[SeriesSummary]:
        return [one for one in self._families.get(name, ()) if one.kind == kind]


def _percentiles(found: Sequence[SeriesSummary], scale: float) -> dict[str, Spread]:
    """p50 and p99 of the observations of all series together, which must have the same buckets."""
    bounds = {tuple(sorted(float(bound) for bound in one.buckets if float(bound) < math.inf)) for one in found if one.buckets}
    if len(bounds) != 1:
        return {}
    (edges,) = bounds
    counts = [0.0] * (len(edges) + 1)
    for one in found:
        by_bound = {float(bound): count for bound, count in one.buckets.items()}
        for place, edge in enumerate((*edges, math.inf)):
            counts[place] += by_bound.get(edge, one.stats.get("count", 0.0))
    known = of_histogram(edges, counts, sum(one.stats.get("sum", 0.0) for one in found))
    return {
        rank: Spread(*(known.get(f"{rank}_{side}", math.inf) * scale for side in ("estimate", "low", "high")))
        for rank in ("p50", "p99")
        if f"{rank}_estimate" in known
    }


def _added(found: Sequence[SeriesSummary], scale: float, *, alone: bool) -> Levels:
    def added(name: str) -> float:
        return scale * sum(one.stats.get(name, one.stats["avg"]) for one in found)

    percentiles = (added("p50"), added("p99")) if alone and "p50" in found[0].stats else (None, None)
    return Levels(added("avg"), added("min"), added("max"), *percentiles)


def _quotient(found: Sequence[SeriesSummary], parts: tuple[str, str, str], scale: float) -> Levels | None:
    label, part, whole = parts
    above = [one for one in found if one.labels.get(label) == part]
    below = sum(one.stats["avg"] for one in found if one.labels.get(label) == whole)
    return _added(above, scale / below, alone=len(above) == 1) if above and below > 0 else None
