"""Cells of a sweep against as many ``Run.profile`` calls of another checkout: time and processor time beyond the loads.

usage: cells.py BASE [--cells N] [--pairs N] [--seeds same|vary]

BASE is the directory of a checkout with an environment of its own.  Each side runs so many plans of 200 requests in a program
of its own, in alternating pairs against truthd.  Time beyond the loads is that of the plans behind the first one, which starts
processes, from its begin to the end of its last file, without the time from its first request to its last answer.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from pairs import interval
from truth import truthd

_REQUESTS = 200
_CALLS = """
import json, os, sys, time
import aiperf

url, folder, cells, seeds = sys.argv[1:]

def processor_s():
    own = os.times()
    total = own.user + own.system + own.children_user + own.children_system
    for pid in open(f"/proc/self/task/{os.getpid()}/children").read().split():
        fields = open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()
        total += sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    return total

with aiperf.Run() as run:
    for number in range(int(cells)):
        if number == 1:
            begun, cpu = time.monotonic(), processor_s()
        run.profile(
            model="m", url=url, streaming=True, concurrency=10, request_count=REQUESTS, tokenizer="builtin", isl=32, osl=8,
            random_seed=number if seeds == "vary" else 1, artifact_dir=f"{folder}/{number}",
        )
    print(json.dumps([time.monotonic() - begun, processor_s() - cpu]))
"""
_CELLS = """
import contextlib, json, os, sys, time
from aiperf.cli.from_code import _settings, unchanged
from aiperf.run.fleet import Fleet
from aiperf.run.run import measure

url, folder, cells, seeds = sys.argv[1:]

PROCESSOR
with contextlib.closing(Fleet(kept=True)) as fleet:
    for number in range(int(cells)):
        if number == 1:
            fleet.finish_files()
            begun, cpu = time.monotonic(), processor_s()
        options = dict(
            model="m", url=url, streaming=True, concurrency=10, request_count=REQUESTS, tokenizer="builtin", isl=32, osl=8,
            random_seed=number if seeds == "vary" else 1, artifact_dir=f"{folder}/{number}",
        )
        settings, registry = _settings([], options, console=False)
        with unchanged(settings) as signals:
            measured = measure(settings, registry, signals, fleet, console=False, later=True)
        fleet.files_of(measured, lambda measured, error: None)
        fleet.settle(0, lambda seconds: True)
    fleet.finish_files()
    print(json.dumps([time.monotonic() - begun, processor_s() - cpu]))
""".replace("PROCESSOR", _CALLS[_CALLS.index("def processor_s") : _CALLS.index("with aiperf")])


def _beyond(python: Path, program: str, port: int, cells: int, seeds: str) -> tuple[float, float]:
    """Seconds beyond the load, and of processor time with the load, of a cell behind the first."""
    with tempfile.TemporaryDirectory() as folder:
        code = program.replace("REQUESTS", str(_REQUESTS))
        words = [str(python), "-c", code, f"http://127.0.0.1:{port}", folder, str(cells), seeds]
        done = subprocess.run(words, capture_output=True, text=True, check=True)
        wall_s, cpu_s = json.loads(done.stdout)
        loads_s = 0.0
        for number in range(1, cells):
            times = json.loads(Path(folder, str(number), "journal", "run-times.json").read_text())
            loads_s += (times["last_answer_ns"] - times["begin_ns"]) / 1e9
    return (wall_s - loads_s) / (cells - 1), cpu_s / (cells - 1)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("base", type=Path)
    parser.add_argument("--cells", type=int, default=10)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--seeds", choices=("same", "vary"), default="same")
    given = parser.parse_args()
    sides = {"calls": (given.base / ".venv" / "bin" / "python", _CALLS), "cells": (Path(sys.executable), _CELLS)}
    found: dict[str, list[tuple[float, float]]] = {"calls": [], "cells": []}
    with truthd(20, 5) as truth:
        for pair in range(given.pairs):
            for side in ("calls", "cells") if pair % 2 == 0 else ("cells", "calls"):
                found[side].append(_beyond(*sides[side], truth.port, given.cells, given.seeds))
    for at, what in enumerate(("time beyond the load", "processor time, load included")):
        calls, cells = ([row[at] for row in found[side]] for side in ("calls", "cells"))
        ratios = sorted(new / old for new, old in zip(cells, calls, strict=True))
        low, high = interval(ratios)
        print(f"{what}: {statistics.median(calls):.3f} s a call, {statistics.median(cells):.3f} s a cell;", end=" ")
        print(f"cells/calls {statistics.median(ratios):.3f} ({low:.3f}–{high:.3f}), {given.pairs} pairs of {given.cells}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
