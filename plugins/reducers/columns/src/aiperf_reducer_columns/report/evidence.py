"""What is known of a finished run: outcomes of its arrivals, the load delivered, and the evidence for verdicts."""

from __future__ import annotations

import ipaddress
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import msgspec
import numpy as np
from aiperf.parts import journal
from aiperf.parts.hooks import REQUEST_PREPARED
from aiperf.parts.segments import ShardEvent
from aiperf.sdk.columns import RECONNECTS, Ints
from aiperf.sdk.driver import PRECISE_TIMERS
from aiperf.sdk.engine import SiteClock
from aiperf.sdk.model import ErrorDetails
from aiperf.sdk.plan import PhasePlan, Plan
from aiperf.sdk.series import Window
from aiperf.sdk.summary import Arrivals, DeliveredLoad, Measurement, Quantiles, Summary
from aiperf.sdk.transport import EXHAUSTED, REFUSED, UNIX
from aiperf.sdk.verdict import AnswerCounts, ErrorSeen, Evidence, WorkerEvent, WorkerTime

from aiperf_reducer_columns.statistics.described import statistics
from aiperf_reducer_columns.statistics.fold import Buckets, Merged
from aiperf_reducer_columns.statistics.lateness import late_ns
from aiperf_reducer_columns.statistics.phase_counts import PhaseCounts

_MS = 1e-6


def planned(phase: PhasePlan, *, told: bool = False) -> int | None:
    """Number of planned arrivals; None where it depends on time or on the answers.

    *told*: the driver tells of its trees, which need not begin with their first turns.
    """
    if phase.due_file is not None:
        return phase.planned
    if phase.duration_ns is not None:
        return None
    return phase.turns if not told and phase.request_count is None else phase.request_count


