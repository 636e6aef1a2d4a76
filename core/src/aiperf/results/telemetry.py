"""Series of samples that were taken beside the load: from the journal, or from the reference's files."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec import Struct

from aiperf.results.table import lines
from aiperf.telemetry.samples import Sample, SeriesHeader, SourceHeader, read_samples, sample_files

if TYPE_CHECKING:
    from aiperf.sdk.columns import Floats, Ints


class TelemetrySeries(Struct, frozen=True):
    """One series, samples in the order of time.

    source: the plugin's name, or the URL that was scraped.  at_ns: wall clock, ns since 1970.  values: of a histogram, sums.
    bounds: upper bounds of a histogram's buckets, without the last, which is infinite; empty for other kinds.
    counts: (samples, buckets), observations up to each bound so far, all of them last; None for other kinds.
    """

    source: str
    name: str
    unit: str
    labels: dict[str, str]
    at_ns: Ints
    values: Floats
    bounds: tuple[float, ...] = ()
    counts: Floats | None = None


class _Samples(Struct):
    """Samples of one series while they are read."""

    source: str
    name: str
    unit: str
    labels: dict[str, str]
    bounds: tuple[float, ...]
    at_ns: list[int] = []
    values: list[float] = []
    counts: list[list[float]] = []

    def add(self, at_ns: int, value: float, counts: Sequence[float] = ()) -> None:
        self.at_ns.append(at_ns)
        self.values.append(value)
        if counts:
            self.counts.append(list(counts))

    def series(self) -> TelemetrySeries:
        import numpy as np

        counts = np.array(self.counts, dtype=np.float64) if self.counts else None
        at_ns, values = np.array(self.at_ns, dtype=np.int64), np.array(self.values, dtype=np.float64)
        return TelemetrySeries(self.source, self.name, self.unit, self.labels, at_ns, values, self.bounds, counts)


def of_journal(journal: Path) -> list[TelemetrySeries]:
    """The series in the sample files of a journal, source by source."""
    series: list[_Samples] = []
    for path in sample_files(journal):
        source, by_id = "", dict[int, _Samples]()
        for line in read_samples(path):
            if isinstance(line, SourceHeader):
                source = line.ref.name
            elif isinstance(line, SeriesHeader):
                by_id[line.id] = _Samples(source, line.name, line.unit, line.labels, line.bounds)
            elif isinstance(line, Sample):
                for number, value in line.values.items():
                    first, *counts = value if isinstance(value, list) else [value]
                    by_id[number].add(line.moment.wall_ns, first, counts)
        series += by_id.values()
    return [samples.series() for samples in series]


def of_reference(gpus: Path, servers: Path) -> list[TelemetrySeries]:
    """The series in the reference's files of GPU samples and of scraped server metrics, where they are there.

    Raises:
        AiperfError: A file cannot be read; names the line.
    """
    series: _Series = {}
    for line in lines(gpus, dict[str, Any]) if gpus.is_file() else ():
        labels = {name: str(line[name]) for name in _GPU_LABELS if line.get(name) is not None}
        source = str(line.get("telemetry_source_url", ""))
        for name, value in line.get("telemetry_data", {}).items():
            _of(series, source, name, labels).add(line["timestamp_ns"], value)
    for line in lines(servers, dict[str, Any]) if servers.is_file() else ():
        source = str(line.get("endpoint_url", ""))
        for name, points in line.get("metrics", {}).items():
            for point in points:
                _scraped(series, source, name, point, line["timestamp_ns"])
    return [samples.series() for samples in series.values()]


_GPU_LABELS = ("gpu_index", "gpu_uuid", "gpu_model_name", "hostname", "namespace", "pod_name", "platform")


_Series: TypeAlias = dict[tuple[object, ...], _Samples]


def _scraped(series: _Series, source: str, name: str, point: Mapping[str, Any], at_ns: int) -> None:
    labels = {key: str(value) for key, value in (point.get("labels") or {}).items()}
    if "buckets" not in point:
        _of(series, source, name, labels).add(at_ns, point["value"])
        return
    buckets = sorted((float(bound), float(count)) for bound, count in point["buckets"].items())
    finite = tuple(bound for bound, _ in buckets if bound != math.inf)
    _of(series, source, name, labels, finite).add(at_ns, point.get("sum", 0.0), [count for _, count in buckets])


def _of(series: _Series, source: str, name: str, labels: dict[str, str], bounds: tuple[float, ...] = ()) -> _Samples:
    key = (source, name, tuple(sorted(labels.items())), bounds)
    return series.setdefault(key, _Samples(source, name, "", labels, bounds))
