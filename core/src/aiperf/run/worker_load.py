"""The worker processes as the system sees them, for snapshots."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from aiperf.processes import control
from aiperf.processes.local import LocalProcess
from aiperf.run.children import Child
from aiperf.sdk.snapshot import ERROR, HEALTHY, HIGH_LOAD, IDLE, STALE, LiveWorker

_HIGH_PCT = 90.0
"""A worker with a larger share of a core has the status ``high load``."""
_FAILED_SHARE = 0.1
"""A worker with a larger share of failed requests has the status ``error``."""


class WorkerLoads:
    """Reads the processor time and the memory of local processes."""

    def __init__(self) -> None:
        self._ticks = os.sysconf("SC_CLK_TCK")
        self._page = os.sysconf("SC_PAGE_SIZE")
        self._seen: dict[int, tuple[float, float]] = {}

    def rows(
        self, workers: Sequence[Child], counters: Mapping[int, control.Counters], now_s: float, *, over: bool
    ) -> tuple[LiveWorker, ...]:  # fmt: skip
        """*over*: the load has ended, and the workers may have."""
        return tuple(self._row(each, counters.get(each.index), now_s, over=over) for each in workers)

    def _row(self, worker: Child, counter: control.Counters | None, now_s: float, *, over: bool) -> LiveWorker:
        process = worker.process
        pid = process.pid if isinstance(process, LocalProcess) else None
        cpu_pct, memory, state = (None, None, "") if pid is None else self._read(pid, now_s)
        sent = counter or control.Counters(worker.index, 0, 0, 0, 0, 0)
        done = sent.completed + sent.errors
        died = pid is not None and not over and process.poll() is not None
        if died or (done and sent.errors > _FAILED_SHARE * done):
            status = ERROR
        elif state == "T":
            status = STALE
        elif cpu_pct is not None and cpu_pct > _HIGH_PCT:
            status = HIGH_LOAD
        else:
            status = HEALTHY if sent.in_flight else IDLE
        return LiveWorker(
            worker.index, status, pid, sent.in_flight, sent.completed, sent.errors, cpu_pct, memory, sent.received_bytes
        )

    def _read(self, pid: int, now_s: float) -> tuple[float | None, int | None, str]:
        """Share of a core since the last call (%), resident bytes, state; proc(5)."""
        try:
            fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
        except OSError:
            return None, None, ""
        cpu_s = (int(fields[11]) + int(fields[12])) / self._ticks
        before_s, before_cpu_s = self._seen.get(pid, (now_s, cpu_s))
        self._seen[pid] = now_s, cpu_s
        share = (cpu_s - before_cpu_s) / (now_s - before_s) * 100 if now_s > before_s else None
        return share, int(fields[21]) * self._page, fields[0].decode()
