"""The worker processes as the systems of their machines see them, for snapshots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from aiperf.processes import control
from aiperf.processes.local import LocalProcess
from aiperf.processes.usage import STOPPED, ProcessUsage, UsageReader
from aiperf.run.children import Child
from aiperf.sdk.snapshot import ERROR, HEALTHY, HIGH_LOAD, IDLE, STALE, LiveWorker

_HIGH_PCT = 90.0
"""A worker with a larger share of a core has the status ``high load``."""
_FAILED_SHARE = 0.1
"""A worker with a larger share of failed requests has the status ``error``."""


class WorkerLoads:
    """The rows of workers: those of this machine are read here, those of a site are as it told them last."""

    def __init__(self) -> None:
        self._reader = UsageReader()

    def rows(
        self, workers: Sequence[Child], counters: Mapping[int, control.Counters], now_s: float, *, over: bool
    ) -> tuple[LiveWorker, ...]:  # fmt: skip
        """*over*: the load has ended, and the workers may have."""
        return tuple(self._row(each, counters.get(each.index), now_s, over=over) for each in workers)

    def _row(self, worker: Child, counter: control.Counters | None, now_s: float, *, over: bool) -> LiveWorker:
        usage = self._usage(worker, now_s)
        sent = counter or control.Counters(worker.index, 0, 0, 0, 0, 0)
        done = sent.completed + sent.errors
        died = usage is not None and not over and worker.process.poll() is not None
        if died or (done and sent.errors > _FAILED_SHARE * done):
            status = ERROR
        elif usage is not None and usage.state == STOPPED:
            status = STALE
        elif usage is not None and usage.cpu_pct is not None and usage.cpu_pct > _HIGH_PCT:
            status = HIGH_LOAD
        else:
            status = HEALTHY if sent.in_flight else IDLE
        pid, cpu_pct, memory = (None, None, None) if usage is None else (usage.pid, usage.cpu_pct, usage.memory_bytes)
        return LiveWorker(
            worker.index, status, pid, sent.in_flight, sent.completed, sent.errors, cpu_pct, memory, sent.received_bytes,
            None if worker.away is None else worker.away.site.name,
        )  # fmt: skip

    def _usage(self, worker: Child, now_s: float) -> ProcessUsage | None:
        if worker.away is not None:
            return worker.away.usage
        return self._reader.read(worker.process.pid, now_s) if isinstance(worker.process, LocalProcess) else None
