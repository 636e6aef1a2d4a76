"""A run, or all runs of a study, on their way to MLflow, and the receipt."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

from aiperf import Artifact, Summary, atomic
from aiperf.sdk.redaction import without_secrets
from aiperf.sdk.study import Study
from aiperf_uploads import UploadOutcome, exported_files, limit_s, study_files, upload

from aiperf_exporter_mlflow.jobs import MlflowJob, child_of, parent_of, run_of
from aiperf_exporter_mlflow.options import LIMIT, MlflowOptions

log = logging.getLogger("aiperf.exporters.mlflow")

RECEIPT = "mlflow_export.json"
_PROCESS = "aiperf_exporter_mlflow.process"


def file_run(summary: Summary, options: MlflowOptions, directory: Path) -> list[Artifact]:
    """Upload a run; the receipt, where MLflow has made a run of it."""
    files = exported_files(directory, options.artifact_globs, leave=[RECEIPT])
    job = MlflowJob(_address(options), options.experiment, run_of(summary, options, files), options.parent_run_id)
    outcome = _uploaded(job, limit_s(LIMIT))
    if "run_id" not in outcome.facts:
        return []
    return [_written(directory / RECEIPT, _receipt(job, outcome, summary.run_id))]


def file_study(study: Study, options: MlflowOptions) -> list[Artifact]:
    """Upload the study and those of its runs that the receipt doesn't name; the receipt."""
    path = study.directory / RECEIPT
    before = _before(path, study, options)
    filed: dict[str, str] = before.get("runs", {})
    children = tuple(
        child_of(study, run, options, exported_files(run.directory, options.artifact_globs, leave=[RECEIPT]))
        for run in study.runs if run.label not in filed
    )  # fmt: skip
    parent = parent_of(study, options, study_files(study.directory), before.get("run_id"))
    job = MlflowJob(_address(options), options.experiment, parent, options.parent_run_id, children)
    outcome = _uploaded(job, limit_s(LIMIT) * (1 + len(children)))
    if "run_id" not in outcome.facts:
        return []
    receipt = _receipt(job, outcome, study.study_id)
    receipt["runs"] = {**filed, **outcome.facts.get("children", {})}
    return [_written(path, receipt)]


def _address(options: MlflowOptions) -> str:
    assert options.tracking_uri is not None  # wanted
    return options.tracking_uri


def _uploaded(job: MlflowJob, seconds: float) -> UploadOutcome:
    """Upload, and warn of what has not arrived."""
    log.info("uploading to MLflow, for %g s at most", seconds)
    outcome = upload(_PROCESS, job, job.items, seconds)
    for sentence in outcome.sentences(f"--mlflow-tracking-uri {without_secrets(job.tracking_uri)}"):
        log.warning("%s", sentence)
    return outcome


def _before(path: Path, study: Study, options: MlflowOptions) -> dict[str, Any]:
    """The receipt of an earlier upload of the study to the same place; {} where there is none."""
    try:
        told: dict[str, Any] = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    place = (study.study_id, without_secrets(_address(options)), options.experiment)
    return told if (told.get("benchmark_id"), told.get("tracking_uri"), told.get("experiment")) == place else {}


def _receipt(job: MlflowJob, outcome: UploadOutcome, benchmark_id: str) -> dict[str, Any]:
    run, sent = job.run, set(outcome.sent)
    return {
        "tracking_uri": without_secrets(job.tracking_uri),
        "experiment": job.experiment,
        "run_id": outcome.facts["run_id"],
        "run_name": run.name,
        "benchmark_id": benchmark_id,
        "parent_run_id": job.parent_run_id,
        "live_streaming": False,
        "reused_live_run": False,
        "metric_keys": sorted(run.metrics),
        "param_keys": sorted(run.parameters),
        "tag_keys": sorted(run.tags),
        "uploaded_artifacts": [name for _, name, _ in run.files if name in sent],
        "exported_at_ns": outcome.facts.get("exported_at_ns"),
        "stream_started_at_ns": None,
    }


def _written(path: Path, receipt: dict[str, Any]) -> Artifact:
    with atomic(path) as draft:
        draft.write_text(json.dumps(receipt, indent=2) + "\n", encoding="utf-8")
    return Artifact("MLflow Export", path)


__all__ = ["RECEIPT", "file_run", "file_study"]
