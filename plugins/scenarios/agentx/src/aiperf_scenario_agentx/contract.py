"""The contract of scenarios for this one.  For tests, and for ``aiperf plugins validate``."""

from __future__ import annotations

from typing import Any

import numpy as np
from aiperf import PhasePlan, Plan
from aiperf.sdk.cache_bust import CacheBust
from aiperf.sdk.columns import Floats
from aiperf.sdk.model import ErrorDetails
from aiperf.sdk.scenario import Conflict
from aiperf.sdk.series import Window
from aiperf.sdk.verdict import ErrorSeen, Evidence
from aiperf.testing import ScenarioContract, asked_for, sample_evidence
from msgspec.structs import replace

from aiperf_scenario_agentx import AgentX
from aiperf_scenario_agentx.locks import SWEEP
from aiperf_scenario_agentx.rules import AGENTIC, PUBLIC

NS_PER_S = 10**9
HALF_HOUR = PhasePlan("profiling", "profiling", 0, AGENTIC, duration_ns=1800 * NS_PER_S, concurrency=8)
WINDOW = Window(0, 5 * NS_PER_S, 1805 * NS_PER_S)


def plan(**changes: Any) -> Plan:
    """The plan of a run that counts; *changes*: fields of any section."""
    usual: dict[str, Any] = {
        "streaming": True, "phases": (HALF_HOUR,), "extra": {"ignore_eos": True}, "name": PUBLIC[-1],
        "cache_bust": CacheBust.FIRST_TURN_PREFIX,
    }  # fmt: skip
    return sample_evidence().plan.replacing(**usual | changes)


def columns(last_s: float = 1799.0, tokens: float = 20.0) -> dict[str, Floats]:
    """Requests of which the last first token comes *last_s* after the begin of the phase, and the last answer ends then."""
    instants = np.array([10.0, last_s / 2, last_s]) * NS_PER_S + WINDOW.begin_ns
    return {
        "outcome": np.zeros(3), "first_token_ns": instants, "ended_ns": instants, "output_tokens": np.full(3, tokens),
        "reasoning_tokens": np.full(3, np.nan),
    }  # fmt: skip


def evidence(
    kept: dict[str, Floats] | None = None, overridden: tuple[Conflict, ...] = (), phase: PhasePlan = HALF_HOUR, **changes: Any
) -> Evidence:
    """The evidence of a run that counts, with 1,000 good requests.  *changes*: as of :func:`aiperf.testing.sample_evidence`."""
    kept = columns() if kept is None else kept
    usual: dict[str, Any] = {"valid": 1000, "windows": (WINDOW,), "read_column": kept.__getitem__} | changes
    made = plan(phases=(phase,))
    return sample_evidence(plan=made.replacing(overridden=overridden), phase=phase, **usual)


SHORT = Conflict("--benchmark-duration", "60", "900 s or more", "lanes need time")
LIST = Conflict("--concurrency", "with several values", "one value of each option", SWEEP)
LONG = "This model's maximum context length is 4096 tokens"


def too_long(count: int) -> tuple[ErrorSeen, ...]:
    """Requests that the server refuses because of their length."""
    return (ErrorSeen(ErrorDetails(LONG, "Bad Request", 400), count, 1.0),)


class AgentXContract(ScenarioContract):
    scenario = AgentX
    plans = (
        (plan(), asked_for(), ()),
        (plan(streaming=False), asked_for(streaming=False), ("--streaming",)),
        (plan(name=""), asked_for(), ("--public-dataset",)),
        (
            plan(phases=(replace(HALF_HOUR, duration_ns=60 * NS_PER_S),)), asked_for("--concurrency", benchmark_duration="60"),
            ("--benchmark-duration", "--concurrency"),
        ),
    )  # fmt: skip
    cases = (
        (evidence(), ()),
        (evidence(overridden=(SHORT,)), ("unsafe_override",)),
        (evidence(outcomes={"completed": 1000, "overflowed": 11}), ("context_overflow_rate_exceeded",)),
        (evidence(errors=too_long(12)), ("context_overflow_rate_exceeded",)),
        (evidence(cancelled=True), ("run_cancelled",)),
        (evidence(columns(900.0)), ("insufficient_profile_metric_coverage",)),
        (evidence({}), ("profile_metric_coverage_validation_failed",)),
        (
            evidence(columns(900.0), (LIST,), outcomes={"overflowed": 99}),
            ("unsafe_override", "context_overflow_rate_exceeded", "insufficient_profile_metric_coverage"),
        ),
    )  # fmt: skip
