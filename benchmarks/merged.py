"""A worker that is frozen reads merged segments: do the bounds of its statistics hold what truthd knows, and how wide are they?

usage: merged.py [--runs N] [--json]

In each run the worker is stopped several times while it reads streams (SIGSTOP, SIGCONT).  truthd has the time between each two
chunks that it sent.  Its mean and p99 of the inter-chunk latency and of the time to the second token must lie within
``lower`` and ``upper`` of the report, give or take CLOCK_MS: truthd stamps a chunk before it calls the kernel, which stamps it
when it arrives.  The bounds must be no wider than the freezes imply: of a percentile, the longest freeze and two gaps; of the
mean, that for every freeze and stream over the number of gaps.  A freeze ends when the worker runs again, which a busy machine
puts off: the longest is the longer one of the stop itself and the loop's greatest lag.  A first content that was merged came
after its request was sent, so the first gap may be longer by the server's time to it.  Exits with 1 where one of them fails.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

from bench import machine
from tools import Load, LoadError, Ours, profile_words
from truth import truthd

TTFT_MS, ITL_MS = 60, 5
STREAMS, REQUESTS, TOKENS = 8, 160, 40
FREEZES, SHORTEST_S, LONGEST_S = 6, 0.03, 0.3
CLOCK_MS = 0.05
LAG_EVERY_MS = 50
"""The worker's loop looks for its lag so often; a stop that begins in between is that much longer."""
TAGS = {"inter_chunk_latency": "icl_ms", "time_to_second_token": "ttst_ms"}


class Figure(NamedTuple):
    """A statistic of one run, in ms: the truth, the report's bounds and main value, and the width that the freezes imply."""

    tag: str
    statistic: str
    truth: float
    lower: float
    main: float
    upper: float
    most_width: float

    @property
    def holds(self) -> bool:
        return self.lower - CLOCK_MS <= self.truth <= self.upper + CLOCK_MS

    @property
    def narrow(self) -> bool:
        return self.upper - self.lower <= self.most_width


def frozen_run(seed: int) -> tuple[list[Figure], int]:
    """The figures of one run, and the chunks that were merged."""
    with truthd(TTFT_MS, ITL_MS) as server, tempfile.TemporaryDirectory(prefix="bench-") as folder:
        words = profile_words(Ours().program, server.port, Load(STREAMS, REQUESTS, TOKENS), folder, "builtin")
        process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        frozen_s = freeze(process, random.Random(seed), lambda: int(server.stats()["requests"]))
        _, errors = process.communicate(timeout=300)
        path = Path(folder) / "profile_export_aiperf.json"
        if process.returncode or not path.exists():
            raise LoadError(errors)
        report, truth = json.loads(path.read_text()), server.stats()
    figures = []
    for tag, name in TAGS.items():
        entry: dict[str, Any] = report[tag]
        lower, upper = entry.get("lower", entry), entry.get("upper", entry)
        lag_ms = report["measurement"]["loop_lag_ms"]["max"] + LAG_EVERY_MS
        longest = max(1000 * max(frozen_s, default=0.0), lag_ms) + 2 * ITL_MS
        if tag == "time_to_second_token":
            longest += TTFT_MS
        widths = {"avg": len(frozen_s) * longest * STREAMS / entry["count"], "p99": longest}
        figures += [
            Figure(tag, which, truth[name][which], lower[which], entry[which], upper[which], width)
            for which, width in widths.items()
        ]
    return figures, int(report["measurement"]["coalesced_chunks"])


def freeze(process: subprocess.Popen[str], draws: random.Random, answered: Any) -> list[float]:
    """Stop the workers FREEZES times while they have requests; how long each time, in s."""
    until = time.monotonic() + 60
    while not answered() and process.poll() is None and time.monotonic() < until:
        time.sleep(0.02)
    lasted = []
    for _ in range(FREEZES):
        time.sleep(draws.uniform(0.05, 0.35))
        stopped = [worker for worker in workers(process.pid) if signalled(worker, signal.SIGSTOP)]
        began = time.monotonic()
        time.sleep(draws.uniform(SHORTEST_S, LONGEST_S))
        for worker in stopped:
            signalled(worker, signal.SIGCONT)
        lasted.append(time.monotonic() - began)
    return lasted


def workers(parent: int) -> list[int]:
    """The worker processes of a run, by its own process id."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            stat, words = (folder / "stat").read_text(), (folder / "cmdline").read_bytes()
        except OSError:  # it has ended meanwhile
            continue
        if int(stat.rpartition(")")[2].split()[1]) == parent and b"aiperf.worker" in words:
            found.append(int(folder.name))
    return found


def signalled(process: int, number: signal.Signals) -> bool:
    try:
        os.kill(process, number)
    except ProcessLookupError:
        return False
    return True


def main() -> int:
    parser = argparse.ArgumentParser(description="bounds around merged reads against a server that knows the truth")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    runs = [frozen_run(seed) for seed in range(given.runs)]
    figures = [figure for run, _ in runs for figure in run]
    if given.json:
        print(json.dumps({"machine": machine(), "runs": [[figure._asdict() for figure in run] for run, _ in runs]}, indent=2))
    else:
        print(f"{given.runs} runs, {sum(merged for _, merged in runs):,} merged chunks\n")
        print("| statistic | within the bounds | no wider than the freezes | widest | main value off by, median |")
        print("|---|---|---|---|---|")
        for tag in TAGS:
            for which in ("avg", "p99"):
                print(line([figure for figure in figures if (figure.tag, figure.statistic) == (tag, which)]))
    return 0 if all(figure.holds and figure.narrow for figure in figures) else 1


def line(figures: list[Figure]) -> str:
    off = sorted(abs(figure.main / figure.truth - 1) * 100 for figure in figures)
    holds, narrow = sum(figure.holds for figure in figures), sum(figure.narrow for figure in figures)
    widest = max(figure.upper - figure.lower for figure in figures)
    name, count = f"{figures[0].tag} {figures[0].statistic}", len(figures)
    return f"| {name} | {holds} of {count} | {narrow} of {count} | {widest:.3f} ms | {off[count // 2]:.2f} % |"


if __name__ == "__main__":
    sys.exit(main())
