"""What pictures of a large run cost: ``aiperf plot`` over made-up columns, and over the lines of the same requests.

usage: pictures.py [--requests N] [--chunks N] [--only NAME ...] [--before PYTHON] [--pairs N]

1,000,000 requests of 16 chunks at a rate, a thousandth of which failed, with slices and samples of a GPU and a server: every
picture of one run.  First from the journal's stored columns, then without the journal.  ``--before`` is the interpreter of an
earlier checkout: both draw the three pictures that it has of 100,000 requests, in turn.
The numbers are those of the whole program, start included: wall and CPU time, and its largest resident size.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import reduce as reducing
from aiperf.parts.samples import SampleWriter, sample_path
from aiperf.registry.registry import Registry
from aiperf.rundir import journal
from aiperf.sdk.series import Moment, SourceHeader
from aiperf.sdk.telemetry import Point, SeriesKind
from msgspec.structs import replace
from reduce import Cost

if TYPE_CHECKING:
    from bench import Bench

_CHUNKS, _SLICES, _SAMPLES = 16, 60, 600
_BOTH = ("ttft_over_time", "ttft_distribution", "latency_distribution")
"""Pictures of one run that the version of 441896d6 draws, too."""


def drawn(python: str, directory: Path, names: list[str]) -> tuple[Cost, int]:
    """What all pictures of a run, or those of *names*, cost, and how many they are."""
    output = directory.parent / "pictures"
    shutil.rmtree(output, ignore_errors=True)
    words = [python, "-m", "aiperf", "plot", str(directory), "--output", str(output)]
    words += [word for name in names for word in ("--only", name)]
    began = time.monotonic()
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, words)
    cost = Cost(time.monotonic() - began, used.ru_utime + used.ru_stime, used.ru_maxrss / 1e3)
    return cost, len(list(output.glob("*.png")))


def made(folder: Path, requests: int, chunks: int) -> Path:
    """A run's directory: with its journal and its files, so many arrivals at a rate, slices, samples of a GPU and a server."""
    directory = folder / "run"
    reducing.columns(directory, requests, chunks, "records", rated=True)
    path = directory / "journal"
    plan, clock = journal.load_run(path)
    files: dict[str, str] = {}
    for exporter in Registry.discover().all("exporters"):
        files |= exporter.capabilities.get("files", {})
    seconds = requests // 64 * 0.7
    output = replace(plan.output, files=files, slice_ns=round(seconds / _SLICES * 1e9))
    (phase,) = plan.load.phases
    paced = replace(phase, schedule="request_rate", pattern="constant", rate=requests / seconds, concurrency=None)
    changed = replace(plan, output=output, load=replace(plan.load, phases=(paced,)))
    journal.save_run(path, changed, clock, journal.load_end(path))
    sampled(path, clock, seconds)
    reducing.cost(directory)
    return directory


def sampled(path: Path, clock: journal.RunClock, seconds: float) -> None:
    """Samples of a GPU and a server, beside the load."""
    registry = Registry.discover()
    points = [Point("nvidia_gpu_utilization", 90.0, SeriesKind.GAUGE, "%", {"gpu_uuid": "GPU-0"}),
              Point("nvidia_power_usage", 300.0, SeriesKind.GAUGE, "W", {"gpu_uuid": "GPU-0"}),
              Point("vllm:num_requests_running", 64.0, SeriesKind.GAUGE)]  # fmt: skip
    header = SourceHeader(registry.ref("telemetry", registry.all("telemetry")[0].name), 1.0)
    writer = SampleWriter(sample_path(path, 0), header)
    for number in range(_SAMPLES):
        at_ns = round(seconds * 1e9 * number / _SAMPLES)
        writer.add(points, Moment(clock.started_mono_ns + at_ns, clock.started_wall_ns + at_ns, 0, 0))
    writer.close()


def without_journal(directory: Path) -> None:
    shutil.rmtree(directory / "journal")


def pictures(bench: Bench) -> None:
    """``aiperf plot`` of a made-up run; beside an earlier version where ``AIPERF_BEFORE`` names its interpreter."""
    what = "all pictures of 1,000,000 requests, one PNG each, from the journal: CPU time"
    ours, stored = "this", bench.row("pictures", what, "s", 20)
    peak = bench.row("pictures-memory", "the same: largest resident size", "MB", 1000, digits=0)
    lines = bench.row("pictures-lines", "the same from the lines, without a journal: CPU time", "s", 60)
    with tempfile.TemporaryDirectory(prefix="aiperf-pictures-", dir=os.environ.get("BENCH_DIR")) as name:
        directory = made(Path(name), round(1_000_000 * bench.scale), _CHUNKS)
        for row in (stored, lines):
            for _ in range(bench.runs):
                cost, count = drawn(sys.executable, directory, [])
                row.add(ours, cost.cpu_s)
                row.notes[ours] = f"{count} pictures"
                peak.add(ours, cost.peak_mb if row is stored else None)
            if row is stored:
                without_journal(directory)
    if before := os.environ.get("AIPERF_BEFORE"):
        share = bench.row("pictures-before", "three pictures of 100,000 requests: CPU time beside the version before", "×", 0.5)
        share.digits = 2
        for ratio in beside(before, round(100_000 * bench.scale), bench.runs):
            share.add(ours, ratio)


def beside(python: str, requests: int, pairs: int) -> list[float]:
    """CPU time of the pictures that both versions draw, here by there, of each of so many alternating pairs."""
    found = []
    with tempfile.TemporaryDirectory(prefix="aiperf-pictures-", dir=os.environ.get("BENCH_DIR")) as name:
        directory = made(Path(name), requests, _CHUNKS)
        without_journal(directory)
        for _ in range(pairs):
            here, there = (drawn(each, directory, [*_BOTH])[0].cpu_s for each in (sys.executable, python))
            print(f"here {here:.2f} s, there {there:.2f} s of CPU", file=sys.stderr)
            found.append(here / there)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--requests", type=int, default=1_000_000)
    parser.add_argument("--chunks", type=int, default=_CHUNKS, help=f"of each request ({_CHUNKS})")
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="these pictures alone")
    parser.add_argument("--before", metavar="PYTHON", help="pairs with another checkout's interpreter, of 100,000 requests")
    parser.add_argument("--pairs", type=int, default=3, help="how many (3)")
    options = parser.parse_args()
    if options.before:
        ratios = beside(options.before, min(100_000, options.requests), options.pairs)
        print(f"CPU here : there {statistics.median(ratios):.2f} ({min(ratios):.2f}-{max(ratios):.2f})")
        return
    with tempfile.TemporaryDirectory(prefix="aiperf-pictures-", dir=os.environ.get("BENCH_DIR")) as name:
        directory = made(Path(name), options.requests, options.chunks)
        for source in ("journal", "lines"):
            cost, count = drawn(sys.executable, directory, options.only)
            print(f"{source}: {count} pictures, {cost.wall_s:.1f} s wall, {cost.cpu_s:.1f} s CPU, {cost.peak_mb:.0f} MB")
            if source == "journal":
                without_journal(directory)


if __name__ == "__main__":
    main()
