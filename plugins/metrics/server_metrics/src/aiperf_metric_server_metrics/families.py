"""A family of a page: read by prometheus-client once, then updated line by line.

A line is remembered by the text before its value: while that stays, only the number is read.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from aiperf.sdk.telemetry import Digest, Histogram, Point, SeriesKind

from aiperf_metric_server_metrics.lines import head_of, name_of, shortened, value_of
from aiperf_metric_server_metrics.parsers import Metric, Sample, openmetrics_families, text_families
from aiperf_metric_server_metrics.units import unit_of

_FLOWING = (
    "process_", "python_", "go_", "promhttp_", "node_", "http_", "prometheus_", "scrape_", "nv_cpu_", "nv_gpu_", "nv_energy_",
)  # fmt: skip
"""Families of the process, the machine and the page itself: they grow without requests."""
_PARTS = ("_bucket", "_sum", "_count")
_CREATED = ("counter", "histogram", "summary")
"""Types that say in OpenMetrics when each series began; that is no series of its own."""
_Make: TypeAlias = Callable[[list[float]], float | Histogram | Digest]


class FamilyError(Exception):
    """A family can't be read; a sentence without its name."""


class _Series:
    """A series of a family, and the places of its values there.  make: its value from all values of the family."""

    def __init__(self, about: tuple[Any, ...], places: tuple[int, ...], make: _Make) -> None:
        self.name, self.kind, self.unit, self.labels, self.help, self.flows = about
        self.places, self._make = places, make

    def point(self, values: list[float], times: list[int | None]) -> Point:
        at_ns = max((at for place in self.places if (at := times[place]) is not None), default=None)
        return Point(self.name, self._make(values), self.kind, self.unit, self.labels, self.help, at_ns, self.flows)


class Family:
    """The lines of one family with their series.

    owners: by line, the number of its series; None for a line that is no sample, or whose series is left out.
    sentences: about parts of it that are left out.
    """

    def __init__(self, name: str, lines: list[str], *, openmetrics: bool) -> None:
        self.name, self.lines, self.sentences = name, lines, list[str]()
        self._openmetrics = openmetrics
        self._heads = [head_of(line) if _is_sample(line) else None for line in lines]
        self._values, self._times = [0.0] * len(lines), list[int | None]([None] * len(lines))
        for place, head in enumerate(self._heads):
            if head is not None:
                self._read(place, head)
        places = [place for place, head in enumerate(self._heads) if head is not None]
        self._series: list[_Series] = []
        self.owners: list[int | None] = [None] * len(lines)
        self.remembered = self._take(self._families(), places)
        self.points = [series.point(self._values, self._times) for series in self._series]

    def fits(self, lines: list[str]) -> bool:
        """Whether these are the same lines but for values; if so, takes them."""
        if len(lines) != len(self.lines) or not self.remembered:
            return lines == self.lines
        changed: set[int] = set()
        for place, (line, before) in enumerate(zip(lines, self.lines, strict=True)):
            if line != before:
                owner = self.update(place, line)
                if owner is None:
                    return False
                changed.add(owner)
        self.lines = lines
        for owner in changed:
            self.renew(owner)
        return True

    def update(self, place: int, line: str) -> int | None:
        """Take the value of a line that changed; gives its series, or None where more than the value changed."""
        head, owner = self._heads[place], self.owners[place]
        if head is None or owner is None or not self.remembered or not line.startswith(head):
            return None
        try:
            self._values[place], self._times[place] = value_of(line[len(head) :], openmetrics=self._openmetrics)
        except ValueError:
            return None
        return None if self._series[owner].kind is SeriesKind.INFO and self._values[place] != 1 else owner

    def renew(self, owner: int) -> Point:
        """The point of a series whose lines changed."""
        point = self.points[owner] = self._series[owner].point(self._values, self._times)
        return point

    def _read(self, place: int, head: str) -> None:
        line = self.lines[place]
        try:
            self._values[place], self._times[place] = value_of(line[len(head) :], openmetrics=self._openmetrics)
        except ValueError:
            raise FamilyError(f"the line {shortened(line)} has no value") from None

    def _families(self) -> list[Metric]:
        """The lines as the library reads them."""
        text = "".join(f"{line}\n" for line in self.lines if line.strip() and line != "# EOF")
        try:
            if self._openmetrics:
                try:
                    return list(openmetrics_families(f"{text}# EOF\n"))  # type: ignore[no-untyped-call]
                except ValueError:  # a page that says it is OpenMetrics, and isn't quite
                    self._openmetrics = False
            return list(text_families(text))
        except (ValueError, KeyError, IndexError) as error:
            raise FamilyError(f"its text can't be read: {shortened(str(error))}") from error

    def _take(self, families: Sequence[Metric], places: list[int]) -> bool:
        """Make series of the samples; gives whether each line has one, so that lines can be remembered."""
        samples = [(family, sample) for family in families for sample in family.samples]
        if len(samples) != len(places):  # OpenMetrics: one of two samples of a series is left out
            self.sentences.append("has several samples of a series; the first one counts")
            places = self._found(samples, places)
        groups: dict[tuple[Any, ...], tuple[Metric, str, list[tuple[Sample, int]]]] = {}
        for (family, sample), place in zip(samples, places, strict=True):
            if not _same(float(sample.value), self._values[place]):
                raise FamilyError(f"the line {shortened(self.lines[place])} can be read in two ways")
            exposed = name_of(self._heads[place] or "")
            if family.type in _CREATED and exposed == f"{family.name}_created":
                continue
            key, name = _group(family, sample, exposed)
            groups.setdefault(key, (family, name, []))[2].append((sample, place))
        for family, name, members in groups.values():
            self._add(family, name, members)
        return len(samples) == sum(head is not None for head in self._heads)

    def _found(self, samples: list[tuple[Metric, Sample]], places: list[int]) -> list[int]:
        """The places of the samples, where the library left lines out."""
        left, found = iter(places), []
        for _, sample in samples:
            for place in left:
                if name_of(self._heads[place] or "") == sample.name and _same(float(sample.value), self._values[place]):
                    found.append(place)
                    break
            else:
                raise FamilyError("it has several samples of a series")
        return found

    def _add(self, family: Metric, name: str, members: list[tuple[Sample, int]]) -> None:
        sample, place = members[-1]
        places: tuple[int, ...] = (place,)
        labels, make = sample.labels, _value_at(place)
        if family.type == "histogram":
            kind, labels = SeriesKind.HISTOGRAM, _without(sample, "le")
            places, make = _histogram(family.name, members)
        elif family.type == "summary":
            kind, labels = SeriesKind.SUMMARY, _without(sample, "quantile")
            places, make = _digest(family.name, members)
        elif family.type == "counter":
            kind = SeriesKind.COUNTER
        else:
            info = family.type == "info" or (name.endswith("_info") and family.type != "stateset" and sample.value == 1)
            kind = SeriesKind.INFO if info else SeriesKind.GAUGE
        if len(members) > len(places):
            self.sentences.append("has several samples of a series; the last one counts")
        flows = kind in (SeriesKind.COUNTER, SeriesKind.HISTOGRAM) and name.startswith(_FLOWING)
        about = name, kind, unit_of(name, family.documentation, family.unit), labels, family.documentation, flows
        for _, place in members:
            self.owners[place] = len(self._series)
        self._series.append(_Series(about, places, make))


