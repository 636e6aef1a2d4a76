"""Facts of a made-up run, as the kernel gathers them for the measurement section and for verdicts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from aiperf.rundir import journal
from aiperf.sdk.plan import PhasePlan

from aiperf_testing.pipeline import Buckets, Merged, Samples

PROFILING = PhasePlan("profiling", "profiling", 1, "burst", request_count=100)
WARMUP = PhasePlan("warmup", "warmup", 0, "burst", request_count=5)
PACED = msgspec.structs.replace(PROFILING, schedule="request_rate", rate=100.0, planned=100, due_file="due-1.bin")


def buckets(*values: float) -> Buckets:
    """Delays, or widths of intervals, in ns."""
    found = Buckets()
    found.add(np.array(values, dtype=np.float64))
    return found


def slips(path: Path, *values: float) -> Merged:
    """The client's own part of delays, in ns; *path*: a folder for their file."""
    fold = Samples(path / "slips")
    fold.add(np.array(values, dtype=np.float64))
    return Merged([fold])


def loop(cpu_ns: int, wall_ns: int, *lags: int, in_phase: bool = True, shard: int = 0, **statistics: int) -> Any:
    """A LOOP frame's event: times and lags in ns, and counters by name."""
    value = {"lag_ns": list(lags), "cpu_ns": cpu_ns, "wall_ns": wall_ns, "in_phase": in_phase, "statistics": statistics}
    own = "encode_ns", "disk_ns", "waited_ns", "throttled_ns"
    value |= {name: statistics.pop(name) for name in own if name in statistics}
    return shard, journal.LOOP, value


def begin(phase: int, shard: int = 0) -> Any:
    """The event of a phase that begins."""
    return shard, journal.PHASE, {"phase": phase, "event": "begin", "at_ns": 0}


__all__ = ["PACED", "PROFILING", "WARMUP", "begin", "buckets", "loop", "slips"]
