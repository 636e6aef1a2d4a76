"""Several workers against one: what a chunk costs, what limits the load, and on many cores how much more they do.

The row ``scaling`` of bench.py: ``bench.py --rows scaling`` takes four minutes, with ``--quick`` one.

Four workers and one run in alternating pairs, at equal load per worker and at full speed.  Servers are added until none keeps
more than 70 % of a core busy, or cores run out, which is said.  Chunks that wait together in a socket are read together, with
one stamp: *merged*.  One worker that has no time to spare merges more than four that share its load do, and saves the reads.
With more streams it merges fewer: a line through its loads tells what a chunk takes one worker at the four's merged share.
"""

from __future__ import annotations

import os
import statistics
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from shares import Took, took
from tools import Load, Ours
from truth import Truth, truthd

if TYPE_CHECKING:
    from bench import Bench

WORKERS = 4
LINEAR, CORES = (1, 2, 4, 8), 16
"""Workers that are compared with so many times one, and cores without which they would share theirs with servers."""
SERVERS, MOST_SERVERS = 4, 16
BUSY = 0.7
"""Share of a core beyond which a server holds up the load."""
_RAN_OUT = 0.9
"""Share of all cores beyond which more servers would take theirs from somebody."""
_PACED = Load(20, 20, 100)
"""Of each worker: 20 streams of a chunk every 20 ms in the mean, each at its own times, for 2 s."""
_FULL = Load(256, 1_536, 128)
_MORE, _APART = 4, 0.05
"""Times as many streams, with which one worker merges fewer chunks; and how far apart two merged shares tell a slope."""
_ITL_MS = 20


@contextmanager
def servers(count: int, itl_ms: float) -> Iterator[list[Truth]]:
    with ExitStack() as stack:
        yield [stack.enter_context(truthd(itl_ms, itl_ms, jitter=1)) for _ in range(count)]


def enough(load: Load, itl_ms: float) -> tuple[int, str]:
    """The number of servers of which none is too busy, and a sentence where there is no such number."""
    cores, count = len(os.sched_getaffinity(0)), SERVERS
    while True:
        with servers(count, itl_ms) as running:
            seen = took(load, running)
        most = max(seen.server_shares)
        if most <= BUSY:
            return count, ""
        if seen.busy_cores > _RAN_OUT * cores or count >= MOST_SERVERS:
            ran = f"{seen.busy_cores:.1f} of {cores} cores are busy" if count < MOST_SERVERS else f"there are {count}"
            return count, f"a server is busy for {100 * most:.0f} % of the time, and {ran}: more servers would change nothing"
        count *= 2


def rounds(loads: Sequence[Load], itl_ms: float, count: int) -> tuple[list[list[Took]], str]:
    """The loads so many times, in turn and the other way round, with the same servers; and what these lack.

    The last load decides how many servers there are.
    """
    number, lacking = enough(loads[-1], itl_ms)
    found: list[list[Took]] = []
    with servers(number, itl_ms) as running:
        for turn in range(count):
            order = range(len(loads)) if turn % 2 == 0 else reversed(range(len(loads)))
            taken = {place: took(loads[place], running) for place in order}
            found.append([taken[place] for place in range(len(loads))])
            for each in found[-1]:
                print(f"  {each.line()}", file=sys.stderr, flush=True)
    return found, lacking


def scaling(bench: Bench) -> None:
    """The rows of bench.py."""
    count = 10 if bench.runs > 1 else 2
    _paced(bench, count)
    _full(bench, count)
    cores = len(os.sched_getaffinity(0))
    if cores < CORES:
        print(f"  1, 2, 4 and 8 workers are compared on {CORES} cores, and there are {cores}", file=sys.stderr)
    else:
        _linear(bench)


def _paced(bench: Bench, count: int) -> None:
    one = replace(_PACED, workers=1)
    several = replace(one, connections=WORKERS * one.connections, requests=WORKERS * one.requests, workers=WORKERS)
    found, lacking = rounds((one, several), _ITL_MS, count)
    what = f"{WORKERS} workers ÷ one, {one.connections} streams of {1000 // _ITL_MS} chunks/s each"
    cpu = bench.row("scaling-cpu", f"{what}: workers' CPU time a chunk", "×", 1.05, digits=3)
    journal = bench.row("scaling-bytes", "the same: bytes of journal a chunk", "×", 1.01, digits=3)
    reducers = bench.row("scaling-reducers", "the same: reducers' CPU time a chunk", "×", 1.1, digits=3)
    for lone, shared in found:
        cpu.add(Ours.name, shared.chunk_us / lone.chunk_us)
        reducers.add(Ours.name, shared.reducer_s / shared.chunks / (lone.reducer_s / lone.chunks))
        journal.add(Ours.name, shared.journal_bytes / shared.chunks / (lone.journal_bytes / lone.chunks))
    cpu.notes[Ours.name] = "; ".join(filter(None, (_middle(found), lacking)))


