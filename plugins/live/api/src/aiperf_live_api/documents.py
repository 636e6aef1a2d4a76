"""The answers of the routes that the reference has, too: the same keys, from the documents of a board."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from aiperf.parts.reporting import READY_FILE

from aiperf_live_api.board import CANCELLED, RUNNING, WAITING, Board

_STATES = {
    "Waiting": "configuring", "Warmup": "profiling", "Warmup Grace": "profiling", "Profiling": "profiling",
    "Grace Period": "profiling", "Processing": "processing", "Complete": "processing",
}  # fmt: skip
_GROUP = "local"
_SENDING_OVER = frozenset(("Warmup Grace", "Grace Period", "Processing", "Complete"))
STATISTICS = ("avg", "min", "max", "std", "sum", "p1", "p5", "p10", "p25", "p50", "p75", "p90", "p95", "p99", "count")


def system_state(board: Board) -> str:
    """The reference's word for what the run does."""
    if board.status == WAITING:
        return "initializing"
    if board.status != RUNNING:
        return "stopping"
    return "configuring" if board.snapshot is None else _STATES.get(board.snapshot["status"], "profiling")


def progress(board: Board) -> dict[str, Any]:
    """``GET /api/progress``."""
    snapshot = board.snapshot or {}
    planned = {each["name"]: each for each in (board.about.phases if board.about is not None else [])}
    cancelled = board.status == CANCELLED
    phases = {
        each["name"]: _phase(each, planned.get(each["name"], {}), snapshot, cancelled) for each in snapshot.get("phases", [])
    }
    workers = snapshot.get("workers", [])
    usable = sum(worker["status"] not in ("error", "stale") for worker in workers)
    reducers = 0 if board.about is None else int(board.about.config.get("runtime", {}).get("record_processors") or 0)
    aggregate = {
        "ready": usable, "total": len(workers), "dispatchable": usable, "router_connected": usable,
        "ready_record_processors": reducers, "declared_record_processors": reducers, "ready_pods": min(1, usable),
        "total_pods": min(1, len(workers)), "degraded_pods": int(0 < usable < len(workers)),
    }  # fmt: skip
    over = board.finish is not None
    return {
        "phases": phases, "workers": aggregate, "results_exported": over and board.results is not None,
        "system_state": system_state(board), "step": board.step,
    }  # fmt: skip


def _phase(phase: dict[str, Any], planned: dict[str, Any], snapshot: dict[str, Any], cancelled: bool) -> dict[str, Any]:
    """The reference's fields, None where this program does not count it; then ours."""
    elapsed_s, reduced = phase["elapsed_s"], phase["reduced"]
    done = phase["completed"] + phase["errors"]
    over, sent_all = phase["status"] == "Complete", phase["status"] in _SENDING_OVER
    return {
        "phase": phase["kind"], "phase_index": phase["index"], "profiling_index": planned.get("profiling_index"),
        "phase_name": phase["name"], "phase_kind": phase["kind"], "start_ns": planned.get("start_ns"),
        "sent_end_ns": None, "requests_end_ns": None, "baseline_start_ns": None, "baseline_end_ns": None,
        "total_expected_requests": phase["planned"], "expected_duration_sec": planned.get("duration_s"),
        "expected_num_sessions": planned.get("session_count"), "expected_grace_period_sec": planned.get("grace_s"),
        "final_requests_sent": phase["sent"] if sent_all else None,
        "final_requests_completed": done if over else None, "final_requests_cancelled": None,
        "final_request_errors": phase["failed"] if over else None, "final_sent_sessions": None,
        "final_completed_sessions": None, "final_cancelled_sessions": None, "timeout_triggered": None,
        "grace_period_timeout_triggered": None, "was_cancelled": cancelled, "requests_sent": phase["sent"],
        "requests_completed": done, "requests_cancelled": None, "request_errors": phase["errors"],
        "sent_sessions": None, "completed_sessions": None, "cancelled_sessions": None, "total_session_turns": None,
        "records_end_ns": None, "success_records": max(0, reduced - phase["failed"]), "error_records": phase["failed"],
        "requests_per_second": _rate(done, elapsed_s), "records_per_second": _rate(reduced, elapsed_s),
        "requests_eta_sec": phase["eta_s"], "records_eta_sec": phase["reduce_eta_s"],
        "last_update_ns": snapshot.get("at_ns"),
        **{name: phase[name] for name in ("status", "share", "elapsed_s", "in_flight", "due", "late")},
    }  # fmt: skip


def _rate(count: int, seconds: float) -> float | None:
    return count / seconds if count and seconds > 0 else None


def entry(metric: dict[str, Any]) -> dict[str, Any]:
    """One metric as ``/api/metrics`` and ``/api/results`` have it."""
    made = {"header": metric["title"], "unit": metric["unit"], **_known(metric["so_far"])}
    if metric.get("recent"):
        made["recent"] = _known(metric["recent"])
    return made


def _known(statistics: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in statistics.items() if value is not None}


