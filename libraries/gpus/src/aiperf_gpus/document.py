"""``telemetry_data`` of the summary JSON, and the GPUs' rows of the CSV: the reference's keys and columns in its order."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

from aiperf.sdk.summary import SeriesSummary, Slice, Summary

from aiperf_gpus.fleet import Gpu, fleet
from aiperf_gpus.series import AMD, NVIDIA
from aiperf_gpus.sources import SOURCES

STATISTICS = ("avg", "min", "max", "sum", "p1", "p5", "p10", "p25", "p50", "p75", "p90", "p95", "p99", "std")
"""Columns of the CSV.  A level has no sum, which would depend on how often it was sampled; a growth has its increase as avg."""
_ORDER = {name: place for place, name in enumerate([*NVIDIA, *AMD])}
_OF_SLICES = ("avg", "min", "max", "total", "rate")


def telemetry_data(summary: Summary) -> dict[str, Any]:
    """The GPUs of the profiling phase by endpoint."""
    targets = [target for source in summary.telemetry if source.name in SOURCES for target in source.targets]
    endpoints: dict[str, dict[str, Any]] = {}
    for gpu, key, slices in _gpus(summary):
        endpoints.setdefault(endpoint(gpu.target), {"gpus": {}})["gpus"][key] = _entry(gpu, slices)
    return {
        "summary": {
            "endpoints_configured": [target.name for target in targets],
            "endpoints_successful": [target.name for target in targets if target.samples],
            "start_time": _iso(summary.start_ns), "end_time": _iso(summary.end_ns),
        },
        "endpoints": endpoints,
        "error_summary": [
            {"error_details": {"message": target.why, "target": target.name}, "count": target.failed}
            for target in targets if target.failed
        ],
    }  # fmt: skip


def csv_rows(summary: Summary) -> Iterator[list[str]]:
    """The header and a row for each GPU and quantity; none without GPUs.  Numbers are the shortest that read as the same."""
    gpus = [gpu for gpu, _, _ in _gpus(summary)]
    more = {"Hostname": "hostname", "Namespace": "namespace", "Pod Name": "pod", "MIG": "mig"}
    kept = {title: name for title, name in more.items() if any(name in gpu.labels for gpu in gpus)}
    if gpus:
        yield ["Endpoint", "GPU_Index", "GPU_Name", "GPU_UUID", "Platform", "Metric", *STATISTICS, *kept]
    for gpu in gpus:
        about = [endpoint(gpu.target), *(gpu.labels.get(name, "") for name in ("gpu", "model", "uuid", "platform"))]
        behind = [gpu.labels.get(name, "") for name in kept.values()]
        for series in _ordered(gpu):
            title = f"{series.help or series.name} ({series.unit})" if series.unit else series.help or series.name
            statistics = _statistics(series)
            yield [*about, title, *(_cell(statistics.get(name)) for name in STATISTICS), *behind]


def endpoint(url: str) -> str:
    """Host, port and path without a final ``/metrics``."""
    parts = urlsplit(url)
    return f"{parts.netloc}{parts.path.removesuffix('/metrics')}" if parts.netloc else url


def keys(gpus: Sequence[Gpu]) -> list[str]:
    """``gpu_<index>`` of each GPU of an endpoint, with the host where two have one index, and the instance where it is one."""
    plain = Counter((gpu.labels.get("gpu"), gpu.labels.get("mig")) for gpu in gpus)
    found = []
    for gpu in gpus:
        index, mig = gpu.labels.get("gpu", ""), gpu.labels.get("mig")
        host = f"{gpu.labels.get('hostname') or gpu.uuid}_" if plain[index, mig] > 1 else ""
        found.append(f"gpu_{host}{index}" + ("" if mig is None else f"_mig_{mig}"))
    return found


def _gpus(summary: Summary) -> Iterator[tuple[Gpu, str, list[tuple[Slice, dict[str, SeriesSummary]]]]]:
    """The GPUs of the profiling phase, each with its key among those of its endpoint, and its series in time slices."""
    phase = next((each.index for each in summary.phases if each.kind == "profiling"), None)
    sources = [source for source in summary.telemetry if source.name in SOURCES]
    gpus = fleet(each for source in sources for each in source.series if each.phase == phase)
    sliced = [
        (slice_, fleet(each for source in sources if place < len(source.slices) for each in source.slices[place]))
        for place, slice_ in enumerate(summary.slices)
    ]
    by_endpoint: dict[str, list[Gpu]] = {}
    for gpu in gpus:
        by_endpoint.setdefault(gpu.target, []).append(gpu)
    for own in by_endpoint.values():
        for gpu, key in zip(own, keys(own), strict=True):
            about = gpu.target, gpu.labels
            parts = [(slice_, each.series) for slice_, found in sliced for each in found if (each.target, each.labels) == about]
            yield gpu, key, parts


def _entry(gpu: Gpu, slices: Sequence[tuple[Slice, dict[str, SeriesSummary]]]) -> dict[str, Any]:
    labels = gpu.labels
    about = {
        "gpu_index": int(labels["gpu"]) if labels.get("gpu", "").isdecimal() else None, "gpu_name": labels.get("model"),
        "gpu_uuid": gpu.uuid, "platform": labels.get("platform", "unknown"), "hostname": labels.get("hostname"),
        "namespace": labels.get("namespace"), "pod_name": labels.get("pod"), "mig_instance": labels.get("mig"),
    }  # fmt: skip
    metrics: dict[str, Any] = {}
    for series in _ordered(gpu):
        entry: dict[str, Any] = {"unit": series.unit, **_finite(_statistics(series))}
        parts = [_slice(each, known[series.name]) for each, known in slices if series.name in known]
        metrics[series.name] = entry | ({"timeslices": parts} if parts else {})
    for name, codes in sorted(gpu.codes.items()):
        metrics[name] = {"unit": "", "codes": list(codes)}
    return {**{name: value for name, value in about.items() if value is not None}, "metrics": metrics}


def _slice(about: Slice, series: SeriesSummary) -> dict[str, Any]:
    edges: dict[str, Any] = {"start_ns": about.start_ns, "end_ns": about.end_ns}
    if not about.complete:
        edges["is_complete"] = False
    return edges | _finite({name: series.stats[name] for name in _OF_SLICES if name in series.stats})


def _ordered(gpu: Gpu) -> list[SeriesSummary]:
    return [gpu.series[name] for name in sorted(gpu.series, key=lambda name: (_ORDER.get(name, len(_ORDER)), name))]


def _statistics(series: SeriesSummary) -> dict[str, float]:
    """The statistics of a level; of a growth its increase, and how often it began again."""
    if "total" not in series.stats:
        return series.stats
    again = {"resets": series.stats["resets"]} if "resets" in series.stats else {}
    return {"avg": series.stats["total"], **again}


def _finite(values: dict[str, float]) -> dict[str, float]:
    return {name: value for name, value in values.items() if math.isfinite(value)}


def _cell(value: float | None) -> str:
    if value is None or not math.isfinite(value):
        return ""
    return str(int(value)) if value == int(value) and abs(value) < 1 << 53 else repr(value)


def _iso(wall_ns: int) -> str:
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=wall_ns // 1000)).isoformat(timespec="microseconds")


__all__ = ["STATISTICS", "csv_rows", "endpoint", "keys", "telemetry_data"]
