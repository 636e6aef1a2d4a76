"""Whether a finished run counts: what was overridden, contexts that were too long, and how far its metrics reach."""

from __future__ import annotations

import logging
import math
import os
from collections.abc import Iterator
from typing import Any

import numpy as np
from aiperf import ConfigError, Evidence
from aiperf.sdk.scenario import ScenarioFigure, ScenarioVerdict
from aiperf_driver_agentic.overflow import WORDS, overflow_words
from msgspec import Struct

from aiperf_scenario_agentx.locks import SWEEP
from aiperf_scenario_agentx.rules import NAME, SHORTEST_S

OVERRIDE, OVERFLOWS, CANCELLED = "unsafe_override", "context_overflow_rate_exceeded", "run_cancelled"
UNCOVERED, UNKNOWN_COVERAGE = "insufficient_profile_metric_coverage", "profile_metric_coverage_validation_failed"
OF_SWEEP, UNJUDGED = "scenario_with_sweep", "scenario_reresolve_failed"
REQUIRED = 0.95
"""The share of the duration up to which one of the two metrics must reach."""
LIMIT_VARIABLE = "AIPERF_AGENTX_CONTEXT_OVERFLOW_RATE_LIMIT"
LIMIT = 0.01
"""The share of requests, from 0 to 1, that may be longer than the model's context."""
_COMPLETED = 0
"""The outcome of a request with a whole answer, as the column ``outcome`` has it."""

log = logging.getLogger(__name__)


class Coverage(Struct, frozen=True):
    """How far the metrics of a phase reach, as shares of its configured duration from 0 to 1."""

    phase: str
    duration_s: float
    first_token: float
    between_tokens: float

    @property
    def enough(self) -> bool:
        return max(self.first_token, self.between_tokens) >= REQUIRED

    def sentence(self) -> str:
        """Why it isn't enough."""
        phase = f"the {self.duration_s:g} s of the phase {self.phase}"
        if not self.first_token:
            return f"no answer had a first token in {phase}, and the last one must come behind {100 * REQUIRED:g} % of them"
        return (
            f"the last first token came at {100 * self.first_token:.1f} % of {phase}, and the last answer with a time between"
            f" tokens ended at {100 * self.between_tokens:.1f} %: one of the two must reach {100 * REQUIRED:g} %"
        )

    def entry(self) -> dict[str, Any]:
        return {
            "phase_name": self.phase, "expected_duration_seconds": self.duration_s, "required_ratio": REQUIRED,
            "ttft_ratio": self.first_token, "inter_token_latency_ratio": self.between_tokens,
        }  # fmt: skip


class Overflows(Struct, frozen=True):
    """Requests whose context was too long: *skipped* ended their conversations, *failed* are errors.  of: all that ended."""

    skipped: int
    failed: int
    of: int
    limit: float

    @property
    def all(self) -> int:
        return self.skipped + self.failed

    @property
    def too_many(self) -> bool:
        return self.of > 0 and self.all / self.of > self.limit


