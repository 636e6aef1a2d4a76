"""The conformance suite: a plugin's test file names its class, its transcript, and is done.

Needs pytest, which the kernel itself doesn't.
"""

from aiperf.testing.batches import absent, sample_batch, scored
from aiperf.testing.datasets import DatasetContract
from aiperf.testing.endpoints import EndpointContract
from aiperf.testing.engines import ShardEngineContract
from aiperf.testing.exporters import BatchExporterContract
from aiperf.testing.graders import Case, GraderContract
from aiperf.testing.metrics import MetricContract
from aiperf.testing.server import Scripted
from aiperf.testing.summaries import SummaryExporterContract, sample_summary
from aiperf.testing.telemetry import TelemetryContract
from aiperf.testing.tokenizers import TokenizerContract
from aiperf.testing.transports import TransportContract
from aiperf.testing.uis import UiContract

__all__ = [
    "BatchExporterContract",
    "Case",
    "DatasetContract",
    "EndpointContract",
    "GraderContract",
    "MetricContract",
    "Scripted",
    "ShardEngineContract",
    "SummaryExporterContract",
    "TelemetryContract",
    "TokenizerContract",
    "TransportContract",
    "UiContract",
    "absent",
    "sample_batch",
    "sample_summary",
    "scored",
]
