"""Cells of a study against as many ``Run.profile`` calls of another checkout, and against single runs of their seeds.

usage: cells.py BASE [--rows cost accuracy reference] [--cells N] [--pairs N] [--seeds same|vary]

BASE is the directory of a checkout with an environment of its own.  A cell has 200 requests, ten at once, against truthd.

cost: N repeats of :func:`aiperf.sweep` and N calls of ``Run.profile`` of the base, each side in a program of its own, in
alternating pairs.  Time beyond the loads is that of all cells behind the first one, which starts processes, until the last
file of the study is written, without the time from each first request to its last answer; the files of the first cell and
those of the whole study are in it.  Processor time is that of all processes, and beyond the loads without what they took
while a phase was under way.

accuracy: a cell beside a run of its seed in processes of its own, in alternating pairs of studies and runs: the median of the
errors of times to first token, by truthd's own log, and the slip of 100 requests per second.

reference: the same study by the program that AIPERF_REFERENCE names, beside ours; time beyond the loads of the whole programs.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from pairs import interval
from reader import JudgedRun
from tools import byte_tokenizer
from truth import Truth, truthd

_REQUESTS = 200
_OPTIONS = {
    "model": "m", "streaming": True, "concurrency": 10, "request_count": _REQUESTS, "tokenizer": "builtin", "isl": 32, "osl": 8,
}  # fmt: skip
_PROGRAM = """
import json, os, sys, time
import aiperf
from aiperf.run.phase import Phase

url, folder, cells, seeds, options = sys.argv[1:]
cells, options, vary = int(cells), json.loads(options), seeds == "vary"
begun, loads, calls = [], [], 0

def processor_s():
    total = time.process_time() + sum(os.times()[2:4])
    for pid in open(f"/proc/self/task/{os.getpid()}/children").read().split():
        try:
            total += time.clock_gettime((~int(pid) << 3) | 2)  # its processor time, see clock_getcpuclockid(3)
        except OSError:
            pass
    return total

def measured(run=Phase.run):
    def measure(phase):
        before = processor_s()
        run(phase)
        loads.append(processor_s() - before)
    return measure

def cell_over(run=None):
    if not begun:
        begun[:] = time.monotonic(), processor_s()
        loads.clear()

Phase.run = measured()
CALLS
took_s, cpu_s = time.monotonic() - begun[0], processor_s() - begun[1]
print(json.dumps([took_s / (cells - 1), cpu_s / (cells - 1), (cpu_s - sum(loads)) / (cells - 1)]))
"""
_CALLS = """
with aiperf.Run() as run:
    for number in range(cells):
        place = f"{folder}/profile_runs/run_{number + 1:04d}"
        run.profile(url=url, random_seed=number if vary else 1, artifact_dir=place, **options)
        cell_over()
