"""How far the numbers can be trusted: the client's own part in them, losses, and what stamps are worth."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from aiperf import Evidence, Finding, FindingLevel, Verdict
from aiperf.sdk.transport import EXHAUSTED, REFUSED
from aiperf.sdk.verdict import LIKELY, POSSIBLE, UnfinishedRun

from aiperf_verdict_measurement.causes import CPU_PCT, THROTTLED_PCT, cause, no_cause

COALESCED_SHARE = 0.05
"""Chunks are suspect when the p99 of the intervals in which they came is above this share of the median ITL."""
FIRST_SHARE = 0.05
"""The first content of answers is suspect likewise, when the p99 of its intervals is above this share of the median TTFT."""
TURNAROUND_SHARE = 0.05
"""A closed loop is suspect where the client's mean turnaround is above this share of the mean latency."""
MISSING_SHARE = 0.01
"""Reads without a kernel stamp above this share are suspect."""
UNREADABLE_SHARE = 0.01
"""Answers with events that could not be read above this share are suspect."""
SITE_CLOCK_MS = 1.0
"""Instants of different sites are suspect where a clock is not known better than this."""
SITE_WALL_S = 1.0
"""A wall clock of a site that is further off is told."""

_MS = 1e-6


class OwnPart(Verdict[None]):
    """Every reason that makes a run suspect, and notes on its stamps."""

    unfinished = True

    def judge_unfinished(self, run: UnfinishedRun) -> Iterator[Finding]:
        more = f"use more workers (--workers {run.plan.run.workers + 1})"
        cpu_pct = max((worker.cpu_pct or 0.0 for worker in run.snapshot.workers), default=0.0)
        yield from _limits(run.snapshot.delays.slip_ms, run.late_ns, cpu_pct, more, more)

    def judge(self, evidence: Evidence) -> Iterator[Finding]:
        still = list(_standstill(evidence))
        why = "a worker stood still meanwhile" if still else cause(evidence)
        more = f"use more workers (--workers {evidence.plan.run.workers + 1})"
        yield from _merged_reads(evidence, why or no_cause(evidence))
        yield from _client_limits(evidence, why or more, more)
        yield from _turnaround(evidence, why or more)
        yield from _not_ready(evidence)
        yield from _cpu_limit(evidence)
        yield from still
        yield from _bad_stamps(evidence)
        yield from _site_clocks(evidence)
        yield from _lost_arrivals(evidence)
        yield from _failed_connections(evidence)
        yield from _unreadable_events(evidence)
        yield from _whole_answers(evidence)
        yield from _notes(evidence)


def _suspect(
    kind: str, sentence: str, numbers: dict[str, int | float], *, confidence: float = 1.0, scope: str | None = None
) -> Finding:
    return Finding(kind, FindingLevel.SUSPECT, sentence, confidence, numbers, scope)


def _merged_reads(evidence: Evidence, why: str) -> Iterator[Finding]:
    chunks, first = _merged_chunks(evidence), _merged_first(evidence)
    if first is None and chunks is not None:
        sentence, numbers = chunks
        sentence = f"{sentence}, which concerns inter-chunk statistics alone; {why}"
        yield _suspect("merged_chunks", sentence, numbers, confidence=LIKELY, scope="inter-chunk")
    elif first is not None:
        sentence, numbers = first
        sentence = f"{sentence}, so look at lower and upper of the time to first token; {why}"
        if chunks is not None:
            sentence, numbers = f"{chunks[0]}; {sentence}", chunks[1] | numbers
        yield _suspect("merged_chunks", sentence, numbers, confidence=LIKELY, scope="first token and inter-chunk")


