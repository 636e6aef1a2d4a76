"""The exporter with a server that is not there.  For tests, and for ``aiperf plugins validate``."""

from __future__ import annotations

from aiperf.testing import SendingExporterContract

from aiperf_exporter_mlflow import MlflowExporter
from aiperf_exporter_mlflow.options import MlflowOptions


class MlflowContract(SendingExporterContract):
    exporter = MlflowExporter
    options = MlflowOptions(tracking_uri="http://127.0.0.1:9")
