"""How far the numbers can be trusted: what the client itself added, and the verdict."""

from __future__ import annotations

import ipaddress
import math
from collections.abc import Iterable
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from aiperf import journal
from aiperf.engine.clock import PRECISE
from aiperf.fold import Buckets, Merged
from aiperf.pipeline import Census
from aiperf.plan import PhasePlan, Plan
from aiperf.summary import Arrivals, DeliveredLoad, Measurement, Spread

COALESCED_SHARE = 0.05
"""Intervals of marked chunks above this share of the median ITL, at p99, are suspect."""
SLIP_NS = 1_000_000
SLIP_SHARE = 0.05
"""A p99 slip above 1 ms and above this share of the mean gap is suspect; an arrival later than that is late."""
CPU_PCT = 90.0
MISSING_SHARE = 0.01
_MS = 1e-6


def late_ns(phase: PhasePlan) -> float:
    """From when on an arrival counts as late."""
    return max(SLIP_NS, SLIP_SHARE * 1e9 / phase.rate if phase.rate else 0)


def planned(phase: PhasePlan) -> int | None:
    """How many arrivals were planned, numbered from 0; None where that depends on time or on the answers."""
    if phase.planned is not None and phase.session_count is None:
        return phase.planned
    return phase.request_count if phase.duration_ns is None else None


def arrivals(phase: PhasePlan, census: Census, slips: Merged | None) -> Arrivals:
    """What became of the phase's planned arrivals."""
    by = census.outcomes
    sent = sum(by.values())
    expected = planned(phase)
    expected = sent if expected is None else expected
    late = 0
    if slips is not None and slips.count:
        late = int((slips.values() > late_ns(phase)).sum())
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
    )


def delivered(phase: PhasePlan, census: Census, found: Arrivals, slips: Merged | None, begin_ns: float) -> DeliveredLoad:
    """The load asked for and the load delivered."""
    span_s = (census.last_start_ns - begin_ns) / 1e9
    rate = found.sent / span_s if span_s > 0 and found.sent > 1 else None
    if slips is None or not slips.count:
        return DeliveredLoad(rate, None, found.never_sent, phase.rate)
    stats = slips.statistics(_MS) or {}
    on_time = (found.sent - found.late) / found.planned if found.planned else None
    return DeliveredLoad(rate, on_time, found.never_sent, phase.rate, stats["p50"], stats["p99"])


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
    lags, cpu, statistics = _loops(side)
    lag = spread_of(_plain(lags))
    client = spread_of(lateness.statistics(_MS)) if lateness.count else None
    slip = spread_of(slips.statistics(_MS)) if slips is not None and slips.count else None
    missing, reads = statistics.get("stamps_missing", 0), statistics.get("reads", 0)
    reasons: list[str] = []
    if intervals.count and itl_p50_ms:
        width = intervals.statistics(_MS)["p99"]
        if width > COALESCED_SHARE * itl_p50_ms:
            reasons.append(
                f"{census.coalesced:,} chunks reached us merged, within {width:.3g} ms of each other at p99:"
                " their own times are unknown; use more workers (--workers-max) or fewer streams"
            )
    if slip is not None and slip.p99 / _MS > late_ns(phase):
        hint = (
            "the ceiling was full"
            if phase.concurrency is not None
            else "the client could not keep up; use more workers (--workers-max)"
        )
        reasons.append(f"arrivals left {slip.p99:.3g} ms late at p99: {hint}")
    busy = [value for value in cpu if value > CPU_PCT]
    if busy:
        reasons.append(
            f"a worker used {max(busy):.0f} % of its core: the client may be the limit; use more workers (--workers-max)"
        )
    if reads and missing > MISSING_SHARE * reads:
        reasons.append(f"{missing:,} of {reads:,} reads came without a kernel stamp; their times are ours")
    if clock_steps:
        reasons.append(f"the wall clock was set {clock_steps} times during the run; reads around it carry our own stamps")
    if found.never_sent:
        reasons.append(
            f"{found.never_sent:,} of {found.planned:,} planned arrivals were never sent: the load asked for was not delivered"
        )
    lost = found.unfinished
    if lost:
        reasons.append(f"{lost:,} requests have no end: the process that sent them was lost")
    notes = []
    if not PRECISE:
        notes.append("due times are kept by loop timers here, to about a millisecond")
    loopback = all(_is_loopback(url) for url in plan.urls)
    if loopback:
        notes.append("the server is on this machine: stamps are made in the sender's context and flatter")
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


def _loops(side: Iterable[tuple[int, int, dict[str, Any]]]) -> tuple[list[int], list[float], dict[str, int]]:
    """Loop lags while phases ran, each worker's CPU share, and the transports' counters."""
    lags: list[int] = []
    first: dict[int, dict[str, Any]] = {}
    last: dict[int, dict[str, Any]] = {}
    for shard, kind, value in side:
        if kind != journal.LOOP:
            continue
        if value.get("in_phase"):
            lags += value["lag_ns"]
            first.setdefault(shard, value)
        last[shard] = value
    cpu = []
    for shard in sorted(last):
        begin = first.get(shard, {"cpu_ns": 0, "wall_ns": 0})
        wall = last[shard]["wall_ns"] - begin["wall_ns"]
        if wall > 0 and begin is not last[shard]:
            cpu.append(100.0 * (last[shard]["cpu_ns"] - begin["cpu_ns"]) / wall)
    totals: dict[str, int] = {}
    for value in last.values():
        for name, count in value.get("statistics", {}).items():
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
