"""The sentence on GPUs whose clocks were held down."""

from __future__ import annotations

import numpy as np
from aiperf import Evidence
from aiperf.sdk.verdict import CERTAIN, LIKELY, POSSIBLE
from msgspec import Struct
from numpy.typing import NDArray

from aiperf_verdict_clock_throttling.drops import LEAST_DROP, LEAST_S, ClockDrops, drops
from aiperf_verdict_clock_throttling.gpu_samples import IDLE, GpuSamples, gpu_samples

REASONS = {
    0x2: "the setting of application clocks", 0x4: "the limit of power", 0x8: "a slowdown by the hardware",
    0x10: "sync boost with another GPU", 0x20: "the temperature (driver)", 0x40: "the temperature (hardware)",
    0x80: "the external power brake", 0x100: "the setting of display clocks",
}  # fmt: skip
"""By bit of NVML's clocks event reasons."""
_SLOWDOWNS = 0x8 | 0x20 | 0x40 | 0x80
"""Reasons that are none in ordinary work, also where no clock is known."""


class Throttling(Struct, frozen=True):
    sentence: str
    confidence: float
    numbers: dict[str, int | float]


class _Slow(Struct, frozen=True):
    """A GPU and its drops; reasons: seen meanwhile, as a mask, -1 where there are none to see; held_s: by power violations."""

    gpu: GpuSamples
    drops: ClockDrops
    reasons: int
    held_s: float | None


def told(evidence: Evidence) -> Throttling | None:
    """The drops of all GPUs in one finding; None without any."""
    gpus = gpu_samples(evidence)
    looks = sum(len(gpu.at_s) for gpu in gpus)
    slow = [one for gpu in gpus if (one := _slow(gpu, looks)) is not None]
    if slow:
        return _clocks(evidence, max(slow, key=lambda one: one.drops.share * one.drops.seconds), slow)
    unclocked = [(gpu, *_held(gpu)) for gpu in gpus if np.isnan(gpu.clock).all()]
    held = [each for each in unclocked if each[1] >= LEAST_S]
    return _without_clocks(*max(held, key=lambda one: one[1]), len(held)) if held else None


def _slow(gpu: GpuSamples, looks: int) -> _Slow | None:
    known = gpu.chosen(~np.isnan(gpu.clock) & (gpu.clock > 0))
    found = drops(known.at_s, known.clock, looks)
    if not found.drops:
        return None
    rows = np.zeros(len(known.at_s), dtype=bool)
    held_us = 0.0
    for drop in found.drops:
        rows[drop.first : drop.last + 1] = True
        before = max(0, drop.first - 1)
        held_us += max(0.0, float(known.violation_us[drop.last] - known.violation_us[before]))
    seen = known.reasons[rows]
    mask = int(np.bitwise_or.reduce(seen[seen >= 0])) if (seen >= 0).any() else -1
    return _Slow(known, found, mask, held_us / 1e6 if np.isfinite(held_us) else None)


def _clocks(evidence: Evidence, worst: _Slow, slow: list[_Slow]) -> Throttling:
    found, gpu = worst.drops, worst.gpu
    first, last = found.drops[0], found.drops[-1]
    length_s = evidence.summary.observation_window_s or float(gpu.at_s[-1])
    lower = found.usual * (1 - found.share)
    others = f" (and of {len(slow) - 1} more)" if len(slow) > 1 else ""
    times = "" if len(found.drops) == 1 else f" in {len(found.drops)} parts"
    why, confidence, unknown = _why(worst)
    sentence = (
        f"the SM clock of {gpu.title}{others} was {100 * found.share:.0f} % lower, {lower:,.0f} instead of {found.usual:,.0f}"
        f" MHz, for {found.seconds:.1f} of {length_s:.0f} s{times}, from {gpu.at_s[first.first]:.1f} to"
        f" {gpu.at_s[last.last]:.1f} s: {why}. Latencies of that time are those of a slower GPU: check its cooling and its"
        " limit of power, and measure again"
    )
    if unknown:
        sentence += f"; not known: {', '.join(unknown)}"
    numbers: dict[str, int | float] = {
        "drop_pct": 100 * found.share, "usual_mhz": found.usual, "low_mhz": lower, "lasted_s": found.seconds,
        "from_s": float(gpu.at_s[first.first]), "until_s": float(gpu.at_s[last.last]), "gpus": len(slow),
    }  # fmt: skip
    if worst.reasons >= 0:
        numbers["reasons"] = worst.reasons
    if worst.held_s is not None:
        numbers["power_violation_s"] = worst.held_s
    return Throttling(sentence, confidence, numbers)


def _why(slow: _Slow) -> tuple[str, float, list[str]]:
    """The reason, how sure it is, and what is not known."""
    names = [text for bit, text in REASONS.items() if slow.reasons >= 0 and slow.reasons & bit]
    if names:
        return f"held down by {' and '.join(names)}, as the driver says", CERTAIN, []
    if slow.held_s is not None and slow.held_s >= LEAST_S:
        return f"its limit of power held it down for {slow.held_s:.1f} s", CERTAIN, []
    if slow.reasons >= 0:
        return "the driver gave no reason", POSSIBLE, []
    return "something held it down", LIKELY, ["the driver's reasons"]


def _held(gpu: GpuSamples) -> tuple[float, str]:
    """How long something held the clock down, by what is known beside it, and what that was."""
    if len(gpu.at_s) < 2:
        return 0.0, ""
    interval_s = float(np.median(np.diff(gpu.at_s)))
    marked: NDArray[np.bool_] = (gpu.reasons >= 0) & (gpu.reasons & _SLOWDOWNS > 0)
    if marked.any():
        mask = int(np.bitwise_or.reduce(gpu.reasons[marked])) & ~IDLE
        return float(marked.sum()) * interval_s, " and ".join(text for bit, text in REASONS.items() if mask & bit & _SLOWDOWNS)
    if (gpu.status > 0).any():
        return float((gpu.status > 0).sum()) * interval_s, "its throttle status says so"
    known = gpu.violation_us[~np.isnan(gpu.violation_us)]
    grown_s = float(np.maximum(0.0, np.diff(known)).sum()) / 1e6 if len(known) > 1 else 0.0
    return (grown_s, "the limit of power") if grown_s >= LEAST_DROP * float(gpu.at_s[-1] - gpu.at_s[0]) else (0.0, "")


def _without_clocks(gpu: GpuSamples, seconds: float, why: str, count: int) -> Throttling:
    others = f" (and of {count - 1} more)" if count > 1 else ""
    sentence = (
        f"the clock of {gpu.title}{others} was held down for {seconds:.1f} s while it worked: {why}. Latencies of that time are"
        " those of a slower GPU: check its cooling and its limit of power, and measure again; not known: its clock"
    )
    return Throttling(sentence, LIKELY, {"lasted_s": seconds, "gpus": count})
