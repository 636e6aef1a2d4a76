"""The fields of DCGM that have a series, with what turns their values into the series' unit."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from aiperf_gpus.series import NVIDIA, GpuQuantity


class Field(NamedTuple):
    quantity: GpuQuantity
    scale: float = 1.0


_KNOWN = {
    "DEV_POWER_USAGE": ("nvidia_power_usage", 1.0), "DEV_TOTAL_ENERGY_CONSUMPTION": ("nvidia_energy_consumption", 1e-9),
    "DEV_GPU_UTIL": ("nvidia_gpu_utilization", 1.0), "DEV_SM_CLOCK": ("nvidia_sm_clock", 1.0),
    "DEV_MEM_CLOCK": ("nvidia_memory_clock", 1.0), "DEV_CLOCK_THROTTLE_REASONS": ("nvidia_throttle_reasons", 1.0),
    "DEV_CLOCKS_EVENT_REASONS": ("nvidia_throttle_reasons", 1.0), "DEV_MEM_COPY_UTIL": ("nvidia_memory_utilization", 1.0),
    "DEV_FB_USED": ("nvidia_memory_used", 1.048576e-3), "DEV_GPU_TEMP": ("nvidia_temperature", 1.0),
    "PROF_SM_ACTIVE": ("nvidia_sm_utilization", 100.0), "DEV_DEC_UTIL": ("nvidia_decoder_utilization", 1.0),
    "DEV_ENC_UTIL": ("nvidia_encoder_utilization", 1.0), "DEV_XID_ERRORS": ("nvidia_xid_errors", 1.0),
    "DEV_POWER_VIOLATION": ("nvidia_power_violation", 1e-3),
}  # fmt: skip
_FIELDS = {f"DCGM_FI_{name}": Field(NVIDIA[series], scale) for name, (series, scale) in _KNOWN.items()}


def fields(files: Iterable[str] = ()) -> dict[str, Field]:
    """The fields by their names on a page, with those of files of further metrics; what has a series keeps it.

    Raises:
        ValueError: A file can't be read, or has a bad line.
    """
    custom: list[dict[str, GpuQuantity]] = []
    for file in files:
        from aiperf_gpus.custom import read_custom  # few runs have one

        custom.append(read_custom(Path(file)))
    return {name: Field(quantity) for found in custom for name, quantity in found.items()} | _FIELDS


__all__ = ["Field", "fields"]
