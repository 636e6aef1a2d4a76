"""A GPU, or a MIG instance of one, through the library of the NVIDIA driver (NVML)."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeAlias

import pynvml
from aiperf.sdk.errors import AiperfError
from aiperf.sdk.telemetry import Point
from aiperf_gpus.series import NVIDIA

_INSTEAD = "drop it, or name a DCGM exporter, --gpu-telemetry HOST:9400"
_LOST = (pynvml.NVML_ERROR_GPU_IS_LOST, pynvml.NVML_ERROR_UNINITIALIZED, pynvml.NVML_ERROR_RESET_REQUIRED)
_UNKNOWN = (1 << 32) - 1
"""A reading that the driver doesn't have."""
_Read: TypeAlias = Callable[[], float | None]


def driver() -> None:
    """Open the driver's library.

    Raises:
        AiperfError: There is none, or it can't be used.
    """
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError_LibraryNotFound as error:
        what = "this machine has no library of an NVIDIA driver (libnvidia-ml.so.1)"
        raise AiperfError(f"--gpu-telemetry pynvml: {what}; {_INSTEAD}") from error
    except pynvml.NVMLError as error:
        raise AiperfError(f"--gpu-telemetry pynvml: the NVIDIA driver can't be used: {error}; {_INSTEAD}") from error


def found() -> list[Device]:
    """The GPUs of the driver by index, each with its MIG instances behind it."""
    devices = []
    for index in range(_value(pynvml.nvmlDeviceGetCount) or 0):
        handle = _value(pynvml.nvmlDeviceGetHandleByIndex, index)
        if handle is None:
            continue
        gpu = Device(handle, _labels(handle, index))
        devices += [gpu, *_instances(gpu)]
    return devices


def close(devices: Iterable[Device]) -> None:
    """Release what the devices hold, and the driver's library."""
    for device in devices:
        device.close()
    with contextlib.suppress(pynvml.NVMLError):
        pynvml.nvmlShutdown()


class Device:
    """labels: of all its points.  whole: it is a GPU, not an instance of one."""

    def __init__(self, handle: Any, labels: dict[str, str], *, whole: bool = True) -> None:
        self.handle, self.labels, self.whole = handle, labels, whole
        self._busy = SmBusy(handle) if whole else None
        self._reads = dict(self._whole() if whole else self._part())
        self._absent: set[str] = set()
        """Quantities that this GPU or driver doesn't have: they are not asked again."""

    def points(self) -> Iterator[Point]:
        """What it tells now; nothing where it is lost."""
        for name, read in self._reads.items():
            if name in self._absent:
                continue
            try:
                value = read()
            except pynvml.NVMLError as error:
                if error.value in _LOST:
                    return
                if isinstance(error, pynvml.NVMLError_NotSupported | pynvml.NVMLError_FunctionNotFound):
                    self._absent.add(name)
                continue
            if value is not None and value >= 0:
                yield NVIDIA[name].point(value, self.labels)

    def close(self) -> None:
        if self._busy is not None:
            self._busy.close()

    def _whole(self) -> Iterator[tuple[str, _Read]]:
        handle = self.handle
        yield "nvidia_power_usage", lambda: _known(pynvml.nvmlDeviceGetPowerUsage(handle), 1e-3)
        yield "nvidia_energy_consumption", lambda: pynvml.nvmlDeviceGetTotalEnergyConsumption(handle) * 1e-9
        yield "nvidia_gpu_utilization", lambda: _known(pynvml.nvmlDeviceGetUtilizationRates(handle).gpu)
        yield "nvidia_memory_utilization", lambda: _known(pynvml.nvmlDeviceGetUtilizationRates(handle).memory)
        yield "nvidia_sm_clock", lambda: _known(pynvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_SM))
        yield "nvidia_memory_clock", lambda: _known(pynvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_MEM))
        yield "nvidia_throttle_reasons", lambda: _throttle_reasons(handle)
        yield from self._part()
        sensor = pynvml.NVML_TEMPERATURE_GPU
        yield "nvidia_temperature", lambda: _known(pynvml.nvmlDeviceGetTemperature(handle, sensor))
        if self._busy is not None:
            yield "nvidia_sm_utilization", self._busy.percent
        yield "nvidia_decoder_utilization", lambda: _known(pynvml.nvmlDeviceGetDecoderUtilization(handle)[0])
        yield "nvidia_encoder_utilization", lambda: _known(pynvml.nvmlDeviceGetEncoderUtilization(handle)[0])
        yield "nvidia_jpg_utilization", lambda: _known(pynvml.nvmlDeviceGetJpgUtilization(handle)[0])
        policy = pynvml.NVML_PERF_POLICY_POWER
        yield "nvidia_power_violation", lambda: pynvml.nvmlDeviceGetViolationStatus(handle, policy).violationTime * 1e-3

    def _part(self) -> Iterator[tuple[str, _Read]]:
        """What an instance has by itself."""
        yield "nvidia_memory_used", lambda: _memory_used(self.handle) * 1e-9


