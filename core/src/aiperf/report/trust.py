"""How far the numbers can be trusted: the client's own part in them, the verdict, and advice.

Advice is for runs that were measured well and may still mislead: a cold server, a warm cache, wrong token counts.
"""

from __future__ import annotations

import ipaddress
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

import msgspec
import numpy as np

from aiperf.registry.hooks import REQUEST_PREPARED
from aiperf.rundir import journal
from aiperf.rundir.shard_reader import ShardEvent
from aiperf.sdk.columns import Ints
from aiperf.sdk.model import LENGTH_FIELDS, ErrorDetails, names
from aiperf.sdk.plan import PhasePlan, Plan
from aiperf.sdk.summary import Arrivals, DeliveredLoad, Measurement, Quantiles, Result
from aiperf.sdk.transport import EXHAUSTED, REFUSED
from aiperf.statistics.fold import Buckets, Merged, statistics
from aiperf.statistics.phase_counts import KINDS, PhaseCounts
from aiperf.worker.clock import PRECISE

COALESCED_SHARE = 0.05
"""Chunks are suspect when the p99 of the intervals in which they came is above this share of the median ITL.  The interval of
a chunk that was not merged into another read is zero."""
SLIP_NS = 1_000_000
SLIP_SHARE = 0.05
"""A p99 slip above 1 ms and above this share of the mean gap is suspect; an arrival later than that is late."""
CPU_PCT = 90.0
"""A worker busier than this is suspect."""
TURNAROUND_SHARE = 0.05
"""A closed loop is suspect where the client's mean turnaround is above this share of the mean latency."""
ENCODE_PCT, WAIT_PCT, DISK_PCT = 10.0, 1.0, 50.0
"""Shares of a worker's time in which it encoded requests, waited for a core, or wrote the journal, that explain delays."""
WAIT_SHARE = 0.2
"""A machine is busy where a worker waits for a core for more than this share of its time on a core, too."""
MISSING_SHARE = 0.01
"""Reads without a kernel stamp above this share are suspect."""
UNREADABLE_SHARE = 0.01
"""Answers with events that could not be read above this share are suspect."""
_COLD = 3.0
_COLD_MS = 50.0
_COLD_REQUESTS = 20
_CACHED_SHARE = 0.1
_MS = 1e-6


def late_ns(phase: PhasePlan) -> float:
    """An arrival that starts later than this behind its due time counts as late."""
    return max(SLIP_NS, SLIP_SHARE * 1e9 / phase.rate if phase.rate else 0)


def planned(phase: PhasePlan) -> int | None:
    """Number of planned arrivals; None where it depends on time or on the answers."""
    if phase.due_file is not None:
        return phase.planned
    return phase.request_count if phase.duration_ns is None else None


def arrivals(
    phase: PhasePlan, counts: PhaseCounts, lates: Merged | None, held: Merged | None = None, *, known: bool = True
) -> Arrivals:
    """Outcomes of the phase's planned arrivals.

    *lates*: delays of starts behind their due times; *held*: waits for a slot or for the answer before; in ns.
    *known*: whether arrivals without a request were certainly never sent.
    """
    by, expected = counts.outcomes, planned(phase)
    sent, (cancelled, aborted, unfinished, damaged) = sum(by.values()), (by.get(outcome, 0) for outcome in KINDS[-4:])
    rest, cut = 0 if expected is None else max(0, expected - sent), by.get("cut", 0)
    late = int((lates.values() > late_ns(phase)).sum()) if lates is not None else 0
    return Arrivals(
        sent + rest, sent, late, counts.valid, counts.failed - cancelled - cut, cancelled, aborted, unfinished,
        held=0 if held is None else held.count, damaged=damaged, cut=cut,
        never_sent=rest if known else 0, unknown=0 if known else rest,
    )  # fmt: skip


def asked_rate(phase: PhasePlan, due_ns: Ints) -> float | None:
    """The rate asked for, in requests/s: as typed; for a ramp or a trace, the mean until the last due time.

    *due_ns*: of all arrivals, -1 where it depends on the answers.  None where one does, or nothing is due.
    """
    if phase.rate is not None and not phase.rate_ramp_ns:
        return phase.rate
    known = phase.planned is not None and len(due_ns) > 0 and due_ns.min() >= 0 and due_ns.max() > 0
    return len(due_ns) / (float(due_ns.max()) / 1e9) if known else None