def _merged_chunks(evidence: Evidence) -> tuple[str, dict[str, int | float]] | None:
    """What to say of chunks behind the first of an answer; None where they are known well enough."""
    itl, marked = evidence.summary.results.get("inter_token_latency"), evidence.summary.measurement.coalesced_chunks
    itl_p50_ms = None if itl is None else itl.stats["p50"]
    if not itl_p50_ms or evidence.interval_p99_ns * _MS <= COALESCED_SHARE * itl_p50_ms:
        return None
    return (
        f"{marked:,} of {evidence.answers.chunks:,} chunks reached us merged with later ones: of 99 in 100 chunks the"
        f" time is known to within {evidence.interval_p99_ns * _MS:.3g} ms",
        {
            "merged_chunks": marked, "chunks": evidence.answers.chunks, "interval_p50_ms": evidence.interval_p50_ns * _MS,
            "interval_p99_ms": evidence.interval_p99_ns * _MS, "inter_token_latency_p50_ms": itl_p50_ms,
        },
    )  # fmt: skip


def _merged_first(evidence: Evidence) -> tuple[str, dict[str, int | float]] | None:
    """The finding on the first content of answers."""
    ttft, answers = evidence.summary.results.get("time_to_first_token"), evidence.answers
    ttft_p50_ms = None if ttft is None else ttft.stats["p50"]
    if not ttft_p50_ms or evidence.first_interval_p99_ns * _MS <= FIRST_SHARE * ttft_p50_ms:
        return None
    return (
        f"the first content of {answers.merged_first:,} of {answers.answers_begun:,} answers reached us merged with later"
        f" content: of 99 in 100 answers its time is known to within {evidence.first_interval_p99_ns * _MS:.3g} ms",
        {
            "merged_first": answers.merged_first, "answers": answers.answers_begun,
            "first_interval_p50_ms": evidence.first_interval_p50_ns * _MS,
            "first_interval_p99_ms": evidence.first_interval_p99_ns * _MS, "time_to_first_token_p50_ms": ttft_p50_ms,
        },
    )  # fmt: skip


def _client_limits(evidence: Evidence, why: str, more: str) -> Iterator[Finding]:
    slip, cpu_pct = evidence.summary.measurement.schedule_slip_ms, max((each.cpu_pct for each in evidence.workers), default=0.0)
    yield from _limits(None if slip is None else slip.p99, evidence.late_ns, cpu_pct, why, more)


def _limits(slip_p99_ms: float | None, late_ns: float, cpu_pct: float, why: str, more: str) -> Iterator[Finding]:
    """Findings on a client that is the limit.  *why*, *more*: what they end with."""
    if slip_p99_ms is not None and slip_p99_ms / _MS > late_ns:
        yield _suspect(
            "schedule_slip", f"arrivals left {slip_p99_ms:.3g} ms late at p99: the client could not keep up; {why}",
            {"slip_p99_ms": slip_p99_ms, "limit_ms": late_ns * _MS}, confidence=LIKELY,
        )  # fmt: skip
    if cpu_pct > CPU_PCT:
        yield _suspect(
            "worker_cpu", f"a worker used {cpu_pct:.0f} % of its core: the client may be the limit; {more}",
            {"cpu_pct": cpu_pct, "limit_pct": CPU_PCT}, confidence=POSSIBLE,
        )  # fmt: skip


def _turnaround(evidence: Evidence, why: str) -> Iterator[Finding]:
    latency, mean_ms = evidence.summary.results.get("request_latency"), evidence.turnaround_mean_ms
    latency_ms = None if latency is None else latency.stats["avg"]
    if mean_ms is not None and latency_ms and mean_ms > TURNAROUND_SHARE * latency_ms:
        yield _suspect(
            "turnaround",
            f"the client took {mean_ms:.3g} ms from an answer to the next request,"
            f" {100 * mean_ms / latency_ms:.0f} % of the mean latency: throughput may be the client's limit; {why}",
            {"turnaround_mean_ms": mean_ms, "request_latency_mean_ms": latency_ms}, confidence=POSSIBLE,
        )  # fmt: skip


def _not_ready(evidence: Evidence) -> Iterator[Finding]:
    if late := evidence.summary.measurement.client_not_ready:
        subject = "1 request" if late == 1 else f"{late:,} requests"
        yield _suspect(
            "client_not_ready",
            f"{subject} left late, because the data set's entries were still being made; --check-data makes them all before",
            {"requests": late},
        )  # fmt: skip


