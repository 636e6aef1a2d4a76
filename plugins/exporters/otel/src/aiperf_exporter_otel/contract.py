"""The companion with a collector that is not there, and the hooks.  For tests, and for ``aiperf plugins validate``."""

from __future__ import annotations

from aiperf.testing import CompanionContract, HooksContract

from aiperf_exporter_otel.batches import OtelBatches
from aiperf_exporter_otel.options import StreamOptions
from aiperf_exporter_otel.streaming import OtelStream


class OtelStreamContract(CompanionContract):
    companion = OtelStream
    options = StreamOptions(url="http://127.0.0.1:9/v1/metrics")


class OtelBatchesContract(HooksContract):
    hooks = OtelBatches