def verdict(evidence: Evidence) -> ScenarioVerdict:
    """The verdict on the run (spec: agentic §4)."""
    overridden, overflows = evidence.plan.run.overridden, overflows_of(evidence)
    reasons, notes, metadata = list[str](), list[str](), dict[str, Any]()
    if overridden:
        reasons.append(OVERRIDE)
        notes += [f"not allowed, and overridden: {each.sentence(NAME)}" for each in overridden]
    if overflows.all:
        share = f"{overflows.all:,} of {overflows.of:,} requests were longer than the model's context"
        notes.append(f"{share}, {100 * overflows.all / overflows.of:.2f} %; at most {100 * overflows.limit:g} % are allowed")
    if overflows.too_many:
        reasons.append(OVERFLOWS)
    if evidence.summary.cancelled:
        reasons.append(CANCELLED)
    runtime: list[str] = []
    coverage = list[Coverage]()
    try:
        coverage = list(coverages(evidence))
    except Exception as error:  # whatever a journal lacks, the run can't be shown to have been measured to its end
        log.debug("the coverage can't be computed", exc_info=True)
        runtime.append(UNKNOWN_COVERAGE)
        notes.append(f"how far its metrics reach can't be computed: {type(error).__name__}: {error}")
    if coverage:
        metadata["metric_duration_coverage"] = [each.entry() for each in coverage]
    for each in coverage:
        if not each.enough:
            runtime.append(UNCOVERED)
            notes.append(each.sentence())
    runtime = list(dict.fromkeys(runtime))
    reasons += runtime
    fault = f"the run doesn't count for {NAME}: {', '.join(runtime)}" if runtime else ""
    figures = (
        ScenarioFigure("context_overflow_count", "Context Overflow Count", "requests", overflows.all),
        ScenarioFigure("skipped_context_overflow_count", "Skipped Context Overflow Count", "requests", overflows.skipped),
    )
    of_sweep = [OF_SWEEP] if any(each.why == SWEEP for each in overridden) else []
    return ScenarioVerdict(
        NAME, not reasons, tuple(reasons), tuple(notes), _told(reasons) | metadata,
        {"runtime_submission_invalid_reasons": runtime}, fault, _told([*reasons, *of_sweep]), _told([UNJUDGED]), figures,
    )  # fmt: skip


def _told(reasons: list[str]) -> dict[str, Any]:
    """Keys of ``metadata``; the reasons are absent where there are none."""
    told: dict[str, Any] = {"scenario": NAME, "submission_valid": not reasons}
    return told | ({"submission_invalid_reasons": reasons} if reasons else {})


def overflows_of(evidence: Evidence) -> Overflows:
    """The requests of the profiling phase whose context was too long."""
    summary, words = evidence.summary, _words()
    skipped = summary.outcomes.get("overflowed", 0)
    failed = sum(each.count for each in evidence.errors if any(word in each.error.message.lower() for word in words))
    return Overflows(skipped, failed, summary.valid + summary.failed + skipped, overflow_limit())


def _words() -> tuple[str, ...]:
    """The driver's words for a context that is too long; the usual ones where the variable is no list of texts."""
    try:
        return overflow_words()
    except ConfigError as error:  # a report may be made in another environment than the run
        log.warning("%s; the usual words are used", error)
        return WORDS


def overflow_limit() -> float:
    """The share of requests that may be longer than the model's context, 0 to 1."""
    text = os.environ.get(LIMIT_VARIABLE, "").strip()
    try:
        limit = float(text) if text else LIMIT
    except ValueError:
        limit = -1.0
    if not 0 <= limit <= 1:
        log.warning("%s is no share from 0 to 1: %s; %g is used", LIMIT_VARIABLE, text, LIMIT)
        limit = LIMIT
    return limit


def coverages(evidence: Evidence) -> Iterator[Coverage]:
    """The coverage of the profiling phase, where it was to last long enough and nobody cancelled it."""
    phase, summary = evidence.phase, evidence.summary
    if phase.duration_ns is None or phase.duration_ns < SHORTEST_S * 10**9 or summary.cancelled:
        return
    (window,) = (each for each in evidence.windows if each.phase == phase.index)
    begin_ns = window.begin_ns - evidence.zero_ns
    first_ns = ended_ns = -math.inf
    names = ("outcome", "first_token_ns", "ended_ns", "output_tokens", "reasoning_tokens")
    for outcome, first, ended, made, thoughts in evidence.columns(*names):
        good = outcome == _COMPLETED
        spaced = good & ~np.isnan(first) & (np.nan_to_num(made) + np.nan_to_num(thoughts) > 1)
        first_ns = max(first_ns, float(np.fmax.reduce(first[good], initial=-math.inf)))
        ended_ns = max(ended_ns, float(np.fmax.reduce(ended[spaced], initial=-math.inf)))
    duration_ns = float(phase.duration_ns)

    def share(latest_ns: float) -> float:
        return min(1.0, max(0.0, (latest_ns - begin_ns) / duration_ns))

    yield Coverage(phase.name, duration_ns / 1e9, share(first_ns), share(ended_ns))
