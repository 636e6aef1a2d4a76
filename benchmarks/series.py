"""What many telemetry series cost: behind the load, and beside it.

usage: series.py [--series N] [--samples N] [--slices SECONDS] [--runs N] [--program PATH]

A source of N series, a quarter of them counters, one in ten histograms of ten buckets, the others gauges, samples a run of 25
requests a second ten times a second.  ``--slices``: with time slices of so many seconds.  ``--program``: another ``aiperf``,
for pairs.  Times are those from the last answer to the printed summary and to the end of the program; the CPU time is that of
all processes, apart before the last answer and behind it.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import statistics
import subprocess
import tempfile
import threading
import time
from pathlib import Path
from typing import NamedTuple

from bench import machine
from ends import printed_at
from tools import Load, LoadError, Ours, profile_words, tree
from truth import truthd

_INTERVAL_S = 0.1
_RATE = 25.0
_SOURCE = f"""
import math, random
from aiperf.sdk.telemetry import Histogram, Point, SeriesKind, TelemetrySource

BOUNDS = (*(0.001 * 2**n for n in range(9)), math.inf)

class Many(TelemetrySource):
    interval_s = {_INTERVAL_S}

    def start(self):
        self.draw, self.taken = random.Random(7), 0

    def sample(self):
        self.taken += 1
        for n in range({{count}}):
            labels = {{{{"n": str(n)}}}}
            if n % 10 == 0:
                counts = tuple(self.taken * (place + 1) for place in range(10))
                yield Point("wait", Histogram(BOUNDS, counts, self.taken * 0.5), SeriesKind.HISTOGRAM, "s", labels)
            elif n % 4 == 1:
                yield Point("bytes", 1000.0 * self.taken + n, SeriesKind.COUNTER, "B", labels)
            else:
                yield Point("level", self.draw.random() * n, unit="%", labels=labels)
"""
_MANIFEST = """schema_version: 1
api: ">=1,<2"
plugins:
  - {category: telemetry, name: many, summary: Many series.}
"""


class Cost(NamedTuple):
    """Seconds: from the last answer to the printed summary and to the program's end; CPU time of all processes until the last
    answer and behind it."""

    summary_s: float
    end_s: float
    before_s: float
    behind_s: float


def install(site: Path, count: int) -> None:
    """The source's package in a folder for PYTHONPATH."""
    package, about = site / "bench_many", site / "bench_many-1.0.dist-info"
    for folder in (package, about):
        folder.mkdir(parents=True)
    (package / "__init__.py").write_text(_SOURCE.format(count=count))
    (package / "aiperf.yaml").write_text(_MANIFEST)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: bench-many\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[aiperf.telemetry]\nmany = bench_many:Many\n")
    (about / "RECORD").write_text("bench_many/__init__.py,,\nbench_many/aiperf.yaml,,\n")


class _Meter:
    """The CPU time of a process and all that descend from it, twenty times a second."""

    def __init__(self, pid: int) -> None:
        self._pid, self._over = pid, threading.Event()
        self._seen: list[tuple[float, float]] = []
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def until(self, at_s: float) -> float:
        """The time spent by the monotonic instant; ends the watch."""
        self._over.set()
        self._thread.join()
        return max((spent for seen_s, spent in self._seen if seen_s <= at_s), default=0.0)

    def _watch(self) -> None:
        while not self._over.wait(0.05):
            self._seen.append((time.monotonic(), sum(_cpu_s(pid) for pid in tree(self._pid))))


def _cpu_s(pid: int) -> float:
    """Of a process and of the children that it has waited for."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:  # it has just ended
        return 0.0
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def measured(program: str, series: int, samples: int, slices_s: float | None) -> Cost:
    """One run.

    Raises:
        LoadError: It failed, or its results lack series.
    """
    requests = math.ceil(samples * _INTERVAL_S * _RATE)
    with truthd(0, 0) as truth, tempfile.TemporaryDirectory(prefix="bench-", dir=os.environ.get("BENCH_DIR")) as folder:
        install(Path(folder) / "site", series)
        artifacts = f"{folder}/run"
        words = profile_words(program, truth.port, Load(0, requests, 8, streaming=False, rate=_RATE), artifacts, "builtin")
        words += [] if slices_s is None else ["--slice-duration", str(slices_s)]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        environment = {**os.environ, "PYTHONPATH": f"{folder}/site", "AIPERF_CACHE_DIR": f"{folder}/cache"}
        process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment)
        meter = _Meter(process.pid)
        printed = printed_at(process)
        code, ended = process.wait(), time.monotonic()
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        if code or printed is None:
            raise LoadError(f"it exits {code}")
        times = json.loads((Path(artifacts) / "journal" / "run-times.json").read_text())
        (source,) = json.loads((Path(artifacts) / "profile_export_aiperf.json").read_text())["telemetry"]
        taken, missed = source["samples"], source["missed"]
        if len(source["series"]) != series or taken + missed < 0.9 * samples or taken < missed:
            raise LoadError(f"{len(source['series'])} series of {taken} samples, {missed} were missed")
        last = times["last_answer_ns"] / 1e9
        spent, early = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, meter.until(last)
        return Cost(printed - last, ended - last, early, spent - early)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--series", type=int, default=2000, metavar="N", help="series of the source (default 2000)")
    parser.add_argument("--samples", type=int, default=600, metavar="N", help="samples in the run (default 600)")
    parser.add_argument("--slices", type=float, metavar="SECONDS", help="time slices of so long")
    parser.add_argument("--runs", type=int, default=3, metavar="N", help="runs (default 3)")
    parser.add_argument("--program", default=Ours().program, metavar="PATH", help="another aiperf")
    given = parser.parse_args()
    found = [measured(given.program, given.series, given.samples, given.slices) for _ in range(given.runs)]
    print("| | last answer to summary | to the end | CPU until the last answer | CPU behind it |\n|---|---|---|---|---|")
    for cost in found:
        print(f"| run | {cost.summary_s:.2f} s | {cost.end_s:.2f} s | {cost.before_s:.2f} s | {cost.behind_s:.2f} s |")
    middle = Cost(*(statistics.median(column) for column in zip(*found, strict=True)))
    cells = f"{middle.summary_s:.2f} s | {middle.end_s:.2f} s | {middle.before_s:.2f} s | {middle.behind_s:.2f} s"
    print(f"| median | {cells} |\n\n{given.series:,} series, {given.samples:,} samples. {machine()}.")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