def _full(bench: Bench, count: int) -> None:
    one = replace(_FULL, requests=round(_FULL.requests * max(0.25, bench.scale)), workers=1)
    found, lacking = rounds((one, replace(one, connections=_MORE * one.connections), replace(one, workers=WORKERS)), 0, count)
    what = f"{WORKERS} workers ÷ one, {one.connections} streams as fast as they come"
    cpu = bench.row("scaling-full-cpu", f"{what}: workers' CPU time a chunk, at equal merged shares", "×", 1.25, digits=3)
    reducers = bench.row("scaling-full-reducers", "the same: reducers' CPU time", "×", 1.1, digits=3)
    alone = [each for lone, with_more, _ in found for each in (lone, with_more)]
    for lone, _, shared in found:
        cpu.add(Ours.name, shared.chunk_us / at_share(shared.merged, alone))
        reducers.add(Ours.name, shared.reducer_s / lone.reducer_s)
    plain = statistics.median(shared.chunk_us / lone.chunk_us for lone, _, shared in found)
    cpu.notes[Ours.name] = "; ".join(filter(None, (f"as they come {plain:.2f} ×", _middle(found), lacking)))


def at_share(merged: float, alone: Sequence[Took]) -> float:
    """What a chunk would take one worker, in µs, if *merged* of its chunks were: by least squares of its loads."""
    shares, costs = [each.merged for each in alone], [each.chunk_us for each in alone]
    if max(shares) - min(shares) < _APART:
        return statistics.median(costs)
    line = statistics.linear_regression(shares, costs)
    return max(min(costs) / 2, line.intercept + line.slope * merged)


def _middle(found: Sequence[Sequence[Took]]) -> str:
    """Merged share, chunks a wake-up, and the busiest server and worker of each load, in the middle of the rounds."""

    def each(what: str, value: Callable[[Took], float], digits: int) -> str:
        middles = (statistics.median(map(value, side)) for side in zip(*found, strict=True))
        return f"{what} {' · '.join(f'{middle:.{digits}f}' for middle in middles)}"

    return ", ".join((
        each("merged %", lambda one: 100 * one.merged, 0),
        each("chunks a wake-up", lambda one: one.chunks / max(1, one.wakeups), 1),
        each("busiest server %", lambda one: 100 * max(one.server_shares), 0),
        each("busiest worker %", lambda one: 100 * max(one.worker_shares), 0),
    ))  # fmt: skip


def _linear(bench: Bench) -> None:
    """What several workers do, as a share of so many times what one does; and whether the reducers keep pace."""
    for name, load in (
        ("requests/s, no streaming", Load(256, 200_000, 32, streaming=False)),
        ("chunks/s", Load(256, 20_000, 128)),
    ):
        size = replace(load, requests=round(load.requests * bench.scale) * LINEAR[-1], workers=LINEAR[-1])
        number, lacking = enough(size, 0)
        for _ in range(bench.runs):
            alone = 0.0
            with servers(number, 0) as running:
                for count in LINEAR:
                    seen = took(replace(size, requests=size.requests // LINEAR[-1] * count, workers=count), running)
                    print(f"  {count}: {seen.line()}", file=sys.stderr, flush=True)
                    rate = (seen.chunks or seen.requests) / seen.load_s
                    alone = alone or rate
                    who = "a worker" if count == 1 else f"{count} workers"
                    if count > 1:
                        what, least = f"{name}: {who} ÷ {count} × one", 0.9 if count < LINEAR[-1] else 0.8
                        row = bench.row(f"workers{count}-{name[:6]}", what, "", least, more=True, digits=2)
                        row.add(Ours.name, rate / (count * alone))
                        row.notes[Ours.name] = ", ".join(filter(None, (f"{number} servers", lacking)))
                    what = f"{name}, {who}: reducers done after the last answer"
                    bench.row(f"workers{count}-{name[:6]}-reducers", what, "× load", 0.4, digits=2).add(Ours.name, seen.behind)
