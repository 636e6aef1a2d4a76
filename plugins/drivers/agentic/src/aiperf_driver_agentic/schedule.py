"""The scheduling mode of agentic replay: no times of its own, a warmup that belongs to it, and what it refuses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aiperf import ConfigError
from aiperf.sdk.cache_bust import CacheBust
from aiperf.sdk.schedule import ScheduleContext

from aiperf_driver_agentic.options import AgenticOptions
from aiperf_driver_agentic.overflow import overflow_words

if TYPE_CHECKING:
    from aiperf.sdk.columns import Ints

_DRIVER = "agentic"
_NAME = "--scheduling-mode agentic_replay"


class AgenticReplay:
    """Lanes of recorded trees; the driver knows what is due.

    Raises:
        ConfigError: The traces are fewer than the lanes, limits rise with time, or a variable of the environment is wrong.
    """

    paced = False
    driver = _DRIVER

    def __init__(self, context: ScheduleContext) -> None:
        overflow_words()  # the workers' environment is this one's
        phase = context.phase
        if phase.concurrency_ramp_ns is not None:
            raise ConfigError(f"--concurrency-ramp-duration and {_NAME} exclude each other", "drop the ramp: lanes begin cut")
        if context.data is not None:
            _check_lanes(context, context.data.count)

    def due_block(self, first: int, count: int) -> Ints:
        import numpy as np  # 0.1 s, and a run of this mode never asks

        return np.empty(0, dtype=np.int64)


def _check_lanes(context: ScheduleContext, traces: int) -> None:
    """Refuse more lanes than traces where a server would have the second run of a trace in its cache."""
    phase, plan = context.phase, context.plan
    lanes = phase.concurrency or 1
    if lanes <= traces or plan is None:
        return
    ref = plan.plugins.drivers.get(_DRIVER)
    given: Any = None if ref is None else plan.plugins.options_of(ref)
    options: AgenticOptions = given or AgenticOptions()
    profiling = plan.load.phases[-1]
    bounded = profiling.session_count is not None or profiling.request_count is not None
    few = profiling.session_count is not None and profiling.session_count <= traces
    if options.wraps or plan.data.cache_bust is not CacheBust.NONE or few or not bounded:
        return
    raise ConfigError(
        f"--concurrency {lanes} has more lanes than there are traces ({traces}), and several would send the same texts",
        f"write --concurrency {traces} or less, add --cache-bust first_turn_prefix, or --allow-dataset-wrap",
    )