"""
_STUDY = """
aiperf.sweep(
    url=url, random_seed=1, num_profile_runs=cells, vary_seed_per_trial=vary, artifact_dir=folder, on_cell=cell_over, **options
)
"""


def _cells(folder: Path) -> list[Path]:
    return sorted(folder.glob("profile_runs/run_????"))


def _loads_s(cells: Sequence[Path]) -> float:
    """Time from the first request to the last answer, of all cells together."""
    times = [json.loads((cell / "journal" / "run-times.json").read_text()) for cell in cells]
    return float(sum(each["last_answer_ns"] - each["begin_ns"] for each in times)) / 1e9


def _costs(python: Path, calls: str, port: int, cells: int, seeds: str) -> tuple[float, ...]:
    """Of a cell behind the first: time beyond the load in s, processor time with the load, and beyond it."""
    with tempfile.TemporaryDirectory() as folder:
        words = [str(python), "-c", _PROGRAM.replace("CALLS", calls), f"http://127.0.0.1:{port}", folder, str(cells), seeds]
        done = subprocess.run([*words, json.dumps(_OPTIONS)], stdout=subprocess.PIPE, text=True, check=True)
        wall_s, *cpu_s = json.loads(done.stdout)
        return wall_s - _loads_s(_cells(Path(folder))[1:]) / (cells - 1), *cpu_s


def cost(base: Path, cells: int, pairs: int, seeds: str) -> None:
    sides = {"calls": (base / ".venv" / "bin" / "python", _CALLS), "cells": (Path(sys.executable), _STUDY)}
    with truthd(20, 5) as truth:
        found = _alternating(sides, pairs, lambda side: _costs(*sides[side], truth.port, cells, seeds))
    for at, what in enumerate(("time beyond the load", "processor time with the load", "processor time beyond the load")):
        calls, new = ([row[at] for row in found[side]] for side in ("calls", "cells"))
        ratio = _ratio(new, calls)
        print(f"{what}: {statistics.median(calls):.3f} s a call, {statistics.median(new):.3f} s a cell; cells/calls {ratio}")


def _alternating(sides: Any, pairs: int, measure: Callable[[str], Any]) -> dict[str, list[Any]]:
    """What *measure* finds of each side, the sides in turn and each first in every second pair."""
    names = list(sides)
    found: dict[str, list[Any]] = {name: [] for name in names}
    for pair in range(pairs):
        for name in names if pair % 2 == 0 else names[::-1]:
            found[name].append(measure(name))
    return found


def _ratio(new: list[float], old: list[float]) -> str:
    ratios = sorted(a / b for a, b in zip(new, old, strict=True))
    low, high = interval(ratios)
    return f"{statistics.median(ratios):.3f} ({low:.3f}–{high:.3f}), {len(ratios)} pairs"


def _profile(program: str, port: int, folder: str, tokenizer: str, **more: Any) -> float:
    """Run ``aiperf profile``; the wall time of the program in s."""
    words = [program, "profile", "--url", f"http://127.0.0.1:{port}", "--random-seed", "1", "--artifact-dir", folder]
    options = _OPTIONS | {"endpoint_type": "chat", "ui": "none", "tokenizer": tokenizer} | more
    for name, value in options.items():
        if value is not None:
            words += [f"--{name.replace('_', '-')}", *([] if value is True else [str(value)])]
    begun_s = time.monotonic()
    done = subprocess.run(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(words)} ended with {done.returncode}: {done.stderr}")
    return time.monotonic() - begun_s


def accuracy(cells: int) -> None:
    """*cells* pairs of a cell and a run: errors of times to first token, and slip, their medians in ms."""
    program, load = str(Path(sys.executable).parent / "aiperf"), {
        "concurrency": None, "request_rate": 100, "arrival_pattern": "constant", "export_level": "raw",
    }  # fmt: skip
    found: dict[str, list[tuple[float, float]]] = {"run": [], "cell": []}
    with truthd(20, 5) as truth, tempfile.TemporaryDirectory() as folder:

        def runs(count: int) -> None:
            for _ in range(count):
                truth.reset()
                place = Path(folder, f"run-{len(found['run'])}")
                _profile(program, truth.port, str(place), "builtin", **load)
                found["run"].append(_accuracy(place, truth))

        runs(cells // 2)
        truth.reset()
        _profile(program, truth.port, folder, "builtin", num_profile_runs=cells, **load)
        found["cell"] += [_accuracy(place, truth) for place in _cells(Path(folder))]
        runs(cells - cells // 2)
    for at, what in enumerate(("error of the time to first token, p50", "slip, p50")):
        run, cell = (statistics.median(row[at] for row in found[side]) for side in ("run", "cell"))
        apart = f"{cell / run:.3f} ×, {abs(cell - run) * 1000:.1f} µs apart"
        print(f"{what}: {run:.4f} ms in a run, {cell:.4f} ms in a cell; {apart}, medians of {cells}")


def _accuracy(folder: Path, truth: Truth) -> tuple[float, float]:
    judged = JudgedRun(folder, truth.requests())
    return float(np.median(np.abs(judged.errors_ms))), judged.measurement["schedule_slip_ms"]["p50"]


def reference(cells: int, pairs: int) -> None:
    theirs = shutil.which(os.environ.get("AIPERF_REFERENCE", ""))
    if theirs is None:
        raise SystemExit("AIPERF_REFERENCE names no program")
    with truthd(20, 5) as truth, tempfile.TemporaryDirectory() as temporary:
        sides = {"reference": (theirs, str(byte_tokenizer(Path(temporary, "tokenizer")))),
                 "this": (str(Path(sys.executable).parent / "aiperf"), "builtin")}  # fmt: skip

        def beyond_s(side: str) -> float:
            """Time of the whole program without that of its loads, by truthd's log, in s a cell."""
            truth.reset()
            with tempfile.TemporaryDirectory() as folder:
                wall_s = _profile(sides[side][0], truth.port, folder, sides[side][1], num_profile_runs=cells)
            seen = truth.requests()
            received, last = (np.sort(each)[: cells * _REQUESTS].reshape(cells, -1) for each in (seen.received, seen.last))
            return (wall_s - float((last[:, -1] - received[:, 0]).sum()) / 1e9) / cells

        found = _alternating(sides, pairs, beyond_s)
    medians = {side: statistics.median(rows) for side, rows in found.items()}
    print(f"time of the program beyond the loads: {medians['reference']:.2f} s a cell of the reference,", end=" ")
    print(f"{medians['this']:.3f} s a cell; reference/this {_ratio(found['reference'], found['this'])}")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("base", type=Path)
    parser.add_argument("--rows", nargs="+", choices=("cost", "accuracy", "reference"), default=["cost"])
    parser.add_argument("--cells", type=int, default=10)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--seeds", choices=("same", "vary"), default="same")
    given = parser.parse_args()
    if "cost" in given.rows:
        cost(given.base, given.cells, given.pairs, given.seeds)
    if "accuracy" in given.rows:
        accuracy(given.cells)
    if "reference" in given.rows:
        reference(given.cells, given.pairs)
    return 0


if __name__ == "__main__":
    sys.exit(main())