def _cpu_limit(evidence: Evidence) -> Iterator[Finding]:
    throttled_pct = max((each.throttled_pct for each in evidence.workers), default=0.0)
    if throttled_pct > THROTTLED_PCT:
        yield _suspect(
            "cpu_limit",
            f"the CPU limit of this program's cgroup was used up for {min(100.0, throttled_pct):.0f} % of the time: the client"
            " stood still until the next period; raise the limit, or leave it out and ask for CPU by a request alone",
            {"throttled_pct": throttled_pct, "limit_pct": THROTTLED_PCT},
        )  # fmt: skip


def _standstill(evidence: Evidence) -> Iterator[Finding]:
    judged = {phase.index for phase in evidence.plan.load.phases if phase.kind == evidence.phase.kind}
    stopped_ns: Counter[int] = Counter()
    for event in evidence.events:
        if event.event == "stopped" and event.phase in judged:
            stopped_ns[event.worker] += event.for_ns
    if stopped_ns:
        longest_s = max(stopped_ns.values()) / 1e9
        yield _suspect(
            "standstill",
            f"a worker stood still for {longest_s:.3g} s: it was stopped by a signal, or the machine"
            " slept; requests due or in flight then say nothing of the server",
            {"standstill_s": longest_s, "workers": len(stopped_ns)},
        )  # fmt: skip


def _bad_stamps(evidence: Evidence) -> Iterator[Finding]:
    measured, reads = evidence.summary.measurement, evidence.reads
    missing, steps = measured.stamps_missing, measured.clock_steps
    if reads and missing > MISSING_SHARE * reads:
        sentence = f"{missing:,} of {reads:,} reads came without a kernel stamp; their times are ours"
        yield _suspect("missing_stamps", sentence, {"stamps_missing": missing, "reads": reads})
    if steps:
        often = "once" if steps == 1 else f"{steps} times"
        sentence = f"the wall clock was set {often} during the run; reads around it carry our own stamps"
        yield _suspect("clock_step", sentence, {"clock_steps": steps})


def _site_clocks(evidence: Evidence) -> Iterator[Finding]:
    """What instants of different sites are worth beside each other; latencies are each site's own, and not concerned."""
    sites = [site for site in evidence.summary.measurement.sites or () if site.trips]
    if not sites:
        return
    worst = max(sites, key=lambda site: site.uncertainty_ms)
    known = f"the clock of the site {worst.name} is known to within {worst.uncertainty_ms:.3g} ms"
    if worst.uncertainty_ms > SITE_CLOCK_MS:
        sentence = f"{known}: time slices and curves put instants of sites together no better; latencies are not concerned"
        numbers: dict[str, int | float] = {"uncertainty_ms": worst.uncertainty_ms, "limit_ms": SITE_CLOCK_MS}
        yield _suspect("site_clock", sentence, numbers, scope="time slices and curves")
    else:
        yield Finding("site_clock", FindingLevel.NOTE, f"{known}, the others' better")
    for site in sites:
        if abs(site.wall_ahead_s) > SITE_WALL_S:
            way = "ahead of" if site.wall_ahead_s > 0 else "behind"
            off = f"{abs(site.wall_ahead_s):,.0f} s {way}"
            sentence = f"the wall clock of the site {site.name} is {off} this machine's, which counts"
            yield Finding("site_wall_clock", FindingLevel.NOTE, sentence, numbers={"wall_ahead_s": site.wall_ahead_s})