def delivered(
    phase: PhasePlan, counts: PhaseCounts, outcome: Arrivals, lates: Merged | None, held: Merged | None, begin_ns: float,
    asked: float | None, complete_ns: Sequence[float] = (),
) -> DeliveredLoad:  # fmt: skip
    """The load *asked* for (requests/s) and the load delivered.

    *complete_ns*: when each worker had nothing more to send; empty where the journal lacks it.
    """
    span_s = (_sending_end_ns(phase, counts, outcome, begin_ns, complete_ns) - begin_ns) / 1e9
    sent = outcome.sent - sum(count for cause in (REFUSED, EXHAUSTED) for _, count, _ in _unconnected(counts, cause))
    rate = sent / span_s if span_s > 0 and outcome.sent else None
    stats, waited = _statistics(lates), _statistics(held) or {}
    if stats is None:
        return DeliveredLoad(rate, None, outcome.never_sent, asked)
    on_time = (outcome.sent - outcome.late) / outcome.planned if outcome.planned else None
    return DeliveredLoad(
        rate, on_time, outcome.never_sent, asked, stats["p50"], stats["p99"], outcome.held, waited.get("p50"), waited.get("p99")
    )


def _sending_end_ns(
    phase: PhasePlan, counts: PhaseCounts, outcome: Arrivals, begin_ns: float, complete_ns: Sequence[float]
) -> float:
    """When the phase could send no more: behind free slots at the last answer, at due times with the last arrival.

    Where time alone ends an open loop it is the end of that time, however early the last arrival was due.
    """
    last_ns = counts.last_start_ns if phase.paced else counts.last_end_ns
    end_ns = max(counts.last_start_ns, *(complete_ns or (last_ns,)))
    if phase.duration_ns is None:
        return end_ns
    limit_ns = begin_ns + phase.duration_ns
    open_loop = phase.rate is not None or phase.rate_series is not None
    return limit_ns if open_loop and not outcome.never_sent and outcome.sent != phase.turns else min(end_ns, limit_ns)


def _statistics(values: Merged | Buckets | None) -> dict[str, float] | None:
    """In ms; None where there are no values."""
    return values.statistics(_MS) if values is not None and values.count else None


def _quantiles(stats: dict[str, float] | None) -> Quantiles | None:
    return None if stats is None else Quantiles(max(0.0, stats["p50"]), max(0.0, stats["p99"]), max(0.0, stats["max"]))


