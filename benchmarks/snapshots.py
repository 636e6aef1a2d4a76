"""What a long run adds to what watches it: the memory of 86,400 snapshots, twelve hours of them, and the size of a large one.

usage: snapshots.py [--snapshots 86400] [--only run reducer api dashboard] [--json]

Each part has a process of its own.  run: makes snapshots of the workers' counters.  reducer: folds values of 40 metrics twice
a second.  api: keeps the course, log and latest numbers, and is asked for them now and then.  dashboard: the screen of 200
columns and 60 lines, which draws every hundredth.  The memory is that behind the last snapshot less that behind the 2,000th.
Allowed: 20 MB more; 64 kB for a snapshot of 120 metrics, 32 workers and 200 series as msgpack.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import math
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import numpy as np
from aiperf.sdk.live import LiveRun
from aiperf.sdk.snapshot import LiveStatistics, LogLine, Snapshot
from aiperf.testing import full_snapshot
from aiperf_testing.plans import sample_plan
from reduce import plan as plan_of

SETTLED = 2_000
MOST_MB, MOST_BYTES = 20.0, 64_000
TAGS, VALUES = 40, 16
_ASKED, _DRAWN = 1_000, 100


def resident_mb() -> float:
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 1e6


def snapshot(number: int, large: Snapshot) -> Snapshot:
    """The snapshot of *number*, whose numbers differ from those before."""
    swing = 1 + math.sin(number / 40) / 3
    recent = LiveStatistics(35 * swing, 20.0, 90 * swing, 4.0, 34 * swing, 50 * swing, 61 * swing, 80 * swing, number)
    metrics = tuple(msgspec.structs.replace(each, recent=recent) for each in large.metrics)
    series = tuple(msgspec.structs.replace(each, value=swing * at) for at, each in enumerate(large.series))
    done = 20 * number
    now = msgspec.structs.replace(large.phases[-1], elapsed_s=number / 2, sent=done + 9, completed=done, reduced=done)
    return msgspec.structs.replace(
        large, number=number, elapsed_s=number / 2, at_ns=large.at_ns + number * 500_000_000, completed=done, sent=done + 9,
        metrics=metrics, series=series, phases=(large.phases[0], now), recent_rate=40 * swing, logged=number,
    )  # fmt: skip


def grown(count: int, tell: Callable[[int], None]) -> dict[str, float]:
    """Megabytes that the snapshots behind the first ones add."""
    before_mb, began_s = 0.0, time.process_time()
    for number in range(1, count + 1):
        tell(number)
        if number == min(SETTLED, count // 2):
            before_mb = resident_mb()
    return {"added_mb": resident_mb() - before_mb, "ms": 1000 * (time.process_time() - began_s) / count}


def api(count: int) -> dict[str, float]:
    from aiperf_live_api import documents, exposition
    from aiperf_live_api.board import Board
    from aiperf_live_api.watching import Watch

    large, board = full_snapshot(metrics=120, workers=32, series=200, failures=20), Board(live=True)
    watch = Watch(board)
    with tempfile.TemporaryDirectory() as folder:
        watch.begin(LiveRun(sample_plan(Path(folder)).public(), None, large.at_ns))

    def tell(number: int) -> None:
        watch.show(snapshot(number, large))
        watch.log(LogLine(f"22:00:00.000 INFO    line {number} {'of the log' * 20}"))
        if number % _ASKED == 0:
            board.cached("history", board.history.document)
            board.cached("metrics", lambda: documents.metrics(board))
            exposition.text(board)

    return grown(count, tell)


def dashboard(count: int) -> dict[str, float]:
    from aiperf_ui_dashboard.board import Board

    large, found = full_snapshot(metrics=120, workers=32, series=200, failures=20), dict[str, float]()

    async def shown() -> None:
        board = Board(lambda what: None)
        async with board.run_test(size=(200, 60)) as pilot:
            board.next_run("a model  chat  http://127.0.0.1:8000")
            before_mb, began_s = 0.0, time.process_time()
            for number in range(1, count + 1):
                board.log_line(LogLine(f"22:00:00.000 INFO    line {number} {'of the log' * 20}"))
                board.take(snapshot(number, large))
                if number % _DRAWN == 0:
                    await pilot.pause()
                if number == min(SETTLED, count // 2):
                    before_mb = resident_mb()
            found.update(added_mb=resident_mb() - before_mb, ms=1000 * (time.process_time() - began_s) / count)

    asyncio.run(shown())
    return found


def run(count: int) -> dict[str, float]:
    from aiperf.processes import control
    from aiperf.run.snapshots import Snapshots
    from aiperf.sdk.reducer import PhaseFigures

    large = full_snapshot(metrics=120, workers=32, series=200, failures=20)
    with tempfile.TemporaryDirectory() as folder:
        plan = sample_plan(Path(folder))
    phase, snapshots = plan.load.phases[0], Snapshots(plan)
    snapshots.begin(phase)

    def tell(number: int) -> None:
        done = 20 * number
        counters = [control.Counters(at, phase.index, done + 1, done, 0, 1) for at in range(32)]
        figures = {phase.index: PhaseFigures(phase.index, 32 * done, 0, 0, large.metrics)}
        made = snapshots.make(phase, number / 2, counters, figures, sending=True, series=large.series, log=large.log)
        msgspec.json.encode(made)

    return grown(count, tell)


def reducer(count: int) -> dict[str, float]:
    from aiperf.registry.third_party import load
    from aiperf_reducer_columns.reduce.watch import Watch
    from aiperf_reducer_columns.statistics.catalogue import catalogue
    from aiperf_reducer_columns.statistics.fold import Buckets
    from aiperf_reducer_columns.statistics.phase_counts import PhaseCounts

    with tempfile.TemporaryDirectory() as folder:
        plan = plan_of(Path(folder), count, "summary")
    known, now_s = catalogue(plan, load(plan.plugins.endpoint)), 0.0
    tags, draw = [*known.metrics][:TAGS], np.random.default_rng(1)
    watch, counts = Watch(known, plan, 0, {0: 30.0}, clock=lambda: now_s), PhaseCounts()
    watch.follow({0: counts}, {0: 0.0}, Buckets())

    def tell(number: int) -> None:
        nonlocal now_s
        now_s = number / 2
        counts.kinds[1] = counts.kinds.get(1, 0) + VALUES
        for tag in tags:
            watch.add(0, tag, np.rint(draw.lognormal(17, 1, VALUES)), listed=False)
        watch.live(number)

    return grown(count, tell)


PARTS = {"run": run, "reducer": reducer, "api": api, "dashboard": dashboard}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--snapshots", type=int, default=86_400)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=[*PARTS])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--part", choices=PARTS, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.part:
        print(json.dumps(PARTS[given.part](given.snapshots)))
        return 0
    size = len(msgspec.msgpack.encode(full_snapshot(metrics=120, workers=32, series=200, failures=20)))
    found: dict[str, dict[str, float]] = {"size": {"bytes": size}}
    for name in given.only:
        command = [sys.executable, __file__, "--part", name, "--snapshots", str(given.snapshots)]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        found[name] = json.loads(done.stdout.splitlines()[-1])
        if not given.json:
            figures = found[name]
            print(f"{name:>10}  {figures['added_mb']:6.1f} MB added  {figures['ms']:.2f} ms of CPU a snapshot", flush=True)
    if given.json:
        print(json.dumps(found, indent=2))
    else:
        print(f"{'size':>10}  {size:,} bytes as msgpack of {MOST_BYTES:,}")
    return int(size > MOST_BYTES or any(found[name]["added_mb"] > MOST_MB for name in given.only))


if __name__ == "__main__":
    sys.exit(main())
