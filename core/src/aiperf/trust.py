"""How far the numbers can be trusted: what the client itself added, and the verdict."""

from __future__ import annotations

import ipaddress
import math
from collections.abc import Iterable
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from aiperf import journal
from aiperf.columns import Ints
from aiperf.engine.clock import PRECISE
from aiperf.fold import Buckets, Merged
from aiperf.pipeline import Census
from aiperf.plan import PhasePlan, Plan
from aiperf.summary import Arrivals, DeliveredLoad, Measurement, Spread

COALESCED_SHARE = 0.05
"""Chunks are suspect when the p99, over all of them, of the interval in which each came is above this share of the median
ITL.  A chunk that wasn't merged into another read has none."""
SLIP_NS = 1_000_000
SLIP_SHARE = 0.05
"""A p99 slip above 1 ms and above this share of the mean gap is suspect; an arrival later than that is late."""
CPU_PCT = 90.0
"""A worker busier than this is suspect."""
MISSING_SHARE = 0.01
"""Reads without a kernel stamp above this share are suspect."""
_MS = 1e-6


def late_ns(phase: PhasePlan) -> float:
    """From when on an arrival counts as late."""
    return max(SLIP_NS, SLIP_SHARE * 1e9 / phase.rate if phase.rate else 0)


def planned(phase: PhasePlan) -> int | None:
    """How many arrivals were planned, numbered from 0; None where that depends on time or on the answers."""
    if phase.due_file is not None:
        return phase.planned
    return phase.request_count if phase.duration_ns is None else None


def arrivals(phase: PhasePlan, census: Census, lates: Merged | None, held: Merged | None = None) -> Arrivals:
    """What became of the phase's planned arrivals.

    *lates*: by how much they left behind their due times; *held*: what some of them waited for a slot or an answer; in ns.
    """
    by = census.outcomes
    sent = sum(by.values())
    expected = planned(phase)
    expected = sent if expected is None else expected
    late = 0
    if lates is not None and lates.count:
        late = int((lates.values() > late_ns(phase)).sum())
    return Arrivals(
        planned=max(expected, sent),
        sent=sent,
        late=late,
        completed=by.get(journal.COMPLETED, 0),
        errors=by.get(journal.ERROR, 0),
        cancelled=by.get(journal.CANCELLED, 0),
        aborted_in_flight=by.get(journal.ABORTED, 0),
        unfinished=by.get(journal.UNFINISHED, 0),
        never_sent=max(0, expected - sent),
        held=0 if held is None else held.count,
    )


def asked_rate(phase: PhasePlan, due_ns: Ints) -> float | None:
    """Requests/s: the rate that was typed, else, where it changes or a trace gives the times, the mean until the last is due.

    *due_ns*: of all arrivals, -1 where only the answers would tell.  None where that is so, or nothing is due.
    """
    if phase.rate is not None and not phase.rate_ramp_ns:
        return phase.rate
    known = phase.planned is not None and len(due_ns) > 0 and due_ns.min() >= 0 and due_ns.max() > 0
    return len(due_ns) / (float(due_ns.max()) / 1e9) if known else None


def delivered(
    phase: PhasePlan,
    census: Census,
    found: Arrivals,
    lates: Merged | None,
    held: Merged | None,
    begin_ns: float,
    asked: float | None,
) -> DeliveredLoad:
    """The load *asked* for (requests/s) and the load delivered."""
    span_s = (census.last_start_ns - begin_ns) / 1e9
    rate = found.sent / span_s if span_s > 0 and found.sent > 1 else None
    if lates is None or not lates.count:
        return DeliveredLoad(rate, None, found.never_sent, asked)
    stats = lates.statistics(_MS) or {}
    waited = (held.statistics(_MS) if held is not None and held.count else None) or {}
    on_time = (found.sent - found.late) / found.planned if found.planned else None
    return DeliveredLoad(
        rate, on_time, found.never_sent, asked, stats["p50"], stats["p99"], found.held, waited.get("p50"), waited.get("p99")
    )


def spread_of(stats: dict[str, float] | None) -> Spread | None:
    return None if stats is None else Spread(max(0.0, stats["p50"]), max(0.0, stats["p99"]), max(0.0, stats["max"]))


