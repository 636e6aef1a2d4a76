"""Peak memory (summed PSS) of runs of different lengths, and of each process of them.

usage: memory.py [--requests N ...] [--tokens N] [--level summary|records|raw] [--every SECONDS]

Streamed requests over 64 connections, as fast as truthd answers.  With ``--every`` the processes' sizes are printed through the
run, so that a process that grows is seen.  A run of 3,000,000 requests of 4 tokens needs 5 GB of disk (``BENCH_DIR``).
"""

from __future__ import annotations

import argparse
import os
import subprocess
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

from bench import machine
from tools import Load, LoadError, Ours, profile_words, pss_kb, tree
from truth import truthd

_SAMPLE_S = 0.25


class Peak(NamedTuple):
    """MB: of the sum over all processes, of each process alone by its module; requests per second of the whole program."""

    sum_mb: float
    each_mb: dict[str, float]
    rate: float


def peak(requests: int, tokens: int, level: str, every_s: float) -> Peak:
    """One run, sampled four times a second.

    Raises:
        LoadError: It failed.
    """
    with truthd(0, 0) as truth, tempfile.TemporaryDirectory(prefix="bench-", dir=os.environ.get("BENCH_DIR")) as folder:
        words = profile_words(Ours().program, truth.port, Load(64, requests, tokens), folder, "builtin")
        began = shown = time.monotonic()
        process = subprocess.Popen(
            [*words, "--export-level", level], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL
        )
        most_mb, each_mb = 0.0, defaultdict[str, float](float)
        while process.poll() is None:
            time.sleep(_SAMPLE_S)
            sizes = _sizes_mb(process.pid)
            most_mb = max(most_mb, sum(sizes.values()))
            for name, size_mb in sizes.items():
                each_mb[name] = max(each_mb[name], size_mb)
            if every_s and time.monotonic() - shown >= every_s:
                shown = time.monotonic()
                print(f"  {shown - began:6.0f} s", _listed(sizes), flush=True)
        took_s, seen = time.monotonic() - began, truth.stats()
        if process.returncode or seen["completed"] != requests:
            raise LoadError(f"it exits {process.returncode}; the server completed {seen['completed']} of {requests}")
        return Peak(most_mb, dict(each_mb), requests / took_s)


def _sizes_mb(root: int) -> dict[str, float]:
    """Sizes of the processes by module; the same module's are summed."""
    sizes = defaultdict[str, float](float)
    for pid in tree(root):
        try:
            words = Path(f"/proc/{pid}/cmdline").read_text().split("\0")
        except OSError:  # it has just ended
            continue
        sizes[words[words.index("-m") + 1] if "-m" in words else "parent"] += pss_kb(pid) / 1000
    return sizes


def _listed(sizes: dict[str, float]) -> str:
    return ", ".join(f"{name.removeprefix('aiperf.')} {size_mb:.0f}" for name, size_mb in sizes.items())


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--requests", nargs="+", type=int, default=[30_000, 300_000], metavar="N")
    parser.add_argument("--tokens", type=int, default=32, help="of each answer (default 32)")
    parser.add_argument("--level", default="records", choices=("summary", "records", "raw"))
    parser.add_argument("--every", type=float, default=0, metavar="SECONDS", help="print the sizes so often")
    given = parser.parse_args()
    for requests in given.requests:
        found = peak(requests, given.tokens, given.level, given.every)
        print(f"{requests:,} requests: {found.sum_mb:.0f} MB at {found.rate:,.0f}/s; at most each: {_listed(found.each_mb)}")
    print(f"{given.tokens} tokens an answer, level {given.level}. {machine()}.")


if __name__ == "__main__":
    main()
