"""The contract of telemetry sources with a page for this one.  For tests, and for ``aiperf plugins validate``."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from aiperf.testing import TelemetryContract
from aiperf_metric_server_metrics.contract import serving

from aiperf_metric_gpu_dcgm import GpuDcgm
from aiperf_metric_gpu_dcgm.options import DcgmOptions

_GPU = 'gpu="0",UUID="GPU-1",pci_bus_id="00000000:01:00.0",device="nvidia0",modelName="NVIDIA H100",Hostname="node"'
PAGE = f"""\
# HELP DCGM_FI_DEV_POWER_USAGE Power draw (in W).
# TYPE DCGM_FI_DEV_POWER_USAGE gauge
DCGM_FI_DEV_POWER_USAGE{{{_GPU}}} 312.5
# HELP DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION Total energy consumption since boot (in mJ).
# TYPE DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION counter
DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{{{_GPU}}} 5000000000
# HELP DCGM_FI_DEV_XID_ERRORS Value of the last XID error encountered.
# TYPE DCGM_FI_DEV_XID_ERRORS gauge
DCGM_FI_DEV_XID_ERRORS{{{_GPU}}} 0
""".encode()


class GpuDcgmContract(TelemetryContract):
    source = GpuDcgm

    @pytest.fixture(autouse=True)
    def page(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
        """An exporter, which the source asks."""
        monkeypatch.setenv("AIPERF_GPU_DEFAULT_DCGM_ENDPOINTS", "")
        with serving(PAGE) as place:
            monkeypatch.setattr(type(self), "options", DcgmOptions(gpu_telemetry=[place]))
            yield
