"""The exporter with a server that is not there.  For tests, and for ``aiperf plugins validate``."""

from __future__ import annotations

import os
from unittest.mock import patch

import pytest
from aiperf.testing import SendingExporterContract

from aiperf_exporter_wandb import WandbExporter
from aiperf_exporter_wandb.options import LIMIT, WandbOptions

_NOBODY = {"WANDB_BASE_URL": "http://127.0.0.1:9", "WANDB_API_KEY": "0" * 40, "WANDB_MODE": "online", LIMIT: "3"}


class WandbContract(SendingExporterContract):
    exporter = WandbExporter
    options = WandbOptions(project="contract")

    @pytest.fixture(autouse=True)
    def nobody(self):  # type: ignore[no-untyped-def]  # a generator
        with patch.dict(os.environ, _NOBODY):
            yield
