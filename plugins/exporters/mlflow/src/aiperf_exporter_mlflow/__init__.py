"""Uploads a run, or all runs of a study, to MLflow behind the last file, in a process of its own."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from aiperf import SummaryExporter
from aiperf.sdk.exporter import StudyExporter

from aiperf_exporter_mlflow.options import MlflowRunOptions, MlflowStudyOptions

if TYPE_CHECKING:
    from aiperf import Artifact, Summary
    from aiperf.sdk.study import Study

_RECEIPT = "mlflow_export.json"


class MlflowExporter(SummaryExporter[MlflowRunOptions]):
    """Writes ``mlflow_export.json``, which names the MLflow run; what was not uploaded is a warning."""

    files = {_RECEIPT: _RECEIPT}
    sends = True

    def wanted(self) -> bool:
        return self.options is not None and self.options.tracking_uri is not None

    def planned(self) -> Collection[str]:
        return self.files if self.wanted() else ()

    def export(self, summary: Summary) -> Sequence[Artifact]:
        from aiperf_exporter_mlflow.filing import file_run  # in no process of a run that isn't uploaded

        return file_run(summary, self.options, self.target.directory)


class MlflowStudyExporter(StudyExporter[MlflowStudyOptions]):
    """One MLflow run for the study, and nested in it one for each of its runs.

    A study that is resumed is filed where it was: the runs that ``mlflow_export.json`` names are not made twice.
    """

    files = {_RECEIPT: _RECEIPT}
    sends = True

    def wanted(self) -> bool:
        return self.options is not None and self.options.tracking_uri is not None

    def planned(self) -> Collection[str]:
        return self.files if self.wanted() else ()

    def export_study(self, study: Study) -> Sequence[Artifact]:
        from aiperf_exporter_mlflow.filing import file_study  # as above

        return file_study(study, self.options)


__all__ = ["MlflowExporter", "MlflowStudyExporter"]
