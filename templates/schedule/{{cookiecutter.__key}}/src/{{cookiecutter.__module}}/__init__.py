"""The {{ cookiecutter.name }} schedule: a rate that grows evenly from nothing, then stays.

``--{{ cookiecutter.__word }}-seconds`` chooses it: the hook hands it to the kernel in the place of the schedule that a phase with
a rate would have.
"""

from __future__ import annotations

import numpy as np
from aiperf import ConfigError, PhasePlan, Plan, Schedule, ScheduleContext, hookimpl
from numpy.typing import NDArray

from {{ cookiecutter.__module }}.options import RampOptions

_FLAG = "--{{ cookiecutter.__word }}-seconds"


class {{ cookiecutter.__class }}:
    """Grows for *ramp_s* seconds to the phase's rate.

    Raises:
        ConfigError: The phase has no rate.
    """

    paced = True

    def __init__(self, context: ScheduleContext, ramp_s: float = 10.0) -> None:
        rate = context.phase.rate
        if rate is None:
            raise ConfigError(f"{_FLAG} needs a rate to grow to", "give --request-rate")
        self._rate, self._ramp_s = rate, ramp_s

    def due_block(self, first: int, count: int) -> NDArray[np.int64]:
        """Due times from a closed form: until the top the number sent is rate * t**2 / (2 * ramp), so errors can't pile up."""
        n = np.arange(first + 1, first + count + 1, dtype=np.float64)
        growing_s = np.sqrt(2.0 * self._ramp_s * n / self._rate)
        steady_s = n / self._rate + self._ramp_s / 2.0
        due_s = np.where(n <= self._rate * self._ramp_s / 2.0, growing_s, steady_s)
        due: NDArray[np.int64] = np.rint(due_s * 1e9).astype(np.int64)
        return due


class {{ cookiecutter.__class }}Hooks:
    """Offers the schedule where its option was given.  *options* is set before the first call."""

    options: RampOptions

    @hookimpl
    def aiperf_make_schedule(self, plan: Plan, phase: PhasePlan) -> Schedule | None:
        ramp_s = self.options.ramp_s
        if ramp_s is None:
            return None
        return {{ cookiecutter.__class }}(ScheduleContext(plan.run.seed, phase), ramp_s)