def measurement(
    plan: Plan, phase: PhasePlan, counts: PhaseCounts, outcome: Arrivals, slips: Merged | None, events: Sequence[ShardEvent], *,
    lateness: Buckets, intervals: Buckets, clock_steps: int, itl_p50_ms: float | None, turnarounds: Merged | None = None,
    latency_ms: float | None = None, begin_ns: float = 0.0,
) -> Measurement:  # fmt: skip
    """The measurement section of the phase.

    *slips*: the client's own part of the arrivals' delays.  *lateness*: delays of reads behind their kernel stamps.
    *intervals*: in which marked chunks came.  *turnarounds*: of the client between two requests in one slot.
    *begin_ns*: of the phase.  All in ns.  *clock_steps*: noticed by all shards together.  *latency_ms*: mean of the good
    requests.
    """
    phases = {each.index for each in plan.load.phases if each.kind == phase.kind}
    lags, shares, counters = _loops(events, phases)
    lag = _quantiles(statistics(np.sort(np.array(lags, dtype=np.float64)), _MS) if lags else None)
    still = list(_standstill(events, phases))
    cause = _cause(plan, {name: max(values, default=0.0) for name, values in shares.items()}, lag)
    cause = "a worker stood still meanwhile" if still else cause
    clock_steps = -(-clock_steps // plan.run.workers)  # every shard notices each step of the one clock
    slip, turnaround = _quantiles(_statistics(slips)), _statistics(turnarounds)
    cpu_pct = shares["cpu_ns"]
    more = f"use more workers (--workers {plan.run.workers + 1})"
    merged = list(_merged_reads(counts, intervals, itl_p50_ms, cause or _no_cause(lag, cpu_pct)))
    reasons = [
        *_client_limits(slip, cpu_pct, late_ns(phase), cause, more),
        *_turnaround(turnaround, latency_ms, cause or more),
        *still,
        *_bad_stamps(counters, clock_steps),
        *_lost_arrivals(outcome),
        *_failed_connections(counts, begin_ns),
        *_unreadable_events(counts),
    ]
    loopback = all(_is_loopback(url) for url in plan.target.urls)
    return Measurement(
        "kernel" if lateness.count else "read", loopback, outcome, "suspect" if merged or reasons else "trustworthy",
        (*merged, *reasons), _quantiles(_statistics(lateness)), slip, lag, counts.coalesced, counters.get("stamps_missing", 0),
        clock_steps, counts.reconnected, tuple(round(value, 1) for value in cpu_pct),
        tuple(_notes(outcome, loopback=loopback, stamped=lateness.count > 0)),
        _quantiles(turnaround), "inter-chunk" if merged and not reasons else None,
    )  # fmt: skip


def _merged_reads(counts: PhaseCounts, intervals: Buckets, itl_p50_ms: float | None, cause: str) -> Iterator[str]:
    if itl_p50_ms and _width_ns(intervals, counts.coalesced, counts.chunks) * _MS > COALESCED_SHARE * itl_p50_ms:
        yield (
            f"{counts.coalesced:,} of {counts.chunks:,} chunks reached us merged with later ones: when each came is only known"
            f" to within {intervals.quantile(0.5) * _MS:.3g} ms at p50, which concerns inter-chunk statistics alone; {cause}"
        )


def _client_limits(slip: Quantiles | None, cpu_pct: list[float], late_ns: float, cause: str, more: str) -> Iterator[str]:
    if slip is not None and slip.p99 / _MS > late_ns:
        yield f"arrivals left {slip.p99:.3g} ms late at p99: the client could not keep up; {cause or more}"
    if cpu_pct and max(cpu_pct) > CPU_PCT:
        yield f"a worker used {max(cpu_pct):.0f} % of its core: the client may be the limit; {more}"


def _turnaround(turnaround: dict[str, float] | None, latency_ms: float | None, advice: str) -> Iterator[str]:
    if turnaround is not None and latency_ms and turnaround["avg"] > TURNAROUND_SHARE * latency_ms:
        yield (
            f"the client took {turnaround['avg']:.3g} ms from an answer to the next request,"
            f" {100 * turnaround['avg'] / latency_ms:.0f} % of the mean latency: throughput may be the client's limit; {advice}"
        )


def _cause(plan: Plan, pct: Mapping[str, float], lag: Quantiles | None) -> str:
    """What delayed the workers, and what to do; "" where nothing did.  *pct*: the busiest worker's shares, see _SHARES."""
    if pct["encode_ns"] > ENCODE_PCT:
        hooks = [ref.key for ref in plan.plugins.hooks if REQUEST_PREPARED in plan.plugins.hook_names.get(ref.key, ())]
        coders = hooks or [plan.plugins.endpoint.key]
        return f"{names(coders)} took {pct['encode_ns']:.0f} % of a worker's time to prepare requests: make it faster"
    if pct["cpu_ns"] > CPU_PCT:
        return f"a worker used {pct['cpu_ns']:.0f} % of its core: use more workers (--workers {plan.run.workers + 1})"
    if pct["disk_ns"] > DISK_PCT:
        return f"the disk took {pct['disk_ns']:.0f} % of the time to write the journal: put --artifact-dir on a faster one"
    if pct["waited_ns"] > max(WAIT_PCT, WAIT_SHARE * pct["cpu_ns"]):
        late = "" if lag is None else f", its loop {lag.p99:.3g} ms late at p99"
        waited = f"a worker waited for a core for {pct['waited_ns']:.0f} % of its time{late}"
        return f"{waited}: other programs keep this machine busy"
    return ""


def _no_cause(lag: Quantiles | None, cpu_pct: list[float]) -> str:
    late = "" if lag is None else f"a loop {lag.p99:.3g} ms late at p99"
    busy = f"a worker at {max(cpu_pct):.0f} % of its core" if cpu_pct else ""
    seen = " and ".join(filter(None, (late, busy)))
    return f"the client ran freely{f' ({seen})' if seen else ''}: the server or the network sent them close together"


def _standstill(events: Iterable[ShardEvent], phases: set[int]) -> Iterator[str]:
    stopped_ns: Counter[int] = Counter()
    for shard, kind, value in events:
        if kind == journal.PHASE and value["event"] == "stopped" and value["phase"] in phases:
            stopped_ns[shard] += value["for_ns"]
    if stopped_ns:
        yield (
            f"a worker stood still for {max(stopped_ns.values()) / 1e9:.3g} s: it was stopped by a signal, or the machine"
            " slept; requests due or in flight then say nothing of the server"
        )


def _bad_stamps(counters: dict[str, int], clock_steps: int) -> Iterator[str]:
    missing, reads = counters.get("stamps_missing", 0), counters.get("reads", 0)
    if reads and missing > MISSING_SHARE * reads:
        yield f"{missing:,} of {reads:,} reads came without a kernel stamp; their times are ours"
    if clock_steps:
        often = "once" if clock_steps == 1 else f"{clock_steps} times"
        yield f"the wall clock was set {often} during the run; reads around it carry our own stamps"


def _lost_arrivals(outcome: Arrivals) -> Iterator[str]:
    if outcome.never_sent:
        yield (
            f"{outcome.never_sent:,} of {outcome.planned:,} planned arrivals were never sent:"
            " the load asked for was not delivered"
        )
    if outcome.unknown:
        yield f"{outcome.unknown:,} of {outcome.planned:,} planned arrivals are unknown: they may have been sent"
    if outcome.damaged:
        subject = "1 request" if outcome.damaged == 1 else f"{outcome.damaged:,} requests"
        yield f"the journal may have lost a part of {subject}, which no statistic of latencies or tokens has"
    if lost := outcome.unfinished:
        subject = "1 request has" if lost == 1 else f"{lost:,} requests have"
        yield f"{subject} no end in the journal: their worker was lost, or could not write"


def _unconnected(counts: PhaseCounts, cause: str) -> list[tuple[float, int, str]]:
    """First instant, number and message of the requests without a connection for this *cause*."""
    errors = [(msgspec.json.decode(error, type=ErrorDetails), *seen) for error, seen in counts.errors.items()]
    return [(first_ns, count, error.message) for error, count, first_ns in errors if error.cause == cause]


def _failed_connections(counts: PhaseCounts, begin_ns: float) -> Iterator[str]:
    """Requests that found no server, or no means on this machine to reach it."""
    for cause, sentence in ((REFUSED, "no connection could be opened"), (EXHAUSTED, "the client was at a limit of its own")):
        if found := _unconnected(counts, cause):
            first_ns, message = min(found)[0], max(found, key=lambda each: each[1])[2]
            begin_s = max(0.0, first_ns - begin_ns) / 1e9
            yield f"{sentence} from {begin_s:.3f} s on, for {sum(count for _, count, _ in found):,} requests: {message}"


def _unreadable_events(counts: PhaseCounts) -> Iterator[str]:
    if counts.unreadable > UNREADABLE_SHARE * counts.valid:
        share = f"{counts.unreadable:,} of {counts.valid:,} answers"
        yield f"{share} have unreadable events: content is missing from times and counts"


def _notes(outcome: Arrivals, *, loopback: bool, stamped: bool) -> Iterator[str]:
    if outcome.held:
        yield (
            f"{outcome.held:,} of {outcome.sent:,} arrivals waited for a slot or for the answer before them:"
            " their response latency counts from when they were due"
        )
    if not PRECISE:
        yield "due times are kept by loop timers here, to about a millisecond"
    if loopback:
        yield "the server is on this machine: stamps are made in the sender's context and flatter"
    elif stamped:
        yield "stamps are made when this machine's kernel gets a packet: what the network card held back is not in them"


def _width_ns(intervals: Buckets, marked: int, chunks: int) -> float:
    """The p99 of the intervals in which *chunks* chunks came; all but *marked* of them came at a known instant."""
    if not intervals.count or not marked or marked <= 0.01 * chunks:
        return 0.0
    return intervals.quantile(1 - 0.01 * chunks / marked)


_SHARES = ("cpu_ns", "encode_ns", "disk_ns", "waited_ns")
"""Times of a LOOP frame that are shares of a worker's time: on its core, encoding, writing the journal, waiting for a core."""


def _loops(events: Iterable[ShardEvent], phases: set[int]) -> tuple[list[int], dict[str, list[float]], dict[str, int]]:
    """Loop lags (ns) and each worker's _SHARES (%) while one of *phases* ran, and the transports' counters."""
    lags: list[int] = []
    running: dict[int, bool] = {}
    before: dict[int, dict[str, Any]] = {}
    spans: dict[int, tuple[dict[str, Any], dict[str, Any]]] = {}
    for shard, kind, value in events:
        if kind == journal.PHASE and value["event"] == "begin":
            running[shard] = value["phase"] in phases
        if kind != journal.LOOP:
            continue
        if value["in_phase"] and running.get(shard, True):
            lags += value["lag_ns"]
            # A phase of a second has one frame: the frame before the phase is its begin.
            begin, _ = spans.get(shard, (before.get(shard, value), value))
            spans[shard] = begin, value
        before[shard] = value
    ordered = [spans[shard] for shard in sorted(spans)]
    walls = [(begin, end, end["wall_ns"] - begin["wall_ns"]) for begin, end in ordered if end["wall_ns"] > begin["wall_ns"]]
    shares = {
        name: [100.0 * (end.get(name, 0) - begin.get(name, 0)) / wall for begin, end, wall in walls] for name in _SHARES
    }
    totals: Counter[str] = Counter()
    for value in before.values():
        totals.update(value["statistics"])
    return lags, shares, totals


def _is_loopback(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def advice(plan: Plan, phase: PhasePlan, counts: PhaseCounts, results: Mapping[str, Result], *, single: bool) -> list[str]:
    """Sentences on the profiling phase.  *single*: conversations have one turn."""
    cache = _warm_cache(counts, phase) if single else ()
    return [*_cold_start(plan, phase, counts, results), *_hidden_reasoning(counts), *cache, *_mismatches(plan, results)]


def _cold_start(plan: Plan, phase: PhasePlan, counts: PhaseCounts, results: Mapping[str, Result]) -> Iterator[str]:
    """Whether even the fastest request of the first wave was far slower than the median request.

    Requests of one wave wait for each other on a warm server, too: only the fastest tells.
    """
    usual = results.get("time_to_first_token") or results.get("request_latency")
    wave = counts.opening[: max(1, phase.concurrency or 1)]
    if usual is None or not wave or any(each.kind == "warmup" for each in plan.load.phases):
        return
    p50_ms, fastest_ms = usual.stats["p50"], min(latency_ns for _, latency_ns in wave) / 1e6
    if usual.stats["count"] >= _COLD_REQUESTS and fastest_ms > max(_COLD * p50_ms, p50_ms + _COLD_MS):
        yield (
            f"the first requests took {fastest_ms:,.0f} ms and more, the usual one {p50_ms:,.0f} ms: the server was cold;"
            " warm it up with --warmup-request-count"
        )


def _hidden_reasoning(counts: PhaseCounts) -> Iterator[str]:
    if counts.hidden_reasoning:
        yield (
            f"the server counts reasoning tokens with {_answers(counts.hidden_reasoning)} without any to be seen: time to first"
            " token is to the first word behind the reasoning; is a reasoning parser switched on?"
        )


def _warm_cache(counts: PhaseCounts, phase: PhasePlan) -> Iterator[str]:
    share = counts.cached_tokens / counts.prompt_tokens if counts.prompt_tokens else 0.0
    if share > _CACHED_SHARE:
        sent = sum(counts.outcomes.values())
        repeated = f" ({sent:,} requests used {phase.entries:,} entries)" if phase.entries and sent > phase.entries else ""
        yield (
            f"the server took {100 * share:.0f} % of the prompt tokens from its prefix cache: time to first token is that of a"
            f" warm cache{repeated}; unless prompts share prefixes on purpose, change --random-seed or raise"
            " --num-dataset-entries"
        )


def _mismatches(plan: Plan, results: Mapping[str, Result]) -> Iterator[str]:
    counted = results.get("usage_discrepancy_count")
    if counted is not None and counted.stats["avg"]:
        yield (
            f"with {_answers(counted.stats['avg'])} the server's token counts are far from those counted here: is"
            " --tokenizer the model's? --use-server-token-count takes the server's"
        )
    lengths = results.get("osl_mismatch_count")
    if lengths is not None and lengths.stats["avg"]:
        free = not LENGTH_FIELDS & plan.target.extra.keys()
        hint = "; where the server knows it, --extra-inputs ignore_eos:true or min_tokens makes it keep to them" if free else ""
        have = "doesn't" if lengths.stats["avg"] == 1 else "don't"
        yield f"{_answers(lengths.stats['avg'])} {have} have the length that was asked for{hint}"


def _answers(count: float) -> str:
    return "1 answer" if count == 1 else f"{count:,.0f} answers"
