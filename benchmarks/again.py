"""Plans one after the other: each with processes of its own (``aiperf.profile``), or all with the same (``aiperf.Run``).

usage: again.py [--plans N] [--pairs N] [--sites N] [--memory]

Each side runs so many plans of ten requests in a program of its own, in alternating pairs against truthd.  Its cost is the CPU
time of the program with all its processes, and its wall time, starts included, and the time from the last answer of a plan to
the begin of the next one's load.  *--sites*: at so many sites in other directories of this machine (tests/strangers/annex).
*--memory*: resident memory of the kept worker and reducer after the second and the last plan.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
from pathlib import Path

from pairs import interval
from tools import timed
from truth import truthd

sys.path.append(str(Path(__file__).resolve().parent.parent / "tests"))
from rogues import install_from

_ANNEX = Path(__file__).resolve().parent.parent / "tests" / "strangers" / "annex"
_REQUESTS = 10
_PROGRAM = """
import contextlib, json, os, sys
from pathlib import Path
import aiperf

side, url, folder, plans, rooms = sys.argv[1:]
sites = dict(engine="annex", annex_rooms=rooms) if rooms else {}

def resident_mb():
    sizes = []
    for pid in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split():
        sizes.append(int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE") / 1e6)
    return sizes

sizes = []
with contextlib.nullcontext(aiperf) if side == "fresh" else aiperf.Run() as run:
    for number in range(int(plans)):
        run.profile(
            model="m", url=url, streaming=True, concurrency=10, request_count=REQUESTS, tokenizer="builtin", isl=32, osl=32,
            artifact_dir=f"{folder}/{number}", **sites,
        )
        sizes.append(resident_mb())
times = [json.loads(Path(folder, str(number), "journal/run-times.json").read_text()) for number in range(int(plans))]
between = [(after["begin_ns"] - before["last_answer_ns"]) / 1e9 for before, after in zip(times, times[1:])]
print(json.dumps([sizes, between]))
""".replace("REQUESTS", str(_REQUESTS))


def _rooms(folder: Path, sites: int) -> list[str]:
    """Directories for so many sites, with the package of their engine where new processes find it."""
    if sites and not (packages := folder / "packages").exists():
        install_from(packages, _ANNEX)
        os.environ["PYTHONPATH"] = str(packages)
    rooms = [folder / f"room{number}" for number in range(sites)]
    for room in rooms:
        room.mkdir()
    return [str(room) for room in rooms]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--plans", type=int, default=10)
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--sites", type=int, default=0)
    parser.add_argument("--memory", action="store_true")
    given = parser.parse_args()
    cpu: dict[str, list[float]] = {"fresh": [], "kept": []}
    wall: dict[str, list[float]] = {"fresh": [], "kept": []}
    gaps: dict[str, list[float]] = {"fresh": [], "kept": []}
    sizes: list[list[float]] = []
    with truthd(20, 5) as truth:
        for pair in range(given.pairs):
            for side in ("fresh", "kept") if pair % 2 == 0 else ("kept", "fresh"):
                truth.reset()
                with tempfile.TemporaryDirectory() as folder:
                    words = [sys.executable, "-c", _PROGRAM, side, f"http://127.0.0.1:{truth.port}", folder, str(given.plans)]
                    ran = timed([*words, ",".join(_rooms(Path(folder), given.sites))])
                if (completed := truth.stats()["completed"]) != _REQUESTS * given.plans:
                    print(f"the server completed {completed} of {_REQUESTS * given.plans} requests", file=sys.stderr)
                    return 1
                cpu[side].append(ran.cpu_s / given.plans)
                wall[side].append(ran.wall_s / given.plans)
                resident, between = json.loads(ran.output)
                gaps[side].append(statistics.median(between))
                sizes = resident if side == "kept" else sizes
    measured = ("CPU time of a plan", cpu), ("wall time of a plan", wall), ("time between two loads", gaps)
    for what, found in measured:
        ratios = sorted(kept / fresh for fresh, kept in zip(found["fresh"], found["kept"], strict=True))
        low, high = interval(ratios)
        fresh, kept = statistics.median(found["fresh"]), statistics.median(found["kept"])
        print(f"{what}: {fresh:.3f} s with new processes, {kept:.3f} s with kept ones;", end=" ")
        print(f"kept/new {statistics.median(ratios):.3f} ({low:.3f}–{high:.3f}), {given.pairs} pairs of {given.plans} plans")
    if given.memory:
        print(f"resident after plan 2 and plan {given.plans}, MB: {sizes[1]}, {sizes[-1]}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
