"""Series of samples that were taken beside the load: from the journal, or from the reference's files."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from aiperf.parts.samples import read_samples, sample_files
from aiperf.sdk.plot import TelemetrySeries
from aiperf.sdk.series import Sample, SeriesHeader, SourceHeader, whole_samples

from aiperf_results.table import lines

_Key: TypeAlias = tuple[str, str, str, tuple[tuple[str, str], ...], tuple[float, ...], str, str]
"""A series: source, name, unit, labels in order, bounds of buckets, kind, target."""
_Sample: TypeAlias = tuple[int, float, Sequence[float]]
"""The wall clock in ns, the value, and the counts of a histogram."""
_Point: TypeAlias = tuple[_Key, _Sample]
_OLD_NAMES = {
    "gpu_power_usage": "nvidia_power_usage", "energy_consumption": "nvidia_energy_consumption",
    "gpu_utilization": "nvidia_gpu_utilization", "mem_utilization": "nvidia_memory_utilization",
    "gpu_memory_used": "nvidia_memory_used", "gpu_temperature": "nvidia_temperature",
    "decoder_utilization": "nvidia_decoder_utilization", "encoder_utilization": "nvidia_encoder_utilization",
    "jpg_utilization": "nvidia_jpg_utilization", "sm_utilization": "nvidia_sm_utilization", "xid_errors": "nvidia_xid_errors",
    "power_violation": "nvidia_power_violation",
}  # fmt: skip
"""Names of series of GPUs before version 0.12 of the reference, and those since."""
_GPU_LABELS = ("gpu_index", "gpu_uuid", "gpu_model_name", "hostname", "namespace", "pod_name", "platform")


def of_journal(journal: Path) -> list[TelemetrySeries]:
    """The series in the sample files of a journal, source by source."""
    return _series(_journal_points(journal))


def of_reference(gpus: Path, servers: Path) -> list[TelemetrySeries]:
    """The series in the reference's files of GPU samples and of scraped server metrics, where they are there.

    Raises:
        AiperfError: A file cannot be read; names the line.
    """
    files = ((gpus, _gpu_points), (servers, _server_points))
    return _series(point for path, points in files if path.is_file() for point in points(lines(path, dict[str, Any])))


def _series(points: Iterable[_Point]) -> list[TelemetrySeries]:
    import numpy as np

    series = []
    by_key: defaultdict[_Key, list[_Sample]] = defaultdict(list)
    for key, sample in points:
        by_key[key].append(sample)
    for (source, name, unit, labels, bounds, kind, target), samples in by_key.items():
        at_ns, values, counts = zip(*samples, strict=True)
        instants, numbers = np.array(at_ns, dtype=np.int64), np.array(values, dtype=np.float64)
        buckets = np.array(counts, dtype=np.float64) if any(counts) else None
        series.append(TelemetrySeries(source, name, unit, dict(labels), instants, numbers, bounds, buckets, kind, target))
    return series


def _journal_points(journal: Path) -> Iterator[_Point]:
    for path in sample_files(journal):
        source, targets, keys = "", [""], dict[int, _Key]()
        for line in whole_samples(read_samples(path)):
            match line:
                case SourceHeader(ref):
                    source, targets = ref.name, [target.name for target in line.targets] or [""]
                case SeriesHeader(number, name, kind, unit, labels, _, bounds, target):
                    keys[number] = source, name, unit, tuple(labels.items()), bounds, kind.value, targets[target]
                case Sample(moment, values, timed):
                    for number, at_ns, value in [*((each, moment.wall_ns, values[each]) for each in values), *timed]:
                        first, *counts = value if isinstance(value, list) else [value]
                        yield keys[number], (at_ns, first, counts)


def _gpu_points(rows: Iterable[dict[str, Any]]) -> Iterator[_Point]:
    for row in rows:
        labels = tuple((name, str(row[name])) for name in _GPU_LABELS if row.get(name) is not None)
        for name, value in row.get("telemetry_data", {}).items():
            source = str(row.get("telemetry_source_url") or row.get("dcgm_url", ""))
            yield (source, _OLD_NAMES.get(name, name), "", labels, (), "", ""), (row["timestamp_ns"], value, ())


def _server_points(rows: Iterable[dict[str, Any]]) -> Iterator[_Point]:
    for row in rows:
        for name, points in row.get("metrics", {}).items():
            for point in points:
                labels = tuple(sorted((key, str(value)) for key, value in (point.get("labels") or {}).items()))
                buckets = sorted((float(bound), float(count)) for bound, count in point.get("buckets", {}).items())
                bounds = tuple(bound for bound, _ in buckets if bound != math.inf)
                value = point.get("sum", 0.0) if "buckets" in point else point["value"]
                key = str(row.get("endpoint_url", "")), name, "", labels, bounds, "", ""
                yield key, (row["timestamp_ns"], value, [count for _, count in buckets])
