"""What a run tells while it goes on, put on a board and into its history."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from aiperf.sdk.live import LiveEnd, LiveRun, Step
from aiperf.sdk.plan import PhasePlan, Plan
from aiperf.sdk.snapshot import LiveWorker, LogLine, Snapshot
from aiperf.sdk.summary import Result, Summary
from msgspec import Struct
from msgspec.structs import asdict

from aiperf_live_api.board import CANCELLED, COMPLETE, INCOMPLETE, Board, RunAbout

_NS_PER_S = 1_000_000_000
_LATENCIES = ("time_to_first_token", "inter_token_latency", "request_latency")
"""Metrics whose percentiles of the last seconds the history keeps; a metric with an objective is another."""
_PERCENTILES = ("p50", "p90", "p99")
_RATES = ("output_token_throughput", "total_token_throughput")
_MOST_CHARACTERS = 2_000


def named(value: Any) -> Any:
    """A structure, with all within it, as a dictionary by the names of its fields, also where it travels as an array."""
    if isinstance(value, Struct):
        return {name: named(item) for name, item in asdict(value).items()}
    return [named(item) for item in value] if isinstance(value, list | tuple) else value


def labels_of(plan: Plan, benchmark_id: str) -> dict[str, str]:
    """What tells the run from others in Prometheus: model, endpoint, streaming, and the load that the first phase asks for."""
    labels = {
        "benchmark_id": benchmark_id, "model": ",".join(sorted(plan.target.models)),
        "endpoint_type": plan.plugins.endpoint.name, "streaming": str(plan.target.streaming).lower(),
    }  # fmt: skip
    first = next((phase for phase in plan.load.phases if phase.kind == "profiling"), None)
    if first is not None and first.concurrency is not None:
        labels["concurrency"] = str(first.concurrency)
    if first is not None and first.rate is not None:
        labels["request_rate"] = f"{first.rate:g}"
    return labels


def about(run: LiveRun) -> RunAbout:
    """What a board shows of a plan that begins."""
    plan, cell = run.plan, run.cell
    identity: dict[str, Any] = {"benchmark_id": plan.run.run_id, "random_seed": plan.run.seed, "cli_command": plan.run.command}
    if plan.run.study_id:
        identity["sweep_id"] = plan.run.study_id
    if cell is not None:
        identity |= {"run_label": cell.label, "trial": cell.number - 1}
    models = ", ".join(plan.target.models)
    title = f"{models} · {plan.plugins.endpoint.name}" + ("" if cell is None else f" · {cell.label}")
    return RunAbout(
        identity, plan.input_config(), labels_of(plan, plan.run.run_id), title, Path(plan.output.artifacts),
        run.at_ns or time.time_ns(), plan.run.version, _phases(plan.load.phases),
    )  # fmt: skip


def _phases(phases: tuple[PhasePlan, ...]) -> list[dict[str, Any]]:
    profiling = [phase.index for phase in phases if phase.kind == "profiling"]
    return [
        {
            "name": phase.name, "kind": phase.kind, "duration_s": _seconds(phase.duration_ns),
            "grace_s": _seconds(phase.grace_ns), "session_count": phase.session_count, "concurrency": phase.concurrency,
            "rate": phase.rate,
            "profiling_index": profiling.index(phase.index) if phase.index in profiling else None,
        }
        for phase in phases
    ]  # fmt: skip


def _seconds(ns: int | None) -> float | None:
    return None if ns is None else ns / _NS_PER_S


class Watch:
    """Puts a run on *board*."""

    def __init__(self, board: Board) -> None:
        self._board = board
        self._described: dict[str, dict[str, Any]] = {}

    def begin(self, run: LiveRun) -> None:
        self._board.begin(about(run))

    def step(self, step: Step) -> None:
        self._board.work({**named(step), "line": step.line()})

    def log(self, line: LogLine) -> None:
        self._board.add_line({"text": line.text[:_MOST_CHARACTERS], "level": line.level})

    def show(self, snapshot: Snapshot) -> None:
        board, document = self._board, named(snapshot)
        document.pop("log")
        began_ns = board.about.began_ns if board.about is not None else 0
        document["at_s"] = max(0.0, (snapshot.at_ns - began_ns) / _NS_PER_S)
        document["failed"] = sum(max(phase.failed, phase.errors) for phase in snapshot.phases)
        self._described = {}
        counters, gauges = self._points(snapshot)
        document["points"], document["described"] = {**counters, **gauges}, self._described
        board.history.add(document["at_s"], counters, gauges)
        board.show(document)

    def end(self, end: LiveEnd) -> None:
        board = self._board
        directory = None if board.about is None else board.about.directory
        summary = end.summary
        status = COMPLETE if summary is not None and summary.complete else INCOMPLETE
        if summary is not None and summary.cancelled:
            status = CANCELLED
        reason = end.failure or ("" if summary is None else summary.incomplete_reason or "")
        files = [_below(Path(path), directory) for path in end.files]
        finish: dict[str, Any] = {
            "status": status, "reason": reason, "code": end.code, "files": [name for name in files if name], "verdict": None,
        }  # fmt: skip
        if summary is not None and summary.measurement is not None:
            found = summary.measurement
            finish["verdict"] = {"verdict": found.verdict, "reasons": list(found.reasons), "notes": list(found.notes)}
        board.end(finish, None if summary is None else results_of(summary))

    def _points(self, snapshot: Snapshot) -> tuple[dict[str, float], dict[str, float | None]]:
        """The counters and gauges that the history keeps of a snapshot, by name of their series."""
        counters: dict[str, float] = {}
        for phase in snapshot.phases:
            counters[f"done.{phase.kind}"] = counters.get(f"done.{phase.kind}", 0) + phase.done
            counters["sent"] = counters.get("sent", 0) + phase.sent
            counters["failed"] = counters.get("failed", 0) + max(phase.failed, phase.errors)
        gauges: dict[str, float | None] = {"in_flight": snapshot.in_flight}
        bounded = {objective.tag for objective in snapshot.objectives}
        for metric in snapshot.metrics:
            if metric.recent is None:
                continue
            if metric.tag in _LATENCIES or (metric.tag in bounded and metric.recent.p50 is not None):
                for name in _PERCENTILES:
                    self._gauge(gauges, f"metric.{metric.tag}.{name}", getattr(metric.recent, name), metric.title, metric.unit)
            elif metric.tag in _RATES:
                self._gauge(gauges, f"metric.{metric.tag}.avg", metric.recent.avg, metric.title, metric.unit)
        for worker in snapshot.workers:
            self._gauge(gauges, f"worker.{worker.index}.cpu", worker.cpu_pct, _worker_name(worker), "%")
        for series in snapshot.series:
            labels = ",".join(f"{name}={value}" for name, value in sorted(series.labels.items()))
            name = f"series.{series.source}.{series.target}.{series.name}.{labels}"
            unit = f"{series.unit}/s" if series.kind == "counter" else series.unit
            about = {"title": series.name, "unit": unit, "source": series.source, "target": series.target, "labels": labels}
            self._describe(name, about)
            gauges[name] = series.value
        return counters, gauges

    def _gauge(
        self, gauges: dict[str, float | None], name: str, value: float | None, title: str, unit: str
    ) -> None:  # fmt: skip
        self._describe(name, {"title": title, "unit": unit})
        gauges[name] = value

    def _describe(self, name: str, about: dict[str, Any]) -> None:
        """Say what a series is, with the first snapshot that has it."""
        if not self._board.history.described(name):
            self._board.history.describe(name, about)
            self._described[name] = about


def _below(path: Path, directory: Path | None) -> str:
    """The name of a file below the run's directory; "" of any other."""
    if directory is None:
        return ""
    try:
        return str(path.absolute().relative_to(directory.absolute()))
    except ValueError:
        return ""


