"""The limit of open files: raised as far as this user may, and refused where it is too low for a load."""

from __future__ import annotations

import resource

from aiperf.errors import ConfigError
from aiperf.sdk.plan import Plan

_LEAST_FILES = 256
"""Files that a run, or a site of one, must be allowed to open."""
_OWN_FILES = 64
"""Open files of a worker beside its connections."""


def raise_limit() -> None:
    """Allow this process and those that it starts as many open files as the system lets this user have.

    Raises:
        ConfigError: That is too few for any run.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < _LEAST_FILES:
        raise ConfigError(f"the limit of open files is {hard}; {_LEAST_FILES} are needed", "raise it: ulimit -n 4096")
    if soft < hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def check(plan: Plan, workers: int) -> None:
    """Refuse a closed loop with more connections than its *workers*, which this machine has, may open.

    Raises:
        ConfigError: It has more.
    """
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    free = [phase for phase in plan.load.phases if plan.plugins.fact("schedules", phase.schedule, "follows") == "free_slots"]
    concurrency = max((phase.concurrency or 0 for phase in free), default=0)
    needed = -(-concurrency // workers) + _OWN_FILES
    if needed > hard:
        where = "the worker" if workers == 1 else f"each of {workers} workers"
        message = f"concurrency {concurrency} needs {needed} open files in {where}; the limit is {hard}"
        raise ConfigError(message, f"raise it: ulimit -n {needed}, or use more workers")