def measurement(
    plan: Plan,
    phase: PhasePlan,
    census: Census,
    found: Arrivals,
    slips: Merged | None,
    side: Iterable[tuple[int, int, dict[str, Any]]],
    *,
    lateness: Buckets,
    intervals: Buckets,
    clock_steps: int,
    itl_p50_ms: float | None,
) -> Measurement:
    """The measurement section."""
    lags, cpu, statistics = _loops(side, {each.index for each in plan.phases if each.kind == phase.kind})
    lag = spread_of(_plain(lags))
    # Every shard notices each step of the one clock.
    clock_steps = -(-clock_steps // plan.workers)
    client = spread_of(lateness.statistics(_MS)) if lateness.count else None
    slip = spread_of(slips.statistics(_MS)) if slips is not None and slips.count else None
    missing, reads = statistics.get("stamps_missing", 0), statistics.get("reads", 0)
    reasons: list[str] = []
    chunks = census.instants + census.coalesced
    if itl_p50_ms and _width_ns(intervals, census.coalesced, chunks) * _MS > COALESCED_SHARE * itl_p50_ms:
        reasons.append(
            f"{census.coalesced:,} of {chunks:,} chunks reached us merged with later ones: when each came is only known to"
            f" within {intervals.quantile(0.5) * _MS:.3g} ms at p50; use more workers (--workers-max) or fewer streams"
        )
    if slip is not None and slip.p99 / _MS > late_ns(phase):
        reasons.append(
            f"arrivals left {slip.p99:.3g} ms late at p99: the client could not keep up; use more workers (--workers-max)"
        )
    busy = [value for value in cpu if value > CPU_PCT]
    if busy:
        reasons.append(
            f"a worker used {max(busy):.0f} % of its core: the client may be the limit; use more workers (--workers-max)"
        )
    if reads and missing > MISSING_SHARE * reads:
        reasons.append(f"{missing:,} of {reads:,} reads came without a kernel stamp; their times are ours")
    if clock_steps:
        often = "once" if clock_steps == 1 else f"{clock_steps} times"
        reasons.append(f"the wall clock was set {often} during the run; reads around it carry our own stamps")
    if found.never_sent:
        reasons.append(
            f"{found.never_sent:,} of {found.planned:,} planned arrivals were never sent: the load asked for was not delivered"
        )
    lost = found.unfinished
    if lost:
        subject = "1 request has" if lost == 1 else f"{lost:,} requests have"
        reasons.append(f"{subject} no end: the process that sent them was lost")
    notes = []
    if found.held:
        notes.append(
            f"{found.held:,} of {found.sent:,} arrivals waited for a slot or for the answer before them:"
            " their response latency counts from when they were due"
        )
    if not PRECISE:
        notes.append("due times are kept by loop timers here, to about a millisecond")
    loopback = all(_is_loopback(url) for url in plan.urls)
    if loopback:
        notes.append("the server is on this machine: stamps are made in the sender's context and flatter")
    elif lateness.count:
        notes.append("stamps are made when this machine's kernel gets a packet: what the network card held back is not in them")
    return Measurement(
        clock="kernel" if lateness.count else "read",
        loopback=loopback,
        arrivals=found,
        verdict="suspect" if reasons else "trustworthy",
        reasons=tuple(reasons),
        client_error_ms=client,
        schedule_slip_ms=slip,
        loop_lag_ms=lag,
        coalesced_chunks=census.coalesced,
        stamps_missing=missing,
        clock_steps=clock_steps,
        reconnected=census.reconnected,
        worker_cpu_pct=tuple(round(value, 1) for value in cpu),
        notes=tuple(notes),
    )


def _plain(lags: list[int]) -> dict[str, float] | None:
    from aiperf.fold import statistics

    return statistics(np.sort(np.array(lags, dtype=np.float64)), _MS) if lags else None


def _width_ns(intervals: Buckets, marked: int, chunks: int) -> float:
    """The p99, over *chunks* chunks of which *marked* have one of the intervals, of the interval in which each came."""
    if not intervals.count or not marked or marked <= 0.01 * chunks:
        return 0.0
    return intervals.quantile(1 - 0.01 * chunks / marked)


def _loops(side: Iterable[tuple[int, int, dict[str, Any]]], phases: set[int]) -> tuple[list[int], list[float], dict[str, int]]:
    """Loop lags and each worker's CPU share while one of *phases* ran, and the transports' counters."""
    lags: list[int] = []
    running: dict[int, bool] = {}
    before: dict[int, dict[str, Any]] = {}
    spans: dict[int, tuple[dict[str, Any], dict[str, Any]]] = {}
    for shard, kind, value in side:
        if kind == journal.PHASE and value["event"] == "begin":
            running[shard] = value["phase"] in phases
        if kind != journal.LOOP:
            continue
        if value["in_phase"] and running.get(shard, True):
            lags += value["lag_ns"]
            # From the frame before the phase: one that runs for a second has no other.
            begin, _ = spans.get(shard, (before.get(shard, value), value))
            spans[shard] = begin, value
        before[shard] = value
    cpu = []
    for _, (begin, end) in sorted(spans.items()):
        wall = end["wall_ns"] - begin["wall_ns"]
        if wall > 0:
            cpu.append(100.0 * (end["cpu_ns"] - begin["cpu_ns"]) / wall)
    totals: dict[str, int] = {}
    for value in before.values():
        for name, count in value["statistics"].items():
            totals[name] = totals.get(name, 0) + count
    return lags, cpu, totals


def _is_loopback(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