def metrics(board: Board) -> dict[str, Any]:
    """``GET /api/metrics``."""
    about, snapshot = board.about, board.snapshot or {}
    labels = {} if about is None else about.labels
    return {
        "aiperf_version": "" if about is None else about.version,
        "benchmark_id": None if about is None else about.identity.get("benchmark_id"),
        "model": labels.get("model"), "endpoint_type": labels.get("endpoint_type"),
        "streaming": labels["streaming"] == "true" if "streaming" in labels else None,
        "concurrency": int(labels["concurrency"]) if "concurrency" in labels else None,
        "request_rate": float(labels["request_rate"]) if "request_rate" in labels else None,
        "metrics": {metric["tag"]: entry(metric) for metric in snapshot.get("metrics", [])},
        "phase": snapshot.get("phase"),
        **{name: snapshot.get(name) for name in ("good", "objectives", "failures", "further_failures", "verdict", "delays")},
    }  # fmt: skip


def workers(board: Board) -> dict[str, Any]:
    """``GET /api/workers``."""
    snapshot = board.snapshot or {}
    each = {f"worker_{worker['index']}": _worker(worker, snapshot.get("at_ns")) for worker in snapshot.get("workers", [])}
    states = [worker["status"] for worker in each.values()]
    group = {
        "group_id": _GROUP, "status": _worst(states), "startup_state": None, "declared_workers": len(each),
        "ready_workers": sum(state not in ("error", "stale") for state in states), "health": None,
        "task_stats": {
            name: sum(worker["task_stats"][name] for worker in each.values()) for name in ("total", "failed", "completed")
        },
        "workers": each, "last_update_ns": snapshot.get("at_ns"),
    }  # fmt: skip
    return {"workers": each, "worker_groups": {_GROUP: group} if each else {}}


def _worker(worker: dict[str, Any], at_ns: int | None) -> dict[str, Any]:
    health = None
    if worker["pid"] is not None:
        health = {"pid": worker["pid"], "cpu_usage": worker["cpu_pct"], "memory_usage": worker["memory_bytes"]}
    done = worker["completed"] + worker["errors"]
    return {
        "worker_id": f"worker_{worker['index']}",
        "task_stats": {"total": done + worker["in_flight"], "failed": worker["errors"], "completed": worker["completed"]},
        "processing_stats": {"processed": None, "errors": None}, "health": health,
        "status": worker["status"].replace(" ", "_"), "startup_state": None, "startup_state_updated_ns": None,
        "in_flight": worker["in_flight"], "received_bytes": worker["received_bytes"], "last_update_ns": at_ns,
        "site": worker["site"],
    }  # fmt: skip


def _worst(states: list[str]) -> str:
    order = ("error", "stale", "high_load", "healthy", "idle")
    return min(states, key=order.index, default="idle")


def server_metrics(board: Board) -> dict[str, Any]:
    """``GET /api/server-metrics``: the last values of telemetry series, by target and name."""
    snapshot = board.snapshot or {}
    found: dict[str, Any] = {}
    for series in snapshot.get("series", []):
        name = series["target"] or series["source"]
        target = found.setdefault(name, {"endpoint_url": name, "source": series["source"], "metrics": {}})
        metric = target["metrics"].setdefault(series["name"], {"type": series["kind"], "unit": series["unit"], "series": []})
        metric["series"].append({"labels": series["labels"], "value": series["value"], "at_ns": series["at_ns"]})
    answer = {"endpoint_summaries": found, "further_series": snapshot.get("further_series", 0)}
    return answer if found else {**answer, "message": "no samples of servers have come yet"}


def results(board: Board) -> dict[str, Any]:
    """``GET /api/results``."""
    status = RUNNING if board.status == WAITING else board.status
    return {"status": status, "results": board.results, "finish": board.finish}


def listing(board: Board) -> dict[str, Any]:
    """``GET /api/results/list``: the files beside the marker that the run writes last; none before it."""
    directory = None if board.about is None else board.about.directory
    marker = None if directory is None else _marker(directory)
    processing = board.status == RUNNING and system_state(board) == "processing"
    files = [] if directory is None else [{"name": name, "size": path.stat().st_size} for name, path in files_of(board).items()]
    partial = bool(marker and marker.get("partial"))
    failed = [str(name) for name in (marker or {}).get("failed_exporters", [])]
    return {
        "files": files, "ready": bool(files), "processing": processing, "partial": partial, "failed_exporters": failed,
    }  # fmt: skip


def files_of(board: Board) -> dict[str, Path]:
    """The files of a run that may be fetched, by name: those that its marker lists; without one, all at the top."""
    directory = None if board.about is None else board.about.directory
    if directory is None or not directory.is_dir() or board.finish is None:
        return {}
    marker = _marker(directory)
    if marker is not None and isinstance(marker.get("files"), list):
        found = {str(name): directory / str(name) for name in marker["files"]}
    elif board.live:
        return {}
    else:
        found = {path.name: path for path in sorted(directory.iterdir()) if not path.name.startswith(".")}
    whole = directory.resolve()
    return {
        name: path for name, path in found.items()
        if ".." not in Path(name).parts and path.is_file() and path.resolve().is_relative_to(whole)
    }  # fmt: skip


def _marker(directory: Path) -> dict[str, Any] | None:
    try:
        found = json.loads((directory / READY_FILE).read_bytes())
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


__all__ = [
    "STATISTICS", "entry", "files_of", "listing", "metrics", "progress", "results", "server_metrics", "system_state", "workers",
]  # fmt: skip