def _lost_arrivals(evidence: Evidence) -> Iterator[Finding]:
    outcome = evidence.summary.measurement.arrivals
    if outcome.never_sent:
        yield _suspect(
            "never_sent",
            f"{outcome.never_sent:,} of {outcome.planned:,} planned arrivals were never sent:"
            " the load asked for was not delivered",
            {"never_sent": outcome.never_sent, "planned": outcome.planned},
        )
    if outcome.unknown:
        sentence = f"{outcome.unknown:,} of {outcome.planned:,} planned arrivals are unknown: they may have been sent"
        yield _suspect("unknown_arrivals", sentence, {"unknown": outcome.unknown, "planned": outcome.planned})
    if outcome.damaged:
        subject = "1 request" if outcome.damaged == 1 else f"{outcome.damaged:,} requests"
        sentence = f"the journal may have lost a part of {subject}, which no statistic of latencies or tokens has"
        yield _suspect("damaged_requests", sentence, {"damaged": outcome.damaged})
    if lost := outcome.unfinished:
        subject = "1 request has" if lost == 1 else f"{lost:,} requests have"
        sentence = f"{subject} no end in the journal: their worker was lost, or could not write"
        yield _suspect("unfinished_requests", sentence, {"unfinished": lost})


def _failed_connections(evidence: Evidence) -> Iterator[Finding]:
    """Requests that found no server, or no means on this machine to reach it."""
    for failure, kind, sentence in (
        (REFUSED, "no_connection", "no connection could be opened"),
        (EXHAUSTED, "client_limit", "the client was at a limit of its own"),
    ):
        found = [(seen.first_ns, seen.count, seen.error.message) for seen in evidence.errors if seen.error.cause == failure]
        if found:
            message = max(found, key=lambda each: each[1])[2]
            begin_s, count = max(0.0, min(found)[0]) / 1e9, sum(count for _, count, _ in found)
            yield _suspect(
                kind, f"{sentence} from {begin_s:.3f} s on, for {count:,} requests: {message}",
                {"first_s": begin_s, "requests": count},
            )  # fmt: skip


def _unreadable_events(evidence: Evidence) -> Iterator[Finding]:
    answers = evidence.answers
    if answers.unreadable > UNREADABLE_SHARE * answers.valid:
        share = f"{answers.unreadable:,} of {answers.valid:,} answers"
        yield _suspect(
            "unreadable_answers", f"{share} have unreadable events: content is missing from times and counts",
            {"unreadable": answers.unreadable, "answers": answers.valid},
        )  # fmt: skip


def _whole_answers(evidence: Evidence) -> Iterator[Finding]:
    answers = evidence.answers
    # Of failed ones, a few may be errors, which servers send whole.
    whole = answers.whole if answers.valid else answers.whole_failed
    if evidence.plan.target.streaming and whole > UNREADABLE_SHARE * answers.valid:
        yield _suspect(
            "whole_answers",
            f"{whole:,} {'answer' if whole == 1 else 'answers'} came whole, where streams were asked for: a first token is then"
            " the whole answer; look at the server, or use an endpoint type with its framing",
            {"whole": whole, "answers": answers.valid},
        )


def _notes(evidence: Evidence) -> Iterator[Finding]:
    measured = evidence.summary.measurement
    held, sent = measured.arrivals.held, measured.arrivals.sent
    if held:
        yield Finding(
            "held_arrivals", FindingLevel.NOTE,
            f"{held:,} of {sent:,} arrivals waited for a slot or for the answer before them:"
            " their response latency counts from when they were due",
            numbers={"held": held, "sent": sent},
        )  # fmt: skip
    if (gap := measured.poll_gap_ms) is not None:
        yield Finding(
            "polled_answers", FindingLevel.NOTE,
            f"the ends of requests are known by polling: a latency may be too long by up to {gap.p50:.3g} ms at p50,"
            f" {gap.p99:.3g} ms at p99, the time between the last two polls",
            numbers={"poll_gap_p50_ms": gap.p50, "poll_gap_p99_ms": gap.p99},
        )  # fmt: skip
    if not evidence.precise_timers:
        sentence = "due times are kept by loop timers here, to about a millisecond"
        yield Finding("loop_timers", FindingLevel.NOTE, sentence)
    if measured.loopback:
        sentence = "the server is on this machine: no network is in its times, and from another machine they are longer"
        yield Finding("loopback_stamps", FindingLevel.NOTE, sentence)
    elif measured.clock == "kernel":
        sentence = "stamps are made when this machine's kernel gets a packet: what the network card held back is not in them"
        yield Finding("kernel_stamps", FindingLevel.NOTE, sentence)
