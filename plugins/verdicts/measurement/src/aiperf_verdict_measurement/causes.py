"""What delayed the workers, and what to do."""

from __future__ import annotations

from aiperf import Evidence
from aiperf.sdk.model import names
from aiperf.sdk.verdict import WorkerTime

CPU_PCT = 90.0
"""A worker busier than this is suspect, and explains delays."""
THROTTLED_PCT = 1.0
"""A cgroup that used up its CPU limit for more of the time is suspect."""
ENCODE_PCT, WAIT_PCT, DISK_PCT = 10.0, 1.0, 50.0
"""Shares of a worker's time in which it encoded requests, waited for a core, or wrote the journal, that explain delays."""
WAIT_SHARE = 0.2
"""A machine is busy where a worker waits for a core for more than this share of its time on a core, too."""


def cause(evidence: Evidence) -> str:
    """The cause, and what to do; "" where nothing delayed the workers."""
    worst = _worst(evidence)
    if worst.throttled_pct > THROTTLED_PCT:
        return "the CPU limit of this program's cgroup was used up meanwhile: raise it, or leave it out"
    if worst.encode_pct > ENCODE_PCT:
        coders, several = names(evidence.preparers), len(evidence.preparers) > 1
        step = "AIPERF_TRACE_HOOKS=1 shows which of them is slow" if several else "make it faster"
        took = f"took {worst.encode_pct:.0f} % of a worker's time to prepare requests"
        return f"{coders}{' together' if several else ''} {took}: {step}"
    if worst.cpu_pct > CPU_PCT:
        more = f"use more workers (--workers {evidence.plan.run.workers + 1})"
        return f"a worker used {worst.cpu_pct:.0f} % of its core: {more}"
    if worst.disk_pct > DISK_PCT:
        return f"the disk took {worst.disk_pct:.0f} % of the time to write the journal: put --artifact-dir on a faster one"
    if worst.waited_pct > max(WAIT_PCT, WAIT_SHARE * worst.cpu_pct):
        lag = evidence.summary.measurement.loop_lag_ms
        late = "" if lag is None else f" (loop lag {lag.p99:.3g} ms at p99)"
        waited = f"a worker waited for a core for {worst.waited_pct:.0f} % of its time{late}"
        return f"{waited}: other programs keep this machine busy"
    return ""


def no_cause(evidence: Evidence) -> str:
    """The finding that the workers ran freely, with their lag and CPU."""
    lag = evidence.summary.measurement.loop_lag_ms
    late = "" if lag is None else f"loop lag {lag.p99:.3g} ms at p99"
    busy = f"a worker at {_worst(evidence).cpu_pct:.0f} % of its core" if evidence.workers else ""
    seen = " and ".join(filter(None, (late, busy)))
    return f"the client ran freely{f' ({seen})' if seen else ''}: the server or the network sent them close together"


def _worst(evidence: Evidence) -> WorkerTime:
    """The greatest share of any worker, of each kind of time."""
    fields = WorkerTime.__struct_fields__
    return WorkerTime(*(max((getattr(worker, name) for worker in evidence.workers), default=0.0) for name in fields))
