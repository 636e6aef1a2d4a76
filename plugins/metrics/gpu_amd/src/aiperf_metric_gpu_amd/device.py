"""An AMD GPU through amdsmi, which finds its library by ``ROCM_PATH``, or as the linker does, when it is imported."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from functools import partial
from types import ModuleType
from typing import Any, TypeAlias

from aiperf.sdk.telemetry import Point
from aiperf_gpus.series import AMD

_GB_PER_MIB = 1.048576e-3
"""The library counts memory in MiB."""
_IN_DEGREES = 26
"""Libraries from this version on give temperatures in °C, earlier ones in thousandths."""
_Read: TypeAlias = Callable[[], float | None]


class LibraryError(Exception):
    """AMD SMI can't be used; the message says why."""


def found() -> list[AmdDevice]:
    """The GPUs in the order of the library.

    Raises:
        LibraryError: There is no library, or no driver.
    """
    smi = _library()
    try:
        smi.amdsmi_init()
        handles = smi.amdsmi_get_processor_handles()
    except smi.AmdSmiException as error:
        raise LibraryError(f"the AMD driver can't be used: {_said(error)}") from error
    divisor = 1.0 if _version(smi) >= _IN_DEGREES else 1000.0
    return [AmdDevice(smi, handle, index, divisor) for index, handle in enumerate(handles)]


def close() -> None:
    smi = _library()
    with contextlib.suppress(smi.AmdSmiException):
        smi.amdsmi_shut_down()


class AmdDevice:
    """A GPU.  degrees: what a temperature of the library is divided by."""

    def __init__(self, smi: Any, handle: Any, index: int, degrees: float) -> None:
        self._smi, self._handle, self._degrees = smi, handle, degrees
        uuid, model, bdf = self._text(smi.amdsmi_get_gpu_device_uuid), "", self._text(smi.amdsmi_get_gpu_device_bdf)
        with contextlib.suppress(smi.AmdSmiException):
            model = str(smi.amdsmi_get_gpu_asic_info(handle)["market_name"])
        known = {
            "gpu": str(index), "uuid": uuid or f"GPU-unknown-{index}", "model": model, "platform": "amd", "pci_bus_id": bdf,
            "hostname": "localhost",
        }  # fmt: skip
        self.labels = {name: text for name, text in known.items() if text}

    def points(self) -> Iterator[Point]:
        """What it tells now.  ``N/A`` leaves out a series."""
        reads: dict[str, _Read] = {
            "amd_power": self._power, "amd_energy_consumption": self._energy,
            **{f"amd_{name}": partial(self._activity, name) for name in ("gfx_activity", "umc_activity", "mm_activity")},
            "amd_memory_used": self._memory, "amd_temperature": self._temperature,
            "amd_ecc_uncorrectable": self._errors, "amd_throttle_status": self._throttled,
        }  # fmt: skip
        for name, read in reads.items():
            with contextlib.suppress(self._smi.AmdSmiException, KeyError):
                value = read()
                if value is not None and value >= 0:
                    yield AMD[name].point(value, self.labels)

    def _power(self) -> float | None:
        info = self._smi.amdsmi_get_power_info(self._handle)
        current = _number(info["current_socket_power"])
        return _number(info["average_socket_power"]) if current is None else current

    def _energy(self) -> float | None:
        """In MJ; the library counts in steps of so many µJ.  Before version 6.4 the steps were called ``power``."""
        info = self._smi.amdsmi_get_energy_count(self._handle)
        steps = _number(info.get("energy_accumulator", info.get("power")))
        resolution = _number(info["counter_resolution"])
        return None if steps is None or resolution is None else steps * resolution * 1e-12

    def _activity(self, name: str) -> float | None:
        return _number(self._smi.amdsmi_get_gpu_activity(self._handle)[name])

    def _memory(self) -> float | None:
        used = _number(self._smi.amdsmi_get_gpu_vram_usage(self._handle)["vram_used"])
        return None if used is None else used * _GB_PER_MIB

    def _temperature(self) -> float | None:
        """Temperature of the junction, which the library calls hotspot, too."""
        kinds = self._smi.AmdSmiTemperatureType
        sensor = kinds.JUNCTION if hasattr(kinds, "JUNCTION") else kinds.HOTSPOT
        read = self._smi.amdsmi_get_temp_metric(self._handle, sensor, self._smi.AmdSmiTemperatureMetric.CURRENT)
        value = _number(read)
        return None if value is None else value / self._degrees

    def _errors(self) -> float | None:
        return _number(self._smi.amdsmi_get_gpu_total_ecc_count(self._handle)["uncorrectable_count"])

    def _throttled(self) -> float | None:
        status = self._smi.amdsmi_get_gpu_metrics_info(self._handle)["throttle_status"]
        return None if status == "N/A" else float(bool(status))

    def _text(self, call: Callable[[Any], Any]) -> str:
        try:
            return str(call(self._handle))
        except self._smi.AmdSmiException:
            return ""


def _library() -> Any:
    """
    Raises:
        LibraryError: amdsmi, or its library, is not installed.
    """
    try:
        import amdsmi
    except ModuleNotFoundError as error:
        raise LibraryError("amdsmi is not installed: pip install 'aiperf-suite[amd]'") from error
    except (OSError, KeyError, AttributeError) as error:  # it binds every function of the library at import
        raise LibraryError("this machine has no libamd_smi.so, or one of another version than amdsmi") from error
    module: ModuleType = amdsmi
    return module


def _version(smi: Any) -> int:
    try:
        return int(smi.amdsmi_get_lib_version()["major"])
    except (smi.AmdSmiException, KeyError, ValueError):
        return _IN_DEGREES


def _number(value: Any) -> float | None:
    """None for ``N/A``."""
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _said(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__


__all__ = ["AmdDevice", "LibraryError", "close", "found"]