def _is_sample(line: str) -> bool:
    return bool(line.strip()) and not line.lstrip().startswith("#")


def _same(one: float, other: float) -> bool:
    return one == other or (math.isnan(one) and math.isnan(other))


def _without(sample: Sample, label: str) -> dict[str, str]:
    return {name: value for name, value in sample.labels.items() if name != label}


def _group(family: Metric, sample: Sample, exposed: str) -> tuple[tuple[Any, ...], str]:
    """What the lines of one series have in common, and the series' name."""
    labels = sample.labels
    if family.type == "histogram":
        labels, exposed = _without(sample, "le"), _base(exposed, family.name)
    elif family.type == "summary":
        labels, exposed = _without(sample, "quantile"), _base(exposed, family.name)
    return (exposed, family.type, tuple(sorted(labels.items()))), exposed


def _base(exposed: str, family: str) -> str:
    return family if any(exposed == family + part for part in ("", *_PARTS)) else exposed


def _value_at(place: int) -> _Make:
    return lambda values: values[place]


def _histogram(name: str, members: list[tuple[Sample, int]]) -> tuple[tuple[int, ...], _Make]:
    """The places of the values of a histogram, and how they make one."""
    buckets: dict[float, int] = {}
    others: dict[str, int] = {}
    for sample, place in members:
        if sample.name == f"{name}_bucket":
            buckets[_label_number(sample, "le")] = place
        else:
            others[sample.name.removeprefix(name)] = place
    if math.inf not in buckets and "_count" in others:
        buckets[math.inf] = others["_count"]
    if "_sum" not in others or math.inf not in buckets or any(map(math.isnan, buckets)):
        raise FamilyError("a histogram needs its buckets, each with a number as le, its count and its sum")
    bounds, places, total = tuple(sorted(buckets)), tuple(buckets[bound] for bound in sorted(buckets)), others["_sum"]

    def make(values: list[float]) -> Histogram:
        return Histogram(bounds, tuple(values[place] for place in places), values[total])

    return tuple(dict.fromkeys((*places, *others.values()))), make


def _digest(name: str, members: list[tuple[Sample, int]]) -> tuple[tuple[int, ...], _Make]:
    """The places of the values of a summary, and how they make one."""
    quantiles: dict[float, int] = {}
    others: dict[str, int] = {}
    for sample, place in members:
        if sample.name == name:
            quantiles[_label_number(sample, "quantile")] = place
        else:
            others[sample.name.removeprefix(name)] = place

    if any(not 0 <= quantile <= 1 for quantile in quantiles):
        raise FamilyError("a summary needs quantiles from 0 to 1")

    def make(values: list[float]) -> Digest:
        known = {quantile: values[place] for quantile, place in quantiles.items() if math.isfinite(values[place])}
        count, total = (_finite(values, others.get(part)) for part in ("_count", "_sum"))
        return Digest(known, count, total)

    return (*quantiles.values(), *others.values()), make


def _label_number(sample: Sample, label: str) -> float:
    try:
        return float(sample.labels[label])
    except (KeyError, ValueError):
        return math.nan


def _finite(values: list[float], place: int | None) -> float | None:
    return None if place is None or not math.isfinite(values[place]) else values[place]
