"""The course of a finished run, from its files of requests and samples, on the axis of a history."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from aiperf.results import FinishedRun, TelemetrySeries
from aiperf.sdk.errors import AiperfError
from aiperf_live_api.history import History

if TYPE_CHECKING:
    from numpy.typing import NDArray

_NS_PER_S = 1_000_000_000
_MOST_FILE_BYTES = 256 << 20
"""A larger file of requests would take minutes: its run has no course."""
_MOST_STEPS, _FEWEST_STEPS = 1_200, 10
_STEP_S = 0.5
_MOST_SERIES = 200
_LATENCIES = (("time_to_first_token", "ms"), ("inter_token_latency", "ms"), ("request_latency", "ms"))
_PERCENTILES = (50, 90, 99)


def add_course(history: History, run: FinishedRun) -> tuple[list[dict[str, Any]], int]:
    """Fill *history*; the last values of the telemetry series, and how many series are beyond the most.

    Raises:
        AiperfError: A file can't be read, or is too large.
    """
    if run.has("jsonl") and run.file("jsonl").stat().st_size > _MOST_FILE_BYTES:
        raise AiperfError(f"{run.file('jsonl').name} is larger than {_MOST_FILE_BYTES >> 20} MiB")
    table = run.requests(failed=True)
    starts, ends = table.numbers("request_start_ns"), table.numbers("request_end_ns")
    known = ~(np.isnan(starts) | np.isnan(ends))
    telemetry = run.telemetry()
    edges = _edges(starts[known], ends[known], telemetry)
    if edges is None:
        return [], 0
    counters, gauges = _of_requests(table, starts, ends, known, edges)
    for name, about, values in _of_telemetry(telemetry[:_MOST_SERIES], edges):
        history.describe(name, about)
        gauges[name] = values
    for tag, unit in _LATENCIES:
        for percent in _PERCENTILES:
            history.describe(f"metric.{tag}.p{percent}", {"title": tag.replace("_", " ").capitalize(), "unit": unit})
    for index, at_ns in enumerate(edges[1:]):
        history.add(
            float(at_ns - edges[0]) / _NS_PER_S, {name: float(values[index]) for name, values in counters.items()},
            {name: _known(values[index]) for name, values in gauges.items()},
        )  # fmt: skip
    return [_last(series) for series in telemetry[:_MOST_SERIES]], max(0, len(telemetry) - _MOST_SERIES)


def _known(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def _edges(
    starts: NDArray[np.float64], ends: NDArray[np.float64], telemetry: list[TelemetrySeries]
) -> NDArray[np.float64] | None:  # fmt: skip
    """Times of wall clock, in ns, between which the course is counted; None where nothing has a time."""
    times = [starts, ends] if len(starts) else [series.at_ns.astype(np.float64) for series in telemetry if len(series.at_ns)]
    if not times:
        return None
    low, high = min(float(each.min()) for each in times), max(float(each.max()) for each in times)
    steps = int(np.clip((high - low) / _NS_PER_S / _STEP_S, _FEWEST_STEPS, _MOST_STEPS))
    return np.linspace(low, max(high, low + 1), steps + 1)


def _of_requests(
    table: Any, starts: NDArray[np.float64], ends: NDArray[np.float64], known: NDArray[np.bool_], edges: NDArray[np.float64]
) -> tuple[dict[str, NDArray[np.float64]], dict[str, NDArray[np.float64]]]:  # fmt: skip
    """Counters and gauges at each edge but the first."""
    if not known.any():
        return {}, {}
    failed = known & _failed(table, len(starts))
    begun, done = np.sort(starts[known]), np.sort(ends[known])
    at = edges[1:]
    sent, finished = np.searchsorted(begun, at, "right"), np.searchsorted(done, at, "right")
    counters = {
        "done.profiling": finished.astype(np.float64), "sent": sent.astype(np.float64),
        "failed": np.searchsorted(np.sort(ends[failed]), at, "right").astype(np.float64),
    }  # fmt: skip
    gauges = {"in_flight": (sent - finished).astype(np.float64)}
    step = np.clip(np.searchsorted(at, ends), 0, len(at) - 1)
    for tag, _ in _LATENCIES:
        values = table.numbers(tag)
        good = known & ~failed & ~np.isnan(values) if len(values) == len(known) else np.zeros(len(known), bool)
        if not good.any():
            continue
        order = np.argsort(step[good], kind="stable")
        sorted_values, sorted_steps = values[good][order], step[good][order]
        bounds = np.searchsorted(sorted_steps, np.arange(len(at) + 1))
        for percent in _PERCENTILES:
            gauges[f"metric.{tag}.p{percent}"] = np.array([
                np.percentile(sorted_values[low:high], percent) if high > low else np.nan
                for low, high in pairwise(bounds)
            ])  # fmt: skip
    return counters, gauges


def _failed(table: Any, count: int) -> NDArray[np.bool_]:
    """Which rows are of failed requests: those with a type of error."""
    types = table.texts("error_type")
    return np.array([bool(each) for each in types] + [False] * (count - len(types)), dtype=bool)


def _of_telemetry(
    telemetry: list[TelemetrySeries], edges: NDArray[np.float64]
) -> list[tuple[str, dict[str, Any], NDArray[np.float64]]]:  # fmt: skip
    found = []
    for series in telemetry:
        times, values = _drawn(series)
        if not len(times):
            continue
        place = np.searchsorted(times, edges[1:], "right") - 1
        at = np.where(place >= 0, values[np.maximum(place, 0)], np.nan)
        labels = _labels(series)
        unit = f"{series.unit}/s" if series.kind == "counter" else series.unit
        about = {"title": series.name, "unit": unit, "source": series.source, "target": series.target, "labels": labels}
        found.append((f"series.{series.source}.{series.target}.{series.name}.{labels}", about, at))
    return found


def _labels(series: TelemetrySeries) -> str:
    return ",".join(f"{name}={value}" for name, value in sorted(series.labels.items()))


def _drawn(series: TelemetrySeries) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Times and values as a chart has them: of a gauge as they are, of a counter and a histogram's sum a second."""
    times, values = series.at_ns.astype(np.float64), np.asarray(series.values, dtype=np.float64)
    if series.kind not in ("counter", "histogram") or len(times) < 2:
        return times, values
    seconds = np.diff(times) / _NS_PER_S
    rise = np.diff(values)
    good = (seconds > 0) & (rise >= 0)
    return times[1:][good], rise[good] / seconds[good]


def _last(series: TelemetrySeries) -> dict[str, Any]:
    times, values = _drawn(series)
    return {
        "source": series.source, "name": series.name, "value": _known(float(values[-1])) if len(values) else None,
        "unit": series.unit, "labels": dict(series.labels), "target": series.target, "kind": series.kind or "gauge",
        "at_ns": int(times[-1]) if len(times) else 0,
    }  # fmt: skip


__all__ = ["add_course"]
