"""What a person waits for behind the load: from the last answer to the printed summary, and to the end of the program.

usage: ends.py [--requests N ...] [--streams N ...] [--memory] [--runs N]

``--requests``: counts of plain requests of 32 tokens over 64 connections, each with a generated prompt of its own.
``--streams``: counts of streams of 256 chunks.  ``--memory``: the peak memory (summed PSS) of each, too, which slows a run.
truthd serves; the times of the last answer and of the begin of the load are those of the run's own journal.
"""

from __future__ import annotations

import argparse
import json
import os
import selectors
import statistics
import subprocess
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from bench import machine
from tools import Load, LoadError, Ours, Watch, profile_words
from truth import truthd

_SUMMARY = "Delivered load"
"""The summary's first line behind its tables."""


class Ends(NamedTuple):
    """Seconds: from the program's start to the first request; of the load; from its last answer to the printed summary, and to
    the program's end; the CPU time of all processes.  peak_mb: None where it was not watched."""

    begin_s: float
    load_s: float
    summary_s: float
    end_s: float
    cpu_s: float
    peak_mb: float | None


def measured(load: Load, entries: int, *, memory: bool) -> Ends:
    """One run.

    Raises:
        LoadError: It failed.
    """
    with truthd(0, 0) as truth, tempfile.TemporaryDirectory(prefix="bench-", dir=os.environ.get("BENCH_DIR")) as folder:
        words = profile_words(Ours().program, truth.port, load, folder, "builtin")
        words[words.index("--num-dataset-entries") + 1] = str(entries)
        words[words.index("--isl") + 1] = "32"
        before, began = os.times(), time.monotonic()
        process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        watch = Watch(process.pid) if memory else None
        printed = printed_at(process)
        code, ended = process.wait(), time.monotonic()
        after, peak_mb = os.times(), watch.end() if watch else None
        seen = truth.stats()
        if code or seen["completed"] != load.requests or printed is None:
            raise LoadError(f"it exits {code}; the server completed {seen['completed']} of {load.requests}")
        times = json.loads((Path(folder) / "journal" / "run-times.json").read_text())
        last, cpu_s = times["last_answer_ns"] / 1e9, sum(after[2:4]) - sum(before[2:4])  # one monotonic clock
        begin = times["begin_ns"] / 1e9
        return Ends(begin - began, last - begin, printed - last, ended - last, cpu_s, peak_mb)


def printed_at(process: subprocess.Popen[bytes], line: str = _SUMMARY) -> float | None:
    """The monotonic time at which the program printed *line*; None where it ends without."""
    assert process.stdout is not None
    found, text = None, b""
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while True:
            selector.select()
            piece = os.read(process.stdout.fileno(), 1 << 16)
            if not piece:
                return found
            text = (text + piece)[-(1 << 17) :]
            if found is None and line.encode() in text:
                found = time.monotonic()


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--requests", nargs="+", type=int, default=[], metavar="N", help="plain requests")
    parser.add_argument("--streams", nargs="+", type=int, default=[], metavar="N", help="streams of 256 chunks")
    parser.add_argument("--memory", action="store_true", help="peak memory, too")
    parser.add_argument("--runs", type=int, default=3, help="runs of each (default 3)")
    options = parser.parse_args()
    loads = [(f"{count:,} plain requests", Load(64, count, 32, streaming=False), count) for count in options.requests]
    loads += [(f"{count:,} streams of 256 chunks", Load(64, count, 256), 1000) for count in options.streams]
    print("| load | start to first request | load | last answer to summary | to the end | CPU, all processes | peak memory |")
    print("|---|---|---|---|---|---|---|")
    for what, load, entries in loads:
        found = [measured(load, entries, memory=options.memory) for _ in range(options.runs)]
        begin, took, summary, end, cpu = (statistics.median(column) for column in list(zip(*found, strict=True))[:5])
        peaks = [one.peak_mb for one in found if one.peak_mb is not None]
        peak = f"{statistics.median(peaks):,.0f} MB" if peaks else "–"
        print(f"| {what} | {begin:.2f} s | {took:.2f} s | {summary:.2f} s | {end:.2f} s | {cpu:.2f} s | {peak} |", flush=True)
    print(f"\n{machine()}. Median of {options.runs}.")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
