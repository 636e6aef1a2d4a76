"""The contract of the category with material for this verdict."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from aiperf import Evidence
from aiperf.sdk.columns import Floats
from aiperf.sdk.descriptor import PluginRef
from aiperf.sdk.series import Line, Moment, Sample, SeriesHeader, SourceHeader, TargetHeader, Value, Window
from aiperf.sdk.summary import SeriesSummary, SourceSummary
from aiperf.sdk.telemetry import SeriesKind
from aiperf.testing import VerdictContract, sample_evidence

from aiperf_verdict_clock_throttling import ClockThrottling

S = 1_000_000_000
LENGTH_S, RATE_HZ = 60, 3
_LABELS = {"gpu": "0", "uuid": "GPU-0", "model": "NVIDIA H100"}
_SOURCE = PluginRef("telemetry", "gpu_dcgm", "m:S", "acme", "1")


def sampled(
    clock: Callable[[float], float] | None, mask: Callable[[float], int] | None = None, idle_s: float = 0.0
) -> Evidence:
    """A run of 60 s whose GPU had this clock (MHz) and these reasons so many seconds after its begin, sampled at 3 Hz.

    Its one request begins *idle_s* later.
    """
    lines: list[Line] = [SourceHeader(_SOURCE, 1 / RATE_HZ, (TargetHeader("gpus", 1 / RATE_HZ),))]
    lines.append(SeriesHeader(0, "nvidia_sm_clock", SeriesKind.GAUGE, "MHz", _LABELS))
    lines += [
        SeriesHeader(1 + bit, "nvidia_throttle_reasons", SeriesKind.INFO, "", _LABELS | {"code": str(1 << bit if bit else 0)})
        for bit in range(8)
    ]
    last: int | None = None
    for place in range(LENGTH_S * RATE_HZ):
        values: dict[int, Value] = {} if clock is None else {0: clock(place / RATE_HZ)}
        ended = []
        if mask is not None and (code := mask(place / RATE_HZ)) != last:
            ended += [] if last is None else [1 + _place(last)]
            values[1 + _place(code)], last = 1.0, code
        lines.append(Sample(Moment(place * S // RATE_HZ, 0, 0, 0), values, ended=ended))

    def column(name: str) -> Floats:
        at_ns = {"sent_ns": idle_s * S, "ended_ns": float(LENGTH_S * S)}
        return np.array([at_ns.get(name, 0.0)])

    series = SeriesSummary("gpu_dcgm", 0, "nvidia_sm_clock", "gauge", "MHz", _LABELS, "", {"avg": 1980.0}, target="gpus")
    source = SourceSummary("gpu_dcgm", "acme", "1", 1 / RATE_HZ, LENGTH_S * RATE_HZ, 0, 0, (series,))
    return sample_evidence(
        telemetry=(source,), read_samples=lambda name: iter(lines if name == "gpu_dcgm" else ()), read_column=column,
        windows=(Window(0, 0, LENGTH_S * S),), observation_window_s=float(LENGTH_S),
    )  # fmt: skip


def _place(code: int) -> int:
    return code.bit_length() - 1 if code else 0


def lower(at_s: float) -> float:
    """A clock that is 15 % lower for 5 s."""
    return 1683.0 if 20 <= at_s < 25 else 1980.0


class ClockThrottlingContract(VerdictContract):
    """A drop with and without reasons, a steady clock, one sample, an idle GPU, and a slowdown without a clock."""

    verdict = ClockThrottling
    cases = (
        (sampled(lower, lambda at_s: 4 if 20 <= at_s < 25 else 0), ("clock_throttling",)),
        (sampled(lower), ("clock_throttling",)), (sampled(lambda at_s: 1980.0), ()),
        (sampled(lambda at_s: 1000.0 if at_s == 20 else 1980.0), ()),
        (sampled(lambda at_s: 345.0 if at_s < 30 else 1980.0, idle_s=30.0), ()),
        (sampled(lambda at_s: 1980.0 if at_s < 15 else 1700.0), ("clock_throttling",)),
        (sampled(None, lambda at_s: 32 if 20 <= at_s < 25 else 0), ("clock_throttling",)), (sample_evidence(), ()),
    )  # fmt: skip
