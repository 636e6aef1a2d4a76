"""Names, titles, units and scales of the series of GPUs, as the reference has them, and the labels of a GPU."""

from __future__ import annotations

from enum import StrEnum

from aiperf.sdk.telemetry import Point, SeriesKind
from msgspec import Struct

CODE = "code"
"""The label that has the value of a code."""


class Fold(StrEnum):
    """What a phase makes of a quantity: a level has statistics over time, a growth its increase, a code is only seen."""

    LEVEL = "gauge"
    GROWTH = "counter"
    CODE = "code"


class GpuQuantity(Struct, frozen=True):
    """A quantity of a GPU.  name: of its series.  title: for people."""

    name: str
    title: str
    unit: str
    fold: Fold = Fold.LEVEL

    def point(self, value: float, labels: dict[str, str]) -> Point:
        """The quantity of the GPU with these labels.

        Growths flow: they go on without requests.  A code is an info with the label ``code``, whose value is 1: codes are seen,
        and have neither a mean nor a sum.
        """
        if self.fold is Fold.CODE:
            return Point(self.name, 1.0, SeriesKind.INFO, "", {**labels, CODE: f"{value:.0f}"}, self.title)
        growth = self.fold is Fold.GROWTH
        kind = SeriesKind.COUNTER if growth else SeriesKind.GAUGE
        return Point(self.name, value, kind, self.unit, labels, self.title, flows=growth)


def _by_name(*quantities: GpuQuantity) -> dict[str, GpuQuantity]:
    return {each.name: each for each in quantities}


NVIDIA = _by_name(
    GpuQuantity("nvidia_power_usage", "NVIDIA GPU Power Usage", "W"),
    GpuQuantity("nvidia_energy_consumption", "NVIDIA Energy Consumption", "MJ", Fold.GROWTH),
    GpuQuantity("nvidia_gpu_utilization", "NVIDIA GPU Utilization", "%"),
    GpuQuantity("nvidia_sm_clock", "NVIDIA SM Clock", "MHz"),
    GpuQuantity("nvidia_memory_clock", "NVIDIA Memory Clock", "MHz"),
    GpuQuantity("nvidia_throttle_reasons", "NVIDIA Clock Throttle Reasons", "bit mask", Fold.CODE),
    GpuQuantity("nvidia_memory_utilization", "NVIDIA Memory Utilization", "%"),
    GpuQuantity("nvidia_memory_used", "NVIDIA GPU Memory Used", "GB"),
    GpuQuantity("nvidia_temperature", "NVIDIA GPU Temperature", "°C"),
    GpuQuantity("nvidia_sm_utilization", "NVIDIA SM Utilization", "%"),
    GpuQuantity("nvidia_decoder_utilization", "NVIDIA Decoder Utilization", "%"),
    GpuQuantity("nvidia_encoder_utilization", "NVIDIA Encoder Utilization", "%"),
    GpuQuantity("nvidia_jpg_utilization", "NVIDIA JPEG Utilization", "%"),
    GpuQuantity("nvidia_xid_errors", "NVIDIA XID Errors", "count", Fold.CODE),
    GpuQuantity("nvidia_power_violation", "NVIDIA Power Violation", "us", Fold.GROWTH),
)
"""Of NVIDIA's GPUs, in the order in which files have them."""
AMD = _by_name(
    GpuQuantity("amd_power", "AMD GPU Power", "W"),
    GpuQuantity("amd_energy_consumption", "AMD Energy Consumption", "MJ", Fold.GROWTH),
    GpuQuantity("amd_gfx_activity", "AMD GFX Activity", "%"),
    GpuQuantity("amd_umc_activity", "AMD UMC Activity", "%"),
    GpuQuantity("amd_mm_activity", "AMD MM Activity", "%"),
    GpuQuantity("amd_memory_used", "AMD GPU Memory Used", "GB"),
    GpuQuantity("amd_temperature", "AMD GPU Temperature", "°C"),
    GpuQuantity("amd_ecc_uncorrectable", "AMD Uncorrectable ECC Errors", "count", Fold.GROWTH),
    GpuQuantity("amd_throttle_status", "AMD Throttle Status", "count"),
)
"""Of AMD's GPUs."""
__all__ = ["AMD", "CODE", "NVIDIA", "Fold", "GpuQuantity"]
