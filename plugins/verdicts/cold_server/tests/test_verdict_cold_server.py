"""The verdict cold_server keeps its contract."""

from __future__ import annotations

from aiperf_verdict_cold_server.contract import ColdServerContract


class TestItKeepsTheContract(ColdServerContract):
    pass
