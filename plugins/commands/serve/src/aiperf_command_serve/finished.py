"""A finished run on a board: its summary as the last snapshot, and the course of its requests."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

from aiperf.results import FinishedRun
from aiperf.sdk.errors import AiperfError
from aiperf_live_api.board import CANCELLED, COMPLETE, INCOMPLETE, Board, RunAbout

_NS_PER_S = 1_000_000_000
_MOST_LINES = 500
_MOST_LOG_BYTES = 256 << 10
_MOST_FAILURES = 20
_LEVELS = (("ERROR", 40), ("CRITICAL", 50), ("WARNING", 30), ("DEBUG", 10))
_SHORT = {"ttft": "TTFT", "itl": "ITL", "isl": "ISL", "osl": "OSL", "http": "HTTP", "url": "URL"}


def title_of(tag: str) -> str:
    """``Time to First Token`` of ``time_to_first_token``: files have tags alone."""
    words = [_SHORT.get(word, word if word in ("to", "of", "per", "in") else word.capitalize()) for word in tag.split("_")]
    return " ".join(words)


def _at_ns(text: Any) -> int:
    """Wall clock of a time in a summary; 0 where it is none."""
    try:
        return round(datetime.fromisoformat(str(text)).timestamp() * _NS_PER_S)
    except ValueError:
        return 0


def _value(run: FinishedRun, tag: str, stat: str = "avg") -> float | None:
    value = run.metrics.get(tag, {}).get(stat)
    return float(value) if isinstance(value, int | float) else None


def _models(summary: dict[str, Any]) -> list[str]:
    config = summary.get("input_config", {})
    models = config.get("models", {}) if isinstance(config, dict) else {}
    items = models.get("items", []) if isinstance(models, dict) else []
    names = [str(item.get("name", "")) if isinstance(item, dict) else str(item) for item in items]
    older = config.get("endpoint", {}).get("model_names", []) if isinstance(config, dict) else []  # AIPerf 0.7
    return [name for name in names if name] or [str(name) for name in older]


def status_of(summary: dict[str, Any]) -> str:
    """``complete``, ``cancelled`` or ``incomplete``."""
    if summary.get("was_cancelled"):
        return CANCELLED
    return COMPLETE if summary.get("is_complete", True) else INCOMPLETE


def entry_of(run: FinishedRun) -> dict[str, Any]:
    """What the list has of a run.

    Raises:
        AiperfError: Its summary can't be read.
    """
    summary = run.summary
    measurement = summary.get("measurement", {})
    return {
        "models": _models(summary), "endpoint_type": _endpoint(summary).get("type"), "start_time": summary.get("start_time"),
        "status": status_of(summary), "version": str(summary.get("aiperf_version", "")), "ours": run.ours,
        "benchmark_id": summary.get("benchmark_id"), "verdict": measurement.get("verdict"),
        "requests": _value(run, "request_count"), "failed": _failed(summary),
        "request_throughput": _value(run, "request_throughput"),
        "time_to_first_token_p99": _value(run, "time_to_first_token", "p99"),
        "inter_token_latency_p99": _value(run, "inter_token_latency", "p99"),
        "request_latency_p99": _value(run, "request_latency", "p99"),
    }  # fmt: skip


def _endpoint(summary: dict[str, Any]) -> dict[str, Any]:
    config = summary.get("input_config", {})
    endpoint = config.get("endpoint", {}) if isinstance(config, dict) else {}
    return endpoint if isinstance(endpoint, dict) else {}


def _failed(summary: dict[str, Any]) -> int:
    return sum(int(each.get("count", 0)) for each in summary.get("error_summary") or () if isinstance(each, dict))


def board_of(run: FinishedRun) -> Board:
    """The board of a run, whole.

    Raises:
        AiperfError: Its summary can't be read.
    """
    summary = run.summary
    board = Board(live=False)
    from aiperf_command_serve.course import add_course  # it needs numpy, whose memory a service has no other use for

    board.begin(_about(run, summary))
    for line in _log(run.directory):
        board.add_line(line)
    snapshot = _snapshot(run, summary)
    try:
        snapshot["series"], snapshot["further_series"] = add_course(board.history, run)
    except AiperfError as error:
        board.add_line({"text": f"the course of the run can't be shown: {error.message}", "level": 30})
    board.show(snapshot)
    reason = str(summary.get("incomplete_reason") or "")
    finish: dict[str, Any] = {"status": status_of(summary), "reason": reason, "code": None, "files": [], "verdict": None}
    board.end(finish, _results(run, summary))
    return board


def _about(run: FinishedRun, summary: dict[str, Any]) -> RunAbout:
    endpoint, models = _endpoint(summary), _models(summary)
    identity = {key: value for key, value in (summary.get("run_info") or {}).items() if value is not None}
    identity.setdefault("benchmark_id", summary.get("benchmark_id"))
    labels = {
        "benchmark_id": str(identity["benchmark_id"] or ""), "model": ",".join(sorted(models)),
        "endpoint_type": str(endpoint.get("type") or ""), "streaming": str(bool(endpoint.get("streaming"))).lower(),
    }  # fmt: skip
    phases = summary.get("input_config", {}).get("phases") or []
    load = next((phase for phase in phases if isinstance(phase, dict) and phase.get("name") != "warmup"), {})
    for label, key in (("concurrency", "concurrency"), ("request_rate", "rate")):
        if isinstance(load.get(key), int | float):
            labels[label] = f"{load[key]:g}"
    title = f"{', '.join(models) or 'run'} · {labels['endpoint_type'] or 'endpoint'} · {run.label}"
    return RunAbout(
        identity, run.configuration, labels, title, run.directory, _at_ns(summary.get("start_time")),
        str(summary.get("aiperf_version", "")),
    )  # fmt: skip


def _metrics(run: FinishedRun) -> list[dict[str, Any]]:
    return [
        {
            "tag": tag, "title": title_of(tag), "unit": str(entry["unit"]), "short": "", "group": "", "order": None,
            "so_far": {
                name: value for name, value in entry.items()
                if isinstance(value, int | float) and not isinstance(value, bool)
            },
            "recent": None,
        }
        for tag, entry in run.metrics.items()
    ]  # fmt: skip


def _snapshot(run: FinishedRun, summary: dict[str, Any]) -> dict[str, Any]:
    """The summary by the names of a snapshot."""
    began_ns, ended_ns = _at_ns(summary.get("start_time")), _at_ns(summary.get("end_time"))
    elapsed_s = max(0.0, (ended_ns - began_ns) / _NS_PER_S) if began_ns and ended_ns else 0.0
    failures = [_failure(each) for each in summary.get("error_summary") or () if isinstance(each, dict)]
    failures.sort(key=lambda each: -int(each["count"]))
    phases = [_phase(each, index) for index, each in enumerate(summary.get("phases") or ()) if isinstance(each, dict)]
    good, failed = round(_value(run, "request_count") or 0), _failed(summary)
    if not phases:
        phases = [_plain_phase(0, "profiling", "profiling", elapsed_s, good, failed)]
    measurement = summary.get("measurement") or {}
    verdict = None
    if measurement.get("verdict"):
        verdict = {
            "verdict": measurement["verdict"], "reasons": list(map(str, measurement.get("reasons") or ())),
            "notes": [*map(str, measurement.get("notes") or ()), *map(str, summary.get("warnings") or ())], "at_s": elapsed_s,
        }  # fmt: skip
    return {
        "phase": "profiling", "kind": "profiling", "elapsed_s": elapsed_s, "sent": good + failed, "completed": good,
        "errors": failed, "failed": failed, "in_flight": 0, "rate": _value(run, "request_throughput") or 0.0, "share": 1.0,
        "eta_s": 0.0, "unreached_s": None, "cell": None, "number": 1, "at_ns": ended_ns, "at_s": elapsed_s,
        "status": "Complete", "last": True, "recent_rate": None, "phases": phases, "metrics": _metrics(run), "good": None,
        "objectives": [], "failures": failures[:_MOST_FAILURES],
        "further_failures": sum(each["count"] for each in failures[_MOST_FAILURES:]), "workers": [],
        "delays": _delays(measurement), "series": [], "further_series": 0, "logged": 0, "verdict": verdict,
    }  # fmt: skip


def _delays(measurement: dict[str, Any]) -> dict[str, float | None]:
    def p99(name: str) -> float | None:
        value = (measurement.get(name) or {}).get("p99")
        return float(value) if isinstance(value, int | float) else None

    return {"slip_ms": p99("schedule_slip_ms"), "loop_lag_ms": p99("loop_lag_ms"), "client_error_ms": p99("client_error_ms")}


def _failure(each: dict[str, Any]) -> dict[str, Any]:
    about = each.get("error_details") or each.get("error") or {}
    code = about.get("code")
    return {
        "type": str(about.get("type") or "error"), "count": int(each.get("count", 0)),
        "code": code if isinstance(code, int) else None, "text": str(about.get("message") or "")[:200],
    }  # fmt: skip


def _phase(phase: dict[str, Any], index: int) -> dict[str, Any]:
    duration = phase.get("duration")
    elapsed_s = float(duration.get("avg", 0.0)) if isinstance(duration, dict) else 0.0
    name, kind = str(phase.get("name", "profiling")), str(phase.get("kind", "profiling"))
    return _plain_phase(index, name, kind, elapsed_s, int(phase.get("valid", 0)), int(phase.get("failed", 0)))


def _plain_phase(index: int, name: str, kind: str, elapsed_s: float, good: int, failed: int) -> dict[str, Any]:
    return {
        "index": index, "name": name, "kind": kind, "status": "Complete", "share": 1.0, "elapsed_s": elapsed_s, "eta_s": 0.0,
        "planned": None, "due": None, "sent": good + failed, "late": None, "in_flight": 0, "completed": good, "errors": failed,
        "reduced": good + failed, "failed": failed, "reduce_eta_s": 0.0,
    }  # fmt: skip


def _results(run: FinishedRun, summary: dict[str, Any]) -> dict[str, Any]:
    good, failed = round(_value(run, "request_count") or 0), _failed(summary)
    return {
        "results": {
            "records": [{"tag": tag, "header": title_of(tag), **entry} for tag, entry in run.metrics.items()],
            "warmup_records": [], "timeslices": None, "total_expected": None, "completed": good + failed,
            "start_ns": _at_ns(summary.get("start_time")) or None, "end_ns": _at_ns(summary.get("end_time")) or None,
            "was_cancelled": bool(summary.get("was_cancelled")), "is_complete": status_of(summary) == COMPLETE,
            "incomplete_reason": summary.get("incomplete_reason"), "successful_request_count": good,
            "error_request_count": failed, "error_summary": summary.get("error_summary") or [],
        },
        "errors": [],
    }  # fmt: skip


def _log(directory: Path) -> list[dict[str, Any]]:
    """The last lines of the run's log."""
    path = directory / "logs" / "aiperf.log"
    try:
        with path.open("rb") as file:
            file.seek(0, 2)
            file.seek(max(0, file.tell() - _MOST_LOG_BYTES))
            lines = file.read().decode("utf-8", "replace").splitlines()[-_MOST_LINES:]
    except OSError:
        return []
    return [{"text": line[:2_000], "level": _level(line[:60])} for line in lines]


def _level(start: str) -> int:
    return next((level for word, level in _LEVELS if word in start), 20)


__all__ = ["board_of", "entry_of", "status_of", "title_of"]