def results_of(summary: Summary) -> dict[str, Any]:
    """The results of a run by the keys of the reference."""
    profiling = [phase for phase in summary.phases if phase.kind == "profiling"]
    warmup = [phase for phase in summary.phases if phase.kind != "profiling"]
    errors = [
        {
            "error_details": {"code": each.error.code, "type": each.error.type, "message": each.error.message},
            "count": each.count,
        }
        for phase in profiling for each in phase.errors
    ]  # fmt: skip
    good, failed = sum(phase.valid for phase in profiling), sum(phase.failed for phase in profiling)
    return {
        "results": {
            "records": [_record(result) for result in summary.results.values()],
            "warmup_records": [_record(result) for phase in warmup for result in phase.results.values()],
            "timeslices": None, "total_expected": None, "completed": good + failed,
            "start_ns": min((phase.start_ns for phase in profiling), default=None),
            "end_ns": max((phase.end_ns for phase in profiling), default=None), "was_cancelled": summary.cancelled,
            "is_complete": summary.complete, "incomplete_reason": summary.incomplete_reason, "successful_request_count": good,
            "error_request_count": failed, "error_summary": errors,
        },
        "errors": [],
    }  # fmt: skip


def _worker_name(worker: LiveWorker) -> str:
    return f"worker {worker.index}" if worker.site is None else f"worker {worker.index} ({worker.site})"


def _record(result: Result) -> dict[str, Any]:
    return {"tag": result.tag, "header": result.title, **result.entry()}


__all__ = ["Watch", "about", "labels_of", "named", "results_of"]
