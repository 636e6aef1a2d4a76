"""``GET /metrics``: the numbers in the text format of Prometheus.  The run's id is a label of ``aiperf_info`` alone."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from aiperf_live_api.board import Board

CONTENT_TYPE = "text/plain; version=0.0.4"
_QUANTILES = {
    "p1": "0.01", "p5": "0.05", "p10": "0.1", "p25": "0.25", "p50": "0.5", "p75": "0.75", "p90": "0.9", "p95": "0.95",
    "p99": "0.99",
}  # fmt: skip
_GAUGES = {"avg": "mean", "min": "least", "max": "greatest", "std": "standard deviation", "current": "current value"}
_INFO_ALONE = frozenset(("benchmark_id", "version"))


def name_of(text: str) -> str:
    """A name that Prometheus takes: letters, digits and underscores, no digit first."""
    plain = re.sub(r"[^a-z0-9_]", "_", text.lower())
    return f"_{plain}" if plain[:1].isdigit() else plain


def unit_suffix(unit: str) -> str:
    """``_ms``, ``_requests_per_sec``, ``_tps``: the end of a name with this unit; "" without one."""
    for old, new in (("%", "percent"), ("/", "_per_"), ("tokens_per_sec", "tps"), ("__", "_")):
        unit = unit.replace(old, new)
    return f"_{name_of(unit)}" if unit else ""


def _labelled(labels: Mapping[str, str]) -> str:
    escaped = (
        (name, value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")) for name, value in labels.items()
    )  # fmt: skip
    pairs = ",".join(f'{name}="{value}"' for name, value in escaped)
    return f"{{{pairs}}}" if pairs else ""


def _family(name: str, kind: str, what: str, samples: Iterable[tuple[str, Mapping[str, str], float]]) -> Iterator[str]:
    lines = [f"{name}{end}{_labelled(labels)} {value}" for end, labels, value in samples]
    if lines:
        text = what.replace("\\", "\\\\").replace("\n", " ")
        yield from (f"# HELP {name} {text}", f"# TYPE {name} {kind}", *lines)


def _metric(metric: dict[str, Any], labels: dict[str, str]) -> Iterator[str]:
    known = {name: value for name, value in metric["so_far"].items() if value is not None}
    base, unit = f"aiperf_{name_of(metric['tag'])}", unit_suffix(metric["unit"])
    title = f"{metric['title']} ({metric['unit']})" if metric["unit"] else metric["title"]
    quantiles = {name: _QUANTILES[name] for name in _QUANTILES if name in known}
    count = known.get("count")
    if quantiles:
        samples = [("", {**labels, "quantile": share}, known[name]) for name, share in quantiles.items()]
        if count is not None and "avg" in known:
            samples.append(("_sum", labels, known.get("sum", known["avg"] * count)))
        if count is not None:
            samples.append(("_count", labels, count))
        yield from _family(f"{base}{unit}", "summary", title, samples)
    for name, what in _GAUGES.items():
        if name in known:
            yield from _family(f"{base}_{name}{unit}", "gauge", f"{title}, {what}", [("", labels, known[name])])
    if not quantiles and count is not None:
        yield from _family(f"{base}_count{unit}", "gauge", f"{title}, number of values", [("", labels, count)])


def text(board: Board) -> str:
    """All that is exposed of a run; a comment where there is nothing yet."""
    about, snapshot = board.about, board.snapshot
    if about is None:
        return "# no run yet\n"
    labels = {name: value for name, value in about.labels.items() if name not in _INFO_ALONE}
    info = {**about.labels, "version": about.version}
    lines = [*_family("aiperf_info", "gauge", "The run: always 1.", [("", info, 1)])]
    if snapshot is not None:
        lines += _run(snapshot, labels)
        for metric in snapshot["metrics"]:
            lines += _metric(metric, labels)
        lines += _failures(snapshot, labels)
    return "\n".join([*lines, ""])


def _run(snapshot: dict[str, Any], labels: dict[str, str]) -> Iterator[str]:
    phases = [({**labels, "phase": phase["name"]}, phase) for phase in snapshot["phases"]]
    for name, kind, field, what in (
        ("requests_sent_total", "counter", "sent", "Requests begun."),
        ("requests_completed_total", "counter", "completed", "Requests that ended with an answer."),
        ("requests_failed_total", "counter", "failed", "Requests that failed, of those whose answers were read."),
        ("requests_reduced_total", "counter", "reduced", "Requests whose answers were read."),
        ("requests_in_flight", "gauge", "in_flight", "Requests in flight."),
        ("elapsed_seconds", "gauge", "elapsed_s", "Time since the phase began."),
        ("progress_ratio", "gauge", "share", "Progress towards the end of the phase, 0 to 1."),
    ):
        samples = [("", each, phase[field]) for each, phase in phases if phase[field] is not None]
        yield from _family(f"aiperf_run_{name}", kind, what, samples)
    status = [("", {**each, "status": phase["status"]}, 1.0) for each, phase in phases]
    yield from _family("aiperf_run_phase_status", "gauge", "The status of the phase: always 1.", status)
    judged = [*snapshot["objectives"], *([snapshot["good"]] if snapshot["good"] is not None else [])]
    for name, field in (("judged", "judged"), ("met", "met")):
        samples = [("", {**labels, "objective": each["title"]}, each[field]) for each in judged]
        yield from _family(f"aiperf_run_objective_{name}_total", "counter", f"Requests {name} by the objective.", samples)
    workers = [
        ({**labels, "worker": str(worker["index"])} | ({"site": worker["site"]} if worker["site"] else {}), worker)
        for worker in snapshot["workers"]
    ]
    for name, field, what in (
        ("cpu_percent", "cpu_pct", "Share of a core, percent."), ("memory_bytes", "memory_bytes", "Resident memory."),
        ("requests_in_flight", "in_flight", "Requests in flight of the worker."),
    ):
        samples = [("", each, worker[field]) for each, worker in workers if worker[field] is not None]
        yield from _family(f"aiperf_worker_{name}", "gauge", what, samples)


def _failures(snapshot: dict[str, Any], labels: dict[str, str]) -> Iterator[str]:
    """By type and code: texts would be labels without number."""
    counts: dict[tuple[str, str], int] = {}
    for each in snapshot["failures"]:
        key = (each["type"], "" if each["code"] is None else str(each["code"]))
        counts[key] = counts.get(key, 0) + each["count"]
    if snapshot["further_failures"]:
        counts["other", ""] = snapshot["further_failures"]
    samples = [("", {**labels, "type": kind, "code": code}, count) for (kind, code), count in counts.items()]
    yield from _family("aiperf_run_failures", "gauge", "Failed requests by kind; the commonest kinds by name.", samples)


__all__ = ["CONTENT_TYPE", "name_of", "text", "unit_suffix"]
