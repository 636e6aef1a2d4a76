"""The scheduling mode with a request rate."""

from __future__ import annotations

import numpy as np
from aiperf import ConfigError
from aiperf.sdk.columns import Floats, Ints
from aiperf.sdk.draws import BLOCK
from aiperf.sdk.schedule import ScheduleContext

from aiperf_schedule_standard.arrivals import poisson_gaps
from aiperf_schedule_standard.ramps import RateCurve, linear, ramped_rate


class RequestRate:
    """Arrivals at a mean rate, which may change over time; the first arrival is one gap after the phase's start.

    Gaps are summed in units of the mean gap, and the rate's curve maps the sums to times once, so that nothing drifts.

    Raises:
        ConfigError: The phase has no rate.
    """

    paced = True

    def __init__(self, context: ScheduleContext) -> None:
        self.context = context
        self._curve = _rate_curve(context)
        # By name, not by index: profiling draws the same whether or not a warmup ran before it.
        self._stream = f"arrivals:{context.phase.name}"
        self._gaps = context.gaps or poisson_gaps
        self._starts = [0.0]
        self._cached: tuple[int, Floats] | None = None

    def due_block(self, first: int, count: int) -> Ints:
        pieces = [np.empty(0)]
        for block in range(first // BLOCK, (first + count + BLOCK - 1) // BLOCK):
            low = max(0, first - block * BLOCK)
            pieces.append(self._sums(block)[low : first + count - block * BLOCK])
        due: Ints = np.rint(self._curve.due_ns(np.concatenate(pieces))).astype(np.int64)
        return due

    def _sums(self, block: int) -> Floats:
        """Running sums of the gaps of a block, continued from the blocks before."""
        if self._cached is not None and self._cached[0] == block:
            return self._cached[1]
        while len(self._starts) <= block:
            self._starts.append(float(self._sums(len(self._starts) - 1)[-1]))
        context = self.context
        drawn = self._gaps(context.seed, self._stream, block, BLOCK, context.phase.smoothness)
        sums: Floats = self._starts[block] + np.cumsum(drawn)
        self._cached = block, sums
        return sums


def _rate_curve(context: ScheduleContext) -> RateCurve:
    phase = context.phase
    if phase.rate_series is not None:
        return RateCurve([at_s for at_s, _ in phase.rate_series], [rate for _, rate in phase.rate_series])
    if phase.rate is None:
        raise ConfigError(f"the request_rate schedule of the phase {phase.name!r} needs a rate", "give --request-rate")
    if phase.rate_ramp_ns:
        return ramped_rate(context.ramp or linear, phase.rate_ramp_ns, phase.rate)
    return RateCurve([0.0], [phase.rate])
