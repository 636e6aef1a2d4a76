"""When requests leave, and what a client costs while it waits: judged by the server.

Pacing and bursts go by when the server read the requests.  One that is read late may have been sent in time: the server, on the
same two cores, is the last to know, so these figures are upper bounds of what the client did.  Where it is busy with other
streams, or frozen, that would be its own lateness: there the kernel's stamp of the request at the server's socket counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from tools import AiohttpLoop, Load, Ours, Reference, Tool
from truth import Seen

if TYPE_CHECKING:
    from bench import Bench

NS_PER_MS = 1_000_000
NS_PER_S = 1_000_000_000

RATE = 2000.0
STREAMS = 64
FREEZE_EVERY_MS, FREEZE_MS = 2000, 400


def _paced(bench: Bench) -> list[Tool]:
    return [tool for tool in bench.tools if isinstance(tool, Ours | AiohttpLoop | Reference)]


def pacing(bench: Bench) -> None:
    what = f"{RATE:,.0f} requests/s for 60 s, one worker"
    middle = bench.row("gap-p50", f"{what}: distance of a gap from 0.5 ms, p50", "ms", 0.02, digits=4)
    tail = bench.row("gap-p99", "the same: p99", "ms", 0.4, digits=3)
    rate = bench.row("gap-rate", "the same: delivered rate is off by", "%", 0.1, digits=4)
    drift = bench.row("gap-drift", "the same: the last second's requests came later than the first's by", "ms", 0.1, digits=3)
    load = Load(0, round(60 * RATE), 8, streaming=False, rate=RATE)
    shares = {Reference.name: 0.1}
    for tool, _, server in bench.loads(1, 0, load, _paced(bench), shares=shares):
        received = np.sort(server.requests().received)
        gap_ns = NS_PER_S / RATE
        off_ns = np.abs(np.diff(received) - gap_ns)
        middle.add(tool.name, float(np.percentile(off_ns, 50)) / NS_PER_MS)
        tail.add(tool.name, float(np.percentile(off_ns, 99)) / NS_PER_MS)
        taken_ns = float(received[-1] - received[0])
        rate.add(tool.name, abs((len(received) - 1) * gap_ns / taken_ns - 1) * 100)
        late_ns = received - received[0] - np.arange(len(received)) * gap_ns
        second = round(RATE)
        drift.add(tool.name, float(np.median(late_ns[-second:]) - np.median(late_ns[:second])) / NS_PER_MS)


def burst(bench: Bench) -> None:
    row = bench.row("at-once", "256 at once: from the first request to the last", "ms", 10, digits=2)
    for tool, _, server in bench.loads(500, 0, Load(256, 256, 8), _paced(bench), whole=True):
        received = server.requests().received
        row.add(tool.name, float(np.ptp(received)) / NS_PER_MS)


def replacement(bench: Bench) -> None:
    """The n-th answer's end frees a slot for request 64 + n: the two in their order, as the server saw them."""
    what = f"{STREAMS} streams, from an answer's end to the next request"
    middle = bench.row("replaced-p50", f"{what}: p50", "ms", 0.2, digits=3)
    tail = bench.row("replaced-p99", f"{what}: p99", "ms", 0.2, digits=3)
    load = Load(STREAMS, 12_000, 8)
    for tool, _, server in bench.loads(100, 10, load, _paced(bench), server={"jitter": 1}, shares={Reference.name: 0.1}):
        waits = replaced_ns(server.requests(), STREAMS)
        middle.add(tool.name, float(np.percentile(waits, 50)) / NS_PER_MS)
        tail.add(tool.name, float(np.percentile(waits, 99)) / NS_PER_MS)


def replaced_ns(seen: Seen, streams: int) -> Any:
    """From the end of each answer to the request that took its place, at the server's socket."""
    arrived, ends = np.sort(seen.arrived), np.sort(seen.last)
    return arrived[streams:] - ends[: len(arrived) - streams]


def waiting(bench: Bench) -> None:
    """CPU time of two runs that differ in nothing but how long the server lets them wait."""
    row = bench.row("waiting", f"CPU while {STREAMS} requests wait for a slow server, all processes", "% of a core", 5)
    short_s, long_s = 2, 12
    spent: dict[int, dict[str, list[float]]] = {short_s: {}, long_s: {}}
    for seconds, cpu_s in spent.items():
        for tool, said, _ in bench.loads(seconds * 1000, 0, Load(STREAMS, STREAMS, 1), _paced(bench), whole=True):
            cpu_s.setdefault(tool.name, []).append(said.cpu_s)
    for name, longer in spent[long_s].items():
        for shorter, more in zip(spent[short_s].get(name, []), longer, strict=False):
            row.add(name, (more - shorter) / (long_s - short_s) * 100)


def streams(bench: Bench) -> None:
    row = bench.row("streams", "10,000 streams of a token a second: peak memory (summed PSS)", "MB", 1000, digits=0)
    tools: list[Tool] = [tool for tool in bench.tools if isinstance(tool, Ours | AiohttpLoop)]
    for tool, said, _ in bench.loads(1000, 1000, Load(10_000, 10_000, 20), tools, memory=True, whole=True, runs=1):
        row.add(tool.name, said.peak_mb)


def freeze(bench: Bench) -> None:
    """With four connections most requests due in a freeze are sent behind it: only latency from the due time shows it."""
    what = f"server freezes {FREEZE_MS} ms every {FREEZE_EVERY_MS / 1000:g} s, 400 requests/s on 4 connections"
    response = bench.row("freeze-response", f"{what}: response latency p99 is off by", "%", 2, digits=2)
    service = bench.row("freeze-service", "the same: service latency p99", "%", 2, digits=2)
    tools: list[Tool] = [tool for tool in bench.tools if isinstance(tool, Ours)]
    stalls = {"stall_every": FREEZE_EVERY_MS, "stall_ms": FREEZE_MS}
    load = Load(4, 20_000, 4, rate=400.0)
    for tool, said, server in bench.loads(3, 1, load, tools, server=stalls, whole=True):
        seen = server.requests()
        order = np.argsort(seen.arrived)
        ends = seen.last[order]
        for row, p99_ms, begins in (
            (response, said.response_p99_ms, said.due_ns),
            (service, said.service_p99_ms, seen.arrived[order]),
        ):
            if p99_ms is not None and begins is not None:
                truth = float(np.percentile(ends - begins, 99)) / NS_PER_MS
                row.add(tool.name, abs(p99_ms / truth - 1) * 100)
                row.notes[tool.name] = f"{p99_ms:.1f} ms"
