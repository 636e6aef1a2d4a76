"""What a run is in MLflow: parameters, metrics, tags and files, as the process of the upload gets them."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from aiperf import Summary
from aiperf.sdk.redaction import redact
from aiperf_uploads import ExportedFile
from msgspec import Struct

from aiperf_exporter_mlflow.options import MlflowOptions, tags_of

METRICS, PARAMETERS = "the metrics", "the parameters"
RUN = "the run"
"""Items of an upload beside its files."""
_NAME_DIGITS = 8


class MlflowRun(Struct, frozen=True):
    """One run.  metrics: by name.  files: absolute path, name below the run's directory, and folder in MLflow."""

    name: str
    metrics: dict[str, float]
    parameters: dict[str, str]
    tags: dict[str, str]
    start_ms: int
    end_ms: int
    failed: bool = False
    files: tuple[tuple[str, str, str], ...] = ()

    @property
    def items(self) -> list[str]:
        """What is to arrive, in words."""
        return [RUN, METRICS, PARAMETERS, *(name for _, name, _ in self.files)]


class MlflowJob(Struct, frozen=True):
    """An upload.  parent_run_id: the MLflow run that contains it."""

    tracking_uri: str
    experiment: str
    run: MlflowRun
    parent_run_id: str | None = None


def run_of(summary: Summary, options: MlflowOptions, files: list[ExportedFile]) -> MlflowRun:
    return MlflowRun(
        options.run_name or f"aiperf-{summary.run_id[:_NAME_DIGITS]}", metrics(summary), parameters(summary),
        {"aiperf.version": summary.version, "aiperf.was_cancelled": str(summary.cancelled).lower(),
         "benchmark_id": summary.run_id, **tags_of(options.tags)},
        summary.start_ns // 10**6, summary.end_ns // 10**6, failed=not summary.complete,
        files=tuple((str(file.path), file.name, _folder(file)) for file in files),
    )  # fmt: skip


def _folder(file: ExportedFile) -> str:
    """``exports``, or ``plots`` with the directories between."""
    within = Path(file.name).parent.as_posix().removeprefix("plots").strip("/.")
    return f"{file.folder}/{within}" if within else file.folder


def metrics(summary: Summary) -> dict[str, float]:
    """``<tag>`` is the average or the only value, ``<tag>.<stat>`` any other statistic; in display units."""
    found: dict[str, float] = {}
    for tag, result in summary.results.items():
        for stat, value in result.stats.items():
            if math.isfinite(value):
                found[tag if stat == "avg" else f"{tag}.{stat}"] = value
        found |= {f"{tag}.{name}": count for name, count in result.counts.items()}
    found["aiperf.completed_requests"] = summary.valid + summary.failed
    found["aiperf.total_expected_requests"] = summary.measurement.arrivals.planned
    return found


def parameters(summary: Summary) -> dict[str, str]:
    """The parameters that the run has a value of."""
    config = summary.config
    endpoint = config.get("endpoint", {})
    phase: dict[str, Any] = next((each for each in config.get("phases", ()) if each.get("kind") == "profiling"), {})
    values: dict[str, Any] = {
        "endpoint.type": endpoint.get("type"),
        "endpoint.models": ",".join(item["name"] for item in config.get("models", {}).get("items", ())),
        "endpoint.urls": redact(",".join(endpoint.get("urls", ()))),
        "output.artifact_directory": summary.directory,
        "timing.mode": phase.get("type"),
        "loadgen.concurrency": phase.get("concurrency"),
        "loadgen.request_rate": phase.get("rate"),
        "loadgen.request_count": phase.get("requests"),
        "loadgen.benchmark_duration": phase.get("duration"),
        "aiperf.cli_command": redact(summary.command),
    }
    return {name: str(value) for name, value in values.items() if value not in (None, "")}


__all__ = ["METRICS", "PARAMETERS", "RUN", "MlflowJob", "MlflowRun", "run_of"]
