"""What pictures of a large run cost: ``aiperf plot`` over made-up columns, and over the lines of the same requests.

usage: pictures.py [--requests N] [--chunks N] [--lines] [--only NAME ...] [--python PATH] [--pairs N]

1,000,000 requests of 16 chunks, from the journal's stored columns; ``--lines`` from the per-request file, without a journal.
``--python`` is the interpreter of another checkout, whose ``aiperf plot`` then runs in turn with this one over the same files.
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

import reduce as reducing
from aiperf.registry.registry import Registry
from aiperf.rundir import journal
from msgspec.structs import replace
from reduce import Cost


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


def made(folder: Path, requests: int, chunks: int, *, lines: bool) -> Path:
    """A run's directory: with its journal, or with the per-request file alone."""
    directory = folder / "run"
    reducing.columns(directory, requests, chunks, "records" if lines else "summary")
    path = directory / "journal"
    plan, clock = journal.load_run(path)
    files: dict[str, str] = {}
    for exporter in Registry.discover().all("exporters"):
        files |= exporter.capabilities.get("files", {})
    journal.save_run(path, replace(plan, output=replace(plan.output, files=files)), clock, journal.load_end(path))
    reducing.cost(directory)
    if lines:
        shutil.rmtree(path)
    return directory


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--requests", type=int, default=1_000_000)
    parser.add_argument("--chunks", type=int, default=16, help="of each request (16)")
    parser.add_argument("--lines", action="store_true", help="read the per-request file, without a journal")
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="these pictures alone")
    parser.add_argument("--python", metavar="PATH", help="the interpreter of another checkout, to compare with")
    parser.add_argument("--pairs", type=int, default=1, help="how often each program runs (1)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="aiperf-pictures-", dir=os.environ.get("BENCH_DIR")) as name:
        directory = made(Path(name), options.requests, options.chunks, lines=options.lines)
        sides = {"here": sys.executable} | ({"there": options.python} if options.python else {})
        found: dict[str, list[Cost]] = {side: [] for side in sides}
        for _ in range(options.pairs):
            for side, python in sides.items():
                cost, count = drawn(python, directory, options.only)
                found[side].append(cost)
                print(f"{side}: {count} pictures, {cost.wall_s:.1f} s wall, {cost.cpu_s:.1f} s CPU, {cost.peak_mb:.0f} MB")
        if "there" in found:
            ratios = [mine.cpu_s / other.cpu_s for mine, other in zip(found["here"], found["there"], strict=True)]
            print(f"CPU here : there {statistics.median(ratios):.2f}")


if __name__ == "__main__":
    main()
