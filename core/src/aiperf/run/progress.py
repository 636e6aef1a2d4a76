"""Lines of progress in the log: how often."""

from __future__ import annotations

import sys

from aiperf import environment
from aiperf.foreign import NO_DISPLAY
from aiperf.planning.kernel_options import KernelOptions
from aiperf.sdk.plan import PhasePlan, Plan


def log_every_s(kernel: KernelOptions, plan: Plan, *, console: bool) -> float:
    """Seconds between lines of progress; 0 for none.

    Without ``--stats-interval`` there are lines where nothing else shows the run: on a console that is no terminal, without a
    display.
    """
    if kernel.stats_interval_s is not None:
        return kernel.stats_interval_s
    shown = plan.plugins.ui is not None and plan.plugins.ui.name != NO_DISPLAY
    if kernel.quiet or not console or shown or sys.stderr.isatty():
        return 0.0
    return environment.log_progress_s()


def phase_every_s(every_s: float, phase: PhasePlan) -> float:
    """Seconds between lines of progress in the phase; 0 for none.  A warmup has lines anyway, and may have them more often."""
    if phase.kind != "warmup":
        return every_s
    return min(every_s or environment.warmup_log_s(), environment.warmup_log_s())
