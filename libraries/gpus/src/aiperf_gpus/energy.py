"""Power and energy of all GPUs of a vendor over a phase or time slice."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from aiperf_gpus.fleet import Gpu, whole

VENDORS = {"nvidia": ("nvidia_power_usage", "nvidia_energy_consumption"), "amd": ("amd_power", "amd_energy_consumption")}
"""By prefix of series and metrics, the series of power and of energy."""
_USE = {"nvidia": "nvidia_gpu_utilization", "amd": "amd_gfx_activity"}
"""The series that says how much a GPU worked."""
_JOULES = 1e6
"""In a MJ."""
_WHOLE = 0.98
"""A counter that was seen for this share of the time was seen all the time."""
_IDLE_PERCENT = 1.0
"""A GPU that never worked more is idle."""


class FleetEnergy(Struct, frozen=True):
    """seconds: length of the phase or slice.  joules: drawn in it by all GPUs; None where neither counters nor power tell.

    watts: sum of their mean powers; None where none has it.  estimated: GPUs whose energy is their mean power times the time,
    because they have no counter.  unknown: GPUs with neither.  idle: GPUs that did nothing all the time; they are counted, too.
    partial: GPUs whose counter was seen for a part of the time, with its length in s: the rest of their energy is not counted.
    """

    gpus: tuple[Gpu, ...]
    seconds: float
    joules: float | None
    watts: float | None
    estimated: tuple[Gpu, ...] = ()
    unknown: tuple[Gpu, ...] = ()
    idle: tuple[Gpu, ...] = ()
    partial: tuple[tuple[Gpu, float], ...] = ()

    @property
    def average_watts(self) -> float | None:
        return None if self.joules is None or self.seconds <= 0 else self.joules / self.seconds


def energy(gpus: Sequence[Gpu], vendor: str, seconds: float | None) -> FleetEnergy | None:
    """The energy of the GPUs of a vendor, ``nvidia`` or ``amd``; None where there are none, or the time is unknown."""
    power, counter = VENDORS[vendor]
    own = [gpu for gpu in whole(gpus) if power in gpu.series or counter in gpu.series]
    if not own or seconds is None:
        return None
    joules, watts, counted = 0.0, 0.0, False
    estimated, unknown = [], []
    for gpu in own:
        total, mean = gpu.statistic(counter, "total"), gpu.statistic(power, "avg")
        watts += mean or 0.0
        if total is not None:
            joules += total * _JOULES
        elif mean is not None:
            joules += mean * seconds
            estimated.append(gpu)
        else:
            unknown.append(gpu)
            continue
        counted = True
    known = [mean for gpu in own if (mean := gpu.statistic(power, "avg")) is not None]
    idle = [gpu for gpu in own if _is_idle(gpu, vendor)]
    covered = [(gpu, _covered_s(gpu, counter)) for gpu in own]
    partial = tuple((gpu, span_s) for gpu, span_s in covered if span_s is not None and span_s < _WHOLE * seconds)
    apart = tuple(estimated), tuple(unknown), tuple(idle), partial
    return FleetEnergy(tuple(own), seconds, joules if counted else None, watts if known else None, *apart)


def _covered_s(gpu: Gpu, counter: str) -> float | None:
    """The time in s from the first to the last value of the counter; None where it doesn't grow."""
    total, rate = gpu.statistic(counter, "total"), gpu.statistic(counter, "rate")
    return total / rate if total and rate else None


def _is_idle(gpu: Gpu, vendor: str) -> bool:
    most = gpu.statistic(_USE[vendor], "max")
    return most is not None and most <= _IDLE_PERCENT


__all__ = ["VENDORS", "FleetEnergy", "energy"]
