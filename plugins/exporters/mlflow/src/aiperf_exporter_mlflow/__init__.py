"""Uploads a run to MLflow behind its last file, in a process of its own."""

from __future__ import annotations

import json
import logging
from collections.abc import Collection, Sequence

from aiperf import Artifact, Summary, SummaryExporter, atomic
from aiperf.sdk.redaction import without_secrets
from aiperf_uploads import UploadOutcome, exported_files, limit_s, upload

from aiperf_exporter_mlflow.jobs import MlflowJob, MlflowRun, run_of
from aiperf_exporter_mlflow.options import LIMIT, MlflowOptions

log = logging.getLogger("aiperf.exporters.mlflow")

_RECEIPT = "mlflow_export.json"


class MlflowExporter(SummaryExporter[MlflowOptions]):
    """Writes ``mlflow_export.json``, which names the MLflow run; what was not uploaded is a warning."""

    files = {_RECEIPT: _RECEIPT}
    sends = True

    def wanted(self) -> bool:
        return self.options is not None and self.options.tracking_uri is not None

    def planned(self) -> Collection[str]:
        return self.files if self.wanted() else ()

    def export(self, summary: Summary) -> Sequence[Artifact]:
        options = self.options
        assert options.tracking_uri is not None  # wanted
        files = exported_files(self.target.directory, options.artifact_globs, leave=[_RECEIPT])
        run = run_of(summary, options, files)
        job = MlflowJob(options.tracking_uri, options.experiment, run, options.parent_run_id)
        outcome = upload(f"{__name__}.process", job, run.items, limit_s(LIMIT))
        for sentence in outcome.sentences(f"--mlflow-tracking-uri {without_secrets(options.tracking_uri)}"):
            log.warning("%s", sentence)
        if "run_id" not in outcome.facts:
            return []
        return [self._receipt(summary, job, run, outcome)]

    def _receipt(self, summary: Summary, job: MlflowJob, run: MlflowRun, outcome: UploadOutcome) -> Artifact:
        sent = set(outcome.sent)
        told = {
            "tracking_uri": without_secrets(job.tracking_uri),
            "experiment": job.experiment,
            "run_id": outcome.facts["run_id"],
            "run_name": run.name,
            "benchmark_id": summary.run_id,
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
        path = self.target.file(_RECEIPT)
        with atomic(path) as draft:
            draft.write_text(json.dumps(told, indent=2) + "\n", encoding="utf-8")
        return Artifact("MLflow Export", path)


__all__ = ["MlflowExporter"]
