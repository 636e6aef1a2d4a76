"""How many processes a run needs, from its load."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from aiperf import environment
from aiperf.findings import Findings
from aiperf.plan import PhasePlan

if TYPE_CHECKING:
    from aiperf.options import KernelOptions

RATE_PER_WORKER = 20_000
"""Requests/s that one worker carries with time to spare."""
SESSIONS_PER_WORKER = 5_000


def processes(findings: Findings, phases: Sequence[PhasePlan]) -> tuple[int, int]:
    """Workers and reducers; ``AIPERF_WORKERS`` forces a number of workers.

    A fixed schedule has one worker: how much it asks for is only known when the trace has been read.
    """
    with findings.collected():
        return _processes(findings.kernel, phases)
    return 1, 1


def _processes(kernel: KernelOptions, phases: Sequence[PhasePlan]) -> tuple[int, int]:
    limits = [level for phase in phases for level in (phase.concurrency, phase.prefill_concurrency) if level is not None]
    users = [phase.users for phase in phases if phase.users is not None]
    sessions = max([phase.concurrency or 0 for phase in phases] + users)
    rate = max(_most_rate(phase) for phase in phases)
    wanted = max(math.ceil(rate / RATE_PER_WORKER), math.ceil(sessions / SESSIONS_PER_WORKER))
    share, cap = environment.worker_cpu_share(), environment.workers_cap()
    most = kernel.workers_max or min(math.floor(share * cpus()) - 1, cap)
    # A worker without a session to run would only be in the way.
    workers = max(1, min([wanted, most, *limits, *users]))
    forced = environment.whole("AIPERF_WORKERS", 1, 1024)
    if forced is not None:
        workers = forced if kernel.workers_max is None else min(forced, kernel.workers_max)
    reducers = kernel.record_processors or math.ceil(workers / environment.workers_per_reducer())
    return workers, min(workers, reducers)


def _most_rate(phase: PhasePlan) -> float:
    return phase.rate or max((rate for _, rate in phase.rate_series or ()), default=0.0)


def cpus() -> int:
    """CPUs this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
