"""The contract of telemetry sources with an AMD SMI for this one.  For tests, and for ``aiperf plugins validate``."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest
from aiperf.testing import HooksContract, TelemetryContract

from aiperf_metric_gpu_amd import GpuAmd
from aiperf_metric_gpu_amd.elsewhere import AmdElsewhere
from aiperf_metric_gpu_amd.options import AmdOptions


class _SmiError(Exception):
    pass


class _Smi(ModuleType):
    """Stands for amdsmi, with one GPU and few functions."""

    AmdSmiException = _SmiError

    def amdsmi_init(self) -> None:
        pass

    def amdsmi_shut_down(self) -> None:
        pass

    def amdsmi_get_processor_handles(self) -> list[int]:
        return [1]

    def amdsmi_get_power_info(self, handle: int) -> dict[str, Any]:
        return {"current_socket_power": 500, "average_socket_power": "N/A"}

    def amdsmi_get_energy_count(self, handle: int) -> dict[str, Any]:
        return {"energy_accumulator": 10**9, "counter_resolution": 15.3}

    def __getattr__(self, name: str) -> Any:
        def refuse(*arguments: Any) -> Any:
            raise _SmiError(name)

        if not name.startswith("amdsmi_"):
            raise AttributeError(name)
        return refuse


class GpuAmdContract(TelemetryContract):
    source = GpuAmd
    options = AmdOptions(gpu_telemetry=["amdsmi"])

    @pytest.fixture(autouse=True)
    def library(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
        """AMD SMI without a driver."""
        smi = _Smi("amdsmi")
        kinds = type("Kinds", (), {"HOTSPOT": 1, "CURRENT": 0})
        vars(smi).update(AmdSmiTemperatureType=kinds, AmdSmiTemperatureMetric=kinds)
        monkeypatch.setitem(sys.modules, "amdsmi", smi)
        yield


class AmdElsewhereContract(HooksContract):
    hooks = AmdElsewhere
