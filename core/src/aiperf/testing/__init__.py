"""The conformance suite: a plugin's test file names its class, its transcript, and is done.

Needs pytest, which the kernel itself doesn't.
"""

import pkgutil

import pytest

# Before they are imported: a check that fails then shows what it compared.
pytest.register_assert_rewrite(*(f"{__name__}.{module.name}" for module in pkgutil.iter_modules(__path__)))

from aiperf.testing.arrivals import ArrivalsContract  # noqa: E402
from aiperf.testing.batches import absent, sample_batch, scored  # noqa: E402
from aiperf.testing.commands import CommandContract  # noqa: E402
from aiperf.testing.datasets import DatasetContract  # noqa: E402
from aiperf.testing.definitions import DefinitionContract  # noqa: E402
from aiperf.testing.endpoints import EndpointContract  # noqa: E402
from aiperf.testing.engines import ShardEngineContract  # noqa: E402
from aiperf.testing.exporters import BatchExporterContract, DatasetExporterContract  # noqa: E402
from aiperf.testing.graders import Case, GraderContract  # noqa: E402
from aiperf.testing.hooks import HooksContract  # noqa: E402
from aiperf.testing.metrics import (  # noqa: E402
    AnalysisContract,
    MetricContract,
    MetricFamilyContract,
    RunMetricContract,
)
from aiperf.testing.plots import PlotContract, sample_runs  # noqa: E402
from aiperf.testing.ramps import RampContract  # noqa: E402
from aiperf.testing.samplers import SamplerContract  # noqa: E402
from aiperf.testing.schedules import ScheduleContract  # noqa: E402
from aiperf.testing.server import Expect, Scripted, Send, answer  # noqa: E402
from aiperf.testing.summaries import SummaryExporterContract, sample_summary  # noqa: E402
from aiperf.testing.telemetry import TelemetryContract  # noqa: E402
from aiperf.testing.tokenizers import TokenizerContract  # noqa: E402
from aiperf.testing.transports import Stage, TransportContract  # noqa: E402
from aiperf.testing.uis import UiContract  # noqa: E402
from aiperf.testing.url_strategies import UrlStrategyContract  # noqa: E402

__all__ = [
    "AnalysisContract",
    "ArrivalsContract",
    "BatchExporterContract",
    "Case",
    "CommandContract",
    "DatasetContract",
    "DatasetExporterContract",
    "DefinitionContract",
    "EndpointContract",
    "Expect",
    "GraderContract",
    "HooksContract",
    "MetricContract",
    "MetricFamilyContract",
    "PlotContract",
    "RampContract",
    "RunMetricContract",
    "SamplerContract",
    "ScheduleContract",
    "Scripted",
    "Send",
    "ShardEngineContract",
    "Stage",
    "SummaryExporterContract",
    "TelemetryContract",
    "TokenizerContract",
    "TransportContract",
    "UiContract",
    "UrlStrategyContract",
    "absent",
    "answer",
    "sample_batch",
    "sample_runs",
    "sample_summary",
    "scored",
]
