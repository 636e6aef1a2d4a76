"""The exporters with a server that is not there.  For tests, and for ``aiperf plugins validate``."""

from __future__ import annotations

from aiperf.testing import SendingExporterContract, SendingStudyExporterContract

from aiperf_exporter_mlflow import MlflowExporter, MlflowStudyExporter
from aiperf_exporter_mlflow.options import MlflowRunOptions, MlflowStudyOptions

_NOBODY = "http://127.0.0.1:9"


class MlflowContract(SendingExporterContract):
    exporter = MlflowExporter
    options = MlflowRunOptions(tracking_uri=_NOBODY)


class MlflowStudyContract(SendingStudyExporterContract):
    exporter = MlflowStudyExporter
    options = MlflowStudyOptions(tracking_uri=_NOBODY)
