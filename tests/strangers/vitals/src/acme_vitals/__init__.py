"""The machine's load and the time of its processors, from the files of Linux."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Iterable
from pathlib import Path

from aiperf.sdk.telemetry import Absent, Point, SeriesDeclaration, SeriesKind, SeriesTable, TelemetrySource

_LOAD, _STAT = Path("/proc/loadavg"), Path("/proc/stat")
_WINDOWS, _MODES = ("1m", "5m", "15m"), ("user", "nice", "system", "idle")


class Vitals(TelemetrySource):
    interval_s = 0.05
    table = SeriesTable(
        SeriesDeclaration("machine", kind=SeriesKind.INFO, labels=("kernel", "cpus")),
        SeriesDeclaration("load", "tasks", labels=("window",), help="Tasks that ran or waited"),
        SeriesDeclaration("cpu_time", "s", SeriesKind.COUNTER, ("mode",), flows=True),
    )

    def start(self) -> None:
        if not (_LOAD.exists() and _STAT.exists()):
            raise Absent("this system has no /proc")

    def sample(self) -> Iterable[Point]:
        at_ns, ticks = time.time_ns(), os.sysconf("SC_CLK_TCK")
        yield self.table.point("machine", 1, platform.release(), str(os.cpu_count()))
        for window, load in zip(_WINDOWS, _LOAD.read_text().split(), strict=False):
            yield self.table.point("load", float(load), window, at_ns=at_ns)
        for mode, spent in zip(_MODES, _STAT.read_text().split()[1:], strict=False):
            yield self.table.point("cpu_time", int(spent) / ticks, mode, at_ns=at_ns)
