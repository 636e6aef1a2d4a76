"""What an entry of a generated data set costs: processor time of all processes, drawing, encoding, storing and inputs.json.

    python benchmarks/entries.py [--entries 20000] [--isl 32] [--runs 3]

Two runs of one request each, which fails because nobody listens, differ in the size of their data sets alone.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
from statistics import median

_FEW = 100


def cpu_s(entries: int, isl: int) -> float:
    """User and system time of a run with so many entries, made whole before its request."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with tempfile.TemporaryDirectory() as folder:
        command = [
            sys.executable, "-m", "aiperf", "profile", "-m", "none", "--url", "http://127.0.0.1:9", "--tokenizer", "builtin",
            "--isl", str(isl), "--osl", "16", "--random-seed", "1", "--request-count", "1", "--ui", "none",
            "--num-dataset-entries", str(entries), "--check-data", "--artifact-dir", folder,
        ]  # fmt: skip
        subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--entries", type=int, default=20_000)
    parser.add_argument("--isl", type=int, default=32)
    parser.add_argument("--runs", type=int, default=3)
    given = parser.parse_args()
    costs = [
        (cpu_s(given.entries, given.isl) - cpu_s(_FEW, given.isl)) / (given.entries - _FEW) * 1e6 for _ in range(given.runs)
    ]
    print(f"{median(costs):.1f} µs per entry ({min(costs):.1f}–{max(costs):.1f})")


if __name__ == "__main__":
    main()
