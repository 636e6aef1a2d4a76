"""The contract of telemetry sources with a page for this one.  For tests, and for ``aiperf plugins validate``."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator

import pytest
from aiperf.testing import TelemetryContract

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


class _Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; version=0.0.4")
        self.send_header("Content-Length", str(len(PAGE)))
        self.end_headers()
        self.wfile.write(PAGE)

    def log_message(self, format: str, *arguments: object) -> None:  # the library's name
        pass


class GpuDcgmContract(TelemetryContract):
    source = GpuDcgm

    @pytest.fixture(autouse=True)
    def page(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
        """An exporter, which the source asks."""
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Page)
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        monkeypatch.setattr(type(self), "options", DcgmOptions(gpu_telemetry=[f"127.0.0.1:{server.server_address[1]}"]))
        monkeypatch.setenv("AIPERF_GPU_DEFAULT_DCGM_ENDPOINTS", "")
        yield
        server.shutdown()
        server.server_close()
