"""The exporter with a server that is not there.  For tests, and for ``aiperf plugins validate``."""

from __future__ import annotations

import os
from unittest.mock import patch

import pytest
from aiperf.testing import SendingExporterContract, SendingStudyExporterContract

from aiperf_exporter_wandb import WandbExporter, WandbStudyExporter
from aiperf_exporter_wandb.options import LIMIT, WandbRunOptions, WandbStudyOptions

_NOBODY = {"WANDB_BASE_URL": "http://127.0.0.1:9", "WANDB_API_KEY": "0" * 40, "WANDB_MODE": "online", LIMIT: "1.5"}


class _Nobody:
    @pytest.fixture(autouse=True)
    def nobody(self):  # type: ignore[no-untyped-def]  # a generator
        with patch.dict(os.environ, _NOBODY):
            yield


class WandbContract(_Nobody, SendingExporterContract):
    exporter = WandbExporter
    options = WandbRunOptions(project="contract")


class WandbStudyContract(_Nobody, SendingStudyExporterContract):
    exporter = WandbStudyExporter
    options = WandbStudyOptions(project="contract")