def arrivals(
    phase: PhasePlan, counts: PhaseCounts, lates: Merged | None, held: Merged | None = None, *, known: bool = True,
    turns: Mapping[int, int] | None = None,
) -> Arrivals:  # fmt: skip
    """Outcomes of the phase's planned arrivals.

    *lates*: delays of starts behind their due times; *held*: waits for a slot or for the answer before; in ns.
    *known*: whether arrivals without a request were certainly never sent.  *turns*: of trees that their driver told of, unsent
    turns by outcome; None without such.
    """
    by, expected = counts.outcomes, planned(phase, told=turns is not None)
    turns = turns or {}
    lost = turns.get(journal.UNKNOWN, 0)
    sent = sum(by.values())
    counted = (by.get(outcome, 0) for outcome in ("cut", "cancelled", "aborted", "unfinished", "damaged", "overflowed"))
    cut, cancelled, aborted, unfinished, damaged, overflowed = counted
    rest = 0 if expected is None else max(0, expected - sent)
    late = 0 if lates is None else lates.above(late_ns(phase))
    return Arrivals(
        sent + rest + lost, sent, late, counts.valid, counts.failed - cancelled - cut, cancelled, aborted, unfinished,
        held=0 if held is None else held.count, damaged=damaged, cut=cut,
        never_sent=rest if known else 0, unknown=lost if known else lost + rest, overflowed=overflowed,
        truncated=turns.get(journal.TRUNCATED, 0), released=turns.get(journal.RELEASED, 0),
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
    sent = outcome.sent - sum(count for error, count, _ in _errors(counts) if error.cause in (REFUSED, EXHAUSTED))
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


class Loops(NamedTuple):
    """LOOP frames of a phase: loop lags (ms), each worker's time, and the counters of the transports in the whole run."""

    lag: Quantiles | None
    workers: tuple[WorkerTime, ...]
    counters: Mapping[str, int]


def measurement(
    plan: Plan, counts: PhaseCounts, outcome: Arrivals, slips: Merged | None, turnarounds: Merged | None, loops: Loops, *,
    lateness: Buckets, clock_steps: int, polls: Merged | None = None, sites: tuple[SiteClock, ...] | None = None,
    machine: str | None = None,
) -> Measurement:  # fmt: skip
    """The measurement section of a phase, without a verdict.

    *slips*: the client's own part of the arrivals' delays.  *lateness*: delays of reads behind their kernel stamps.
    *turnarounds*: of the client between two requests in one slot.  All in ns.  *clock_steps*: noticed by all shards together.
    *polls*: times between the last two polls of requests.  *sites*, *machine*: as those of the measurement.
    """
    return Measurement(
        "kernel" if lateness.count else "read", all(_is_loopback(url) for url in plan.target.urls), outcome,
        client_error_ms=_quantiles(_statistics(lateness)), schedule_slip_ms=_quantiles(_statistics(slips)),
        loop_lag_ms=loops.lag, coalesced_chunks=counts.coalesced, stamps_missing=loops.counters.get("stamps_missing", 0),
        clock_steps=-(-clock_steps // plan.run.workers),  # every shard notices each step of the one clock
        reconnected=counts.reconnected,
        reconnects={cause: count for cause in RECONNECTS if (count := getattr(counts, cause))},
        worker_cpu_pct=tuple(round(worker.cpu_pct, 1) for worker in loops.workers),
        turnaround_ms=_quantiles(_statistics(turnarounds)), poll_gap_ms=_quantiles(_statistics(polls)),
        client_not_ready=loops.counters.get("not_ready", 0), reader=_reader(loops.counters),
        reader_pauses=loops.counters.get("reader_pauses", 0), streams_per_connection=_streams(loops.counters),
        window_stalls=loops.counters.get("window_stalls", 0),
        window_stalled_ms=round(loops.counters.get("window_stalled_ns", 0) / 1e6, 3), merged_first=counts.merged_first,
        first_stamp_share=_own_share(counts.merged_first, counts.answers_begun),
        chunk_stamp_share=_own_share(counts.coalesced, counts.chunks), sites=sites, machine=machine,
    )  # fmt: skip


def _own_share(merged: int, count: int) -> float | None:
    return 1 - merged / count if count else None


def _reader(counters: Mapping[str, int]) -> str | None:
    """Who read the sockets, as ``Measurement.reader`` says it."""
    readers, compiled = counters.get("readers", 0), counters.get("compiled_readers", 0)
    if not readers:
        return None
    return "python" if not compiled else "compiled" if compiled == readers else "mixed"


def _streams(counters: Mapping[str, int]) -> int | None:
    """The most requests at once on a connection; None where requests share none."""
    workers = counters.get("multiplexers", 0)
    return counters.get("streams_per_connection", 0) // workers if workers else None


def evidence(
    summary: Summary, plan: Plan, phase: PhasePlan, counts: Mapping[int, PhaseCounts], loops: Loops,
    events: Iterable[ShardEvent], *, intervals: Buckets, first_intervals: Buckets | None = None,
    turnarounds: Merged | None = None, zero_ns: int = 0,
    begin_ns: float = 0.0, single_turn: bool = True, models: Iterable[tuple[str, str]] = (),
    windows: tuple[Window, ...] = (),
    looks: Mapping[str, str] | None = None,
) -> Evidence:  # fmt: skip
    """What verdicts get.

    *counts*: by phase.  *intervals*: in which marked chunks came, in ns; *first_intervals*: in which the
    first of answers did.  *zero_ns*: monotonic clock at the run's start.
    *begin_ns*: of the phase.  *single_turn*: conversations have one turn.
    *models*: the model asked for and the model that answered, of some answers.  *looks*: of the end that the run recorded.
    *windows*: of all phases.
    """
    first = first_intervals or Buckets()
    own, plugins, turnaround = counts[phase.index], plan.plugins, _statistics(turnarounds)
    hooks = [ref.key for ref in plugins.hooks if REQUEST_PREPARED in plugins.hook_names.get(ref.key, ())]
    return Evidence(
        summary=summary, plan=plan.public(), phase=phase, late_ns=late_ns(phase),
        interval_p50_ns=intervals.quantile(0.5) if intervals.count else 0.0,
        interval_p99_ns=_width_ns(intervals, own.coalesced, own.chunks),
        first_interval_p50_ns=first.quantile(0.5) if first.count else 0.0,
        first_interval_p99_ns=_width_ns(first, own.merged_first, own.answers_begun),
        turnaround_mean_ms=None if turnaround is None else turnaround["avg"], workers=loops.workers,
        preparers=tuple(hooks or [plugins.endpoint.key]), reads=loops.counters.get("reads", 0), precise_timers=PRECISE_TIMERS,
        single_turn=single_turn, opening_ns=tuple(latency_ns for _, latency_ns in own.opening),
        errors=tuple(ErrorSeen(error, count, first_ns - begin_ns) for error, count, first_ns in _errors(own)),
        windows=windows, zero_ns=zero_ns, models=tuple(sorted(set(models))), looks=dict(looks or {}),
        answers=_answers(own), all_answers=_answers(*counts.values()),
        events=tuple(
            WorkerEvent(shard, value["phase"], value["event"], value["at_ns"] - zero_ns, value.get("for_ns", 0))
            for shard, kind, value in events
            if kind == journal.PHASE
        ),
        told=tuple(value for _, kind, value in events if kind == journal.NODES),
    )  # fmt: skip


def _answers(*phases: PhaseCounts) -> AnswerCounts:
    return AnswerCounts(*(sum(getattr(counts, name) for counts in phases) for name in AnswerCounts.__struct_fields__))


def _errors(counts: PhaseCounts) -> list[tuple[ErrorDetails, int, float]]:
    """Errors with their numbers and first instants."""
    return [(msgspec.json.decode(error, type=ErrorDetails), *seen) for error, seen in counts.errors.items()]


def _width_ns(intervals: Buckets, marked: int, chunks: int) -> float:
    """The p99 of the intervals in which *chunks* chunks came; all but *marked* of them came at a known instant."""
    if not intervals.count or not marked or marked <= 0.01 * chunks:
        return 0.0
    return intervals.quantile(1 - 0.01 * chunks / marked)


_SHARES = ("cpu_ns", "encode_ns", "disk_ns", "waited_ns", "throttled_ns")
"""Times of a LOOP frame, as the fields of :class:`WorkerTime`."""


def read_loops(events: Iterable[ShardEvent], phases: set[int]) -> Loops:
    """Lags and times while one of *phases* ran."""
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
    workers = [
        WorkerTime(*(100.0 * (end.get(name, 0) - begin.get(name, 0)) / wall for name in _SHARES)) for begin, end, wall in walls
    ]
    totals: Counter[str] = Counter()
    for value in before.values():
        totals.update(value["statistics"])
    lag = _quantiles(statistics(np.sort(np.array(lags, dtype=np.float64)), _MS) if lags else None)
    return Loops(lag, tuple(workers), totals)


def _is_loopback(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    if url.startswith(f"{UNIX}://"):  # a socket of this machine
        return True
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
