"""Counts to the summary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec
from aiperf.parts.journal import RunClock, RunEnd
from aiperf.sdk.model import ErrorDetails
from aiperf.sdk.plan import PhasePlan, Plan
from aiperf.sdk.redaction import private
from aiperf.sdk.reducer import plugins_used
from aiperf.sdk.summary import (
    Arrivals,
    DeliveredLoad,
    ErrorCount,
    Measurement,
    PhaseSummary,
    Summary,
)

from {{ cookiecutter.__module }}.counting import Counts, PhaseCounts

_NOTE = "the reducer {{ cookiecutter.name }} counts requests alone: no latencies, and no verdict"


def write_summary(journal: Path, plan: Plan, clock: RunClock, end: RunEnd | None, parts: Sequence[Counts]) -> Summary:
    """The summary of what all reducers have counted, which it also writes to the journal."""
    ended = end or RunEnd(incomplete="the run did not record its end")
    counts = {phase.index: _merged(part.phases[phase.index] for part in parts if phase.index in part.phases)
              for phase in plan.load.phases}  # fmt: skip
    sent = {shard: number for part in parts for shard, number in part.sent.items()}
    lost = sum(max(0, number - sent.get(shard, 0)) for shard, number in ended.requests.items())
    unfinished = sum(each.sent - sum(each.outcomes.values()) for each in counts.values())
    sentences = [f"{lost:,} of {lost + sum(sent.values()):,} requests are in no file"] if lost else []
    reasons = [ended.incomplete] if ended.incomplete is not None else []
    reasons += sentences or ([f"{unfinished:,} requests have no end"] if unfinished else [])
    main = next(phase for phase in plan.load.phases if phase.kind == "profiling")
    phases = {phase.index: _phase(phase, counts[phase.index], clock) for phase in plan.load.phases}
    profiling, arrivals = phases[main.index], _arrivals(main, counts[main.index], known=end is not None and not lost)
    summary = Summary(
        plan.run.run_id, plan.run.version, results={}, errors=profiling.errors, phases=tuple(phases.values()),
        measurement=Measurement("read", loopback=False, arrivals=arrivals, notes=(_NOTE,)),
        delivered=DeliveredLoad(None, None, arrivals.never_sent), plugins=plugins_used(plan),
        start_ns=profiling.start_ns, end_ns=profiling.end_ns, title="Requests", command=plan.run.command,
        config=plan.input_config(), valid=profiling.valid, failed=profiling.failed, cancelled=ended.cancelled,
        complete=not ended.cancelled and not reasons, incomplete_reason="; ".join(reasons) or None, seed=plan.run.seed,
        outcomes=_outcomes(arrivals), warnings=ended.warnings, run_warnings=ended.warnings,
        extra={"lost": sentences} if sentences else {},
    )  # fmt: skip
    draft = journal / "summary.draft"
    private(draft).write_bytes(msgspec.msgpack.encode(summary))
    draft.replace(journal / "summary.msgpack")
    return summary


def _merged(parts: Iterable[PhaseCounts]) -> PhaseCounts:
    whole = PhaseCounts()
    for part in parts:
        whole.sent += part.sent
        whole.outcomes = dict(Counter(whole.outcomes) + Counter(part.outcomes))
        whole.errors = dict(Counter(whole.errors) + Counter(part.errors))
        whole.first_ns = min(whole.first_ns or part.first_ns, part.first_ns)
        whole.last_ns = max(whole.last_ns, part.last_ns)
    return whole


def _phase(phase: PhasePlan, counts: PhaseCounts, clock: RunClock) -> PhaseSummary:
    """*clock*: both clocks at one instant, so a difference of the one is a difference of the other."""
    first_ns = counts.first_ns or clock.started_mono_ns
    to_wall_ns = clock.started_wall_ns - clock.started_mono_ns
    outcomes = counts.outcomes
    errors = sorted(counts.errors.items(), key=lambda error: -error[1])
    return PhaseSummary(
        phase.name, phase.kind, phase.index, first_ns + to_wall_ns, max(counts.last_ns, first_ns) + to_wall_ns, results={},
        errors=tuple(ErrorCount(msgspec.json.decode(error, type=ErrorDetails), count) for error, count in errors),
        valid=outcomes.get("completed", 0), failed=outcomes.get("error", 0) + outcomes.get("cancelled", 0),
    )  # fmt: skip


def _arrivals(phase: PhasePlan, counts: PhaseCounts, *, known: bool) -> Arrivals:
    """*known*: every request that was sent is in the journal, so the others were never sent."""
    outcomes, planned = counts.outcomes, phase.planned or counts.sent
    rest = max(0, planned - counts.sent)
    return Arrivals(
        planned=counts.sent + rest, sent=counts.sent, completed=outcomes.get("completed", 0),
        errors=outcomes.get("error", 0), cancelled=outcomes.get("cancelled", 0),
        aborted_in_flight=outcomes.get("aborted", 0), unfinished=counts.sent - sum(outcomes.values()),
        never_sent=rest if known else 0, unknown=0 if known else rest,
    )  # fmt: skip


def _outcomes(arrivals: Arrivals) -> dict[str, int]:
    named = {
        "completed": arrivals.completed, "failed": arrivals.errors, "cancelled": arrivals.cancelled,
        "aborted": arrivals.aborted_in_flight, "unfinished": arrivals.unfinished,
    }  # fmt: skip
    return {name: count for name, count in named.items() if count}