class SmBusy:
    """Share of the SMs that were busy since the call before, in percent: by samples of the GPU's counters (GPM), where it has
    them (from Hopper on), else the sum of its processes, at most 100."""

    def __init__(self, handle: Any) -> None:
        self._handle = handle
        self._samples: list[Any] = []
        self._sampled = False
        self._seen_us = 0
        support = _value(pynvml.nvmlGpmQueryDeviceSupport, handle)
        if support is not None and support.isSupportedDevice:
            with contextlib.suppress(pynvml.NVMLError):
                self._samples = [pynvml.nvmlGpmSampleAlloc(), pynvml.nvmlGpmSampleAlloc()]

    def percent(self) -> float | None:
        """None for the first call."""
        return self._by_counters() if len(self._samples) == 2 else self._by_processes()

    def close(self) -> None:
        samples, self._samples = self._samples, []
        for sample in samples:
            with contextlib.suppress(pynvml.NVMLError):
                pynvml.nvmlGpmSampleFree(sample)

    def _by_counters(self) -> float | None:
        before, now = self._samples
        pynvml.nvmlGpmSampleGet(self._handle, now)
        self._samples, sampled, self._sampled = [now, before], self._sampled, True
        if not sampled:
            return None
        question = pynvml.c_nvmlGpmMetricsGet_t()
        question.version, question.numMetrics = pynvml.NVML_GPM_METRICS_GET_VERSION, 1
        question.sample1, question.sample2 = before, now
        question.metrics[0].metricId = pynvml.NVML_GPM_METRIC_SM_UTIL
        answer = pynvml.nvmlGpmMetricsGet(question).metrics[0]
        return min(100.0, float(answer.value)) if answer.nvmlReturn == pynvml.NVML_SUCCESS else None

    def _by_processes(self) -> float | None:
        try:
            samples = pynvml.nvmlDeviceGetProcessUtilization(self._handle, self._seen_us)
        except pynvml.NVMLError_NotFound:  # no process ran since
            return 0.0
        seen_us, self._seen_us = self._seen_us, max([self._seen_us, *(each.timeStamp for each in samples)])
        latest: dict[int, Any] = {}
        for each in sorted(samples, key=lambda sample: int(sample.timeStamp)):
            latest[each.pid] = each
        return min(100.0, float(sum(each.smUtil for each in latest.values()))) if seen_us else None


def _instances(gpu: Device) -> Iterator[Device]:
    """The MIG instances of a GPU."""
    mode = _value(pynvml.nvmlDeviceGetMigMode, gpu.handle)
    if not mode or mode[0] != pynvml.NVML_DEVICE_MIG_ENABLE:
        return
    for number in range(_value(pynvml.nvmlDeviceGetMaxMigDeviceCount, gpu.handle) or 0):
        handle = _value(pynvml.nvmlDeviceGetMigDeviceHandleByIndex, gpu.handle, number)
        if handle is None:
            continue
        instance = _value(pynvml.nvmlDeviceGetGpuInstanceId, handle)
        mig = str(number if instance is None else instance)
        yield Device(handle, {**gpu.labels, "mig": mig}, whole=False)


def _labels(handle: Any, index: int) -> dict[str, str]:
    pci = _value(pynvml.nvmlDeviceGetPciInfo, handle)
    known = {
        "gpu": str(index), "uuid": _text(_value(pynvml.nvmlDeviceGetUUID, handle)) or f"GPU-unknown-{index}",
        "model": _text(_value(pynvml.nvmlDeviceGetName, handle)), "platform": "nvidia",
        "pci_bus_id": "" if pci is None else _text(pci.busId), "device": f"nvidia{index}", "hostname": "localhost",
    }  # fmt: skip
    return {name: text for name, text in known.items() if text}


def _memory_used(handle: Any) -> float:
    """Bytes in use, without what the driver keeps for itself, as ``nvidia-smi`` shows them; with it in old drivers."""
    try:
        return float(pynvml.nvmlDeviceGetMemoryInfo(handle, pynvml.nvmlMemory_v2).used)
    except (pynvml.NVMLError_FunctionNotFound, pynvml.NVMLError_ArgumentVersionMismatch):
        return float(pynvml.nvmlDeviceGetMemoryInfo(handle).used)


def _throttle_reasons(handle: Any) -> float:
    try:
        return float(pynvml.nvmlDeviceGetCurrentClocksEventReasons(handle))
    except pynvml.NVMLError_FunctionNotFound:  # before driver 535
        return float(pynvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle))


def _value(call: Callable[..., Any], *arguments: Any) -> Any:
    """What a call gives; None where it fails."""
    try:
        return call(*arguments)
    except pynvml.NVMLError:
        return None


def _known(reading: float, scale: float = 1.0) -> float | None:
    return None if reading == _UNKNOWN else reading * scale


def _text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value or "")


__all__ = ["Device", "SmBusy", "close", "driver", "found"]
