"""The contract of telemetry sources with a driver's library for this one.  For tests, and for ``aiperf plugins validate``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pynvml
import pytest
from aiperf.testing import HooksContract, TelemetryContract

from aiperf_metric_gpu_nvml import GpuNvml
from aiperf_metric_gpu_nvml.elsewhere import NvmlElsewhere
from aiperf_metric_gpu_nvml.options import NvmlOptions

_VALUES = {"nvmlDeviceGetCount_v2": 1, "nvmlDeviceGetPowerUsage": 300_000, "nvmlDeviceGetTotalEnergyConsumption": 5_000_000}
"""What functions give, by name; others are not in the library."""


class _Library:
    """Stands for the ``ctypes.CDLL`` of a driver with one GPU and few functions."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name in ("nvmlInitWithFlags", "nvmlShutdown", "nvmlDeviceGetHandleByIndex_v2"):
            return lambda *arguments: 0
        if name == "nvmlErrorString":
            return lambda error: b"made up"
        if name not in _VALUES:
            raise AttributeError(name)

        def give(*arguments: Any) -> int:
            arguments[-1]._obj.value = _VALUES[name]
            return 0

        return give


class GpuNvmlContract(TelemetryContract):
    source = GpuNvml
    options = NvmlOptions(gpu_telemetry=["pynvml"])

    @pytest.fixture(autouse=True)
    def library(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
        """A library in the place of the driver's."""
        monkeypatch.setattr(pynvml, "nvmlLib", _Library())
        monkeypatch.setattr(pynvml, "_nvmlGetFunctionPointer_cache", {})
        yield


class NvmlElsewhereContract(HooksContract):
    hooks = NvmlElsewhere
