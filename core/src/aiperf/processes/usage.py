"""What processes of this machine use of it, as the system tells (proc(5))."""

from __future__ import annotations

import os
from pathlib import Path

from msgspec import Struct

STOPPED = "T"
"""The state of a process that was stopped."""


class ProcessUsage(Struct, frozen=True, array_like=True):
    """cpu_pct: share of one core since it was read before, %, None the first time.  memory_bytes: resident.

    state: a letter.
    """

    pid: int
    cpu_pct: float | None = None
    memory_bytes: int | None = None
    state: str = ""


class UsageReader:
    """Reads the processor time and the memory of processes, one time after the other."""

    def __init__(self) -> None:
        self._ticks = os.sysconf("SC_CLK_TCK")
        self._page = os.sysconf("SC_PAGE_SIZE")
        self._seen: dict[int, tuple[float, float]] = {}

    def read(self, pid: int, now_s: float) -> ProcessUsage:
        """*now_s*: monotonic.  Of a process that has ended the number alone."""
        try:
            fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
        except OSError:
            return ProcessUsage(pid)
        cpu_s = (int(fields[11]) + int(fields[12])) / self._ticks
        before_s, before_cpu_s = self._seen.get(pid, (now_s, cpu_s))
        self._seen[pid] = now_s, cpu_s
        share = (cpu_s - before_cpu_s) / (now_s - before_s) * 100 if now_s > before_s else None
        return ProcessUsage(pid, share, int(fields[21]) * self._page, fields[0].decode())
