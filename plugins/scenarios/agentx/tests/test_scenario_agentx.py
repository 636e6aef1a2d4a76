"""The locks of ``inferencex-agentx-mvp``, in their order, and its verdicts on made-up runs."""

from __future__ import annotations

from typing import Any

import pytest
from aiperf import Plan
from aiperf.sdk.cache_bust import CacheBust
from aiperf.sdk.scenario import AskedSettings, Conflict, ScenarioVerdict, joined
from aiperf.testing import asked_for
from aiperf_scenario_agentx import AgentX
from aiperf_scenario_agentx.contract import (
    HALF_HOUR,
    LIST,
    NS_PER_S,
    SHORT,
    AgentXContract,
    columns,
    evidence,
    plan,
    too_long,
)
from aiperf_scenario_agentx.rules import PUBLIC
from msgspec.structs import replace


class TestItKeepsTheContract(AgentXContract):
    pass


def conflicts(made: Plan, asked: AskedSettings) -> list[Conflict]:
    return list(AgentX().conflicts(made, asked))


def weka(name: str, kind: str = "weka_trace", source: str | None = None) -> Plan:
    """A plan with this public name, or with the format itself."""
    made = plan(name=name, source=source)
    return made.replacing(dataset=replace(made.plugins.dataset, name=kind))


PHASES = {name: (replace(HALF_HOUR, schedule=name),) for name in ("request_rate", "user_centric", "fixed_schedule", "burst")}


@pytest.mark.parametrize(
    ("made", "asked", "flags"),
    [
        (plan(phases=PHASES["request_rate"]), asked_for(request_rate="5"), ["--request-rate"]),
        (plan(phases=PHASES["user_centric"]), asked_for(user_centric_rate="5"), ["--user-centric-rate"]),
        (plan(phases=PHASES["fixed_schedule"]), asked_for(fixed_schedule=True), ["--fixed-schedule"]),
        (plan(phases=PHASES["burst"]), asked_for(scheduling_mode="burst"), ["--scheduling-mode"]),
        (plan(streaming=False), asked_for(), ["--endpoint-type nothing"]),
        (plan(extra={"ignore_eos": False}), asked_for(extra_inputs=["ignore_eos:false"]), ["--extra-inputs"]),
        (plan(extra={"ignore_eos": 0}), asked_for(extra_inputs=["ignore_eos:0"]), ["--extra-inputs"]),
        (plan(extra={"nvext": {"ignore_eos": "No"}}), asked_for(), ["--extra-inputs"]),
        (plan(), asked_for(ignore_trace_delays=True), ["--ignore-trace-delays"]),
        (plan(), asked_for(synthesis_max_isl="5"), ["--synthesis-max-isl"]),
        (weka("", "mooncake_trace", "t.jsonl"), asked_for(input_file="t.jsonl"), ["--input-file"]),
        (weka("sharegpt", "public"), asked_for(public_dataset="sharegpt"), ["--public-dataset"]),
        (weka("semianalysis_cc_traces_weka"), asked_for(public_dataset="semianalysis_cc_traces_weka"), ["--public-dataset"]),
        (weka("", source="t.jsonl"), asked_for(input_file="t.jsonl"), ["--input-file"]),
        (weka(PUBLIC[0], source="t.jsonl"), asked_for(input_file="t.jsonl"), ["--input-file"]),
        (weka("weka_hf"), asked_for(hf_weka_dataset="there"), ["--hf-weka-dataset"]),
        (weka("weka_hf"), asked_for(hf_weka_dataset="semianalysisai/cc-traces-weka-062126"), []),
        (plan(cache_bust=CacheBust.NONE), asked_for(cache_bust="none"), ["--cache-bust"]),
        (plan(cache_bust=CacheBust.SYSTEM_PREFIX), asked_for(cache_bust="system_prefix"), ["--cache-bust"]),
        (plan(phases=(replace(HALF_HOUR, duration_ns=899 * NS_PER_S),)), asked_for(benchmark_duration="899"),
            ["--benchmark-duration"]),
        (plan(phases=(replace(HALF_HOUR, duration_ns=900 * NS_PER_S),)), asked_for(benchmark_duration="15m"), []),
        (plan(), asked_for(trajectory_start_min_ratio="0.25"), []),
        (plan(), asked_for(inter_turn_delay_cap_seconds="3"), ["--inter-turn-delay-cap-seconds"]),
        (plan(), asked_for(trace_idle_gap_cap_seconds="300"), []),
        (plan(), asked_for(system_idle_gap_cap_seconds="9"), ["--system-idle-gap-cap-seconds"]),
        (plan(), asked_for(system_idle_gap_cap_seconds="10.0"), []),
        (plan(), asked_for("--concurrency", "--isl"), ["--concurrency", "--isl"]),
    ],
)  # fmt: skip
def test_each_lock_names_what_breaks_it(made: Plan, asked: AskedSettings, flags: list[str]) -> None:
    assert [conflict.flag for conflict in conflicts(made, asked)] == flags


@pytest.mark.parametrize("name", PUBLIC)
def test_every_set_with_subagents_counts(name: str) -> None:
    assert conflicts(weka(name), asked_for(public_dataset=name)) == []


def test_locks_are_told_in_their_order() -> None:
    made = plan(
        phases=(replace(HALF_HOUR, schedule="request_rate", duration_ns=60 * NS_PER_S),), streaming=False,
        extra={"ignore_eos": False}, name="", cache_bust=CacheBust.NONE,
    )  # fmt: skip
    made = made.replacing(dataset=replace(made.plugins.dataset, name="weka_trace"), source="w.jsonl")
    asked = asked_for(
        "--concurrency", request_rate="5", streaming=False, extra_inputs=["ignore_eos:false"], ignore_trace_delays=True,
        synthesis_max_isl="9", input_file="w.jsonl", cache_bust="none", benchmark_duration="60",
        inter_turn_delay_cap_seconds="1", system_idle_gap_cap_seconds="1",
    )  # fmt: skip
    assert [each.flag for each in conflicts(made, asked)] == [
        "--request-rate", "--streaming", "--extra-inputs", "--ignore-trace-delays", "--synthesis-max-isl", "--input-file",
        "--cache-bust", "--benchmark-duration", "--inter-turn-delay-cap-seconds", "--system-idle-gap-cap-seconds",
        "--concurrency",
    ]  # fmt: skip


def test_no_override_allows_prompts_that_are_made_or_markers_of_a_warmup() -> None:
    synthetic = conflicts(weka("", "synthetic"), asked_for())
    assert [(each.flag, each.final) for each in synthetic] == [("--public-dataset", True)]
    isolated = conflicts(plan(cache_bust=CacheBust.WARMUP_ISOLATION_SYSTEM), asked_for(cache_bust="warmup_isolation_system"))
    assert [(each.flag, each.final) for each in isolated] == [("--cache-bust", True)]


@pytest.mark.parametrize(
    ("asked", "filled"),
    [
        (asked_for(), {"--scheduling-mode": "agentic_replay", "--extra-inputs": ["ignore_eos:true"]}),
        (asked_for(request_rate="5"), {"--scheduling-mode": ...}),
        (asked_for(scheduling_mode="agentic-replay"), {"--system-idle-gap-cap-seconds": "10"}),
        (asked_for(scheduling_mode="agentic_replay", request_rate="5"), {"--system-idle-gap-cap-seconds": ...}),
        (asked_for(request_rate="5", warmup_grace_period="9"), {"--warmup-grace-period": ...}),
        (asked_for(fixed_schedule=False), {"--scheduling-mode": "agentic_replay"}),
        (asked_for(extra_inputs=["temperature:0"]), {"--extra-inputs": ["ignore_eos:true"]}),
        (asked_for(extra_inputs=["ignore_eos:false"]), {"--extra-inputs": ...}),
        (asked_for(extra_inputs=['{"ignore_eos": true}']), {"--extra-inputs": ...}),
        (asked_for(warmup_grace_period="1800"), {"--agentic-warmup-grace-period": "1800", "--warmup-grace-period": None}),
        (asked_for(warmup_grace_period="1800", agentic_warmup_grace_period="5"), {"--warmup-grace-period": ...}),
    ],
)
def test_it_fills_in_what_makes_a_run_count(asked: AskedSettings, filled: dict[str, Any]) -> None:
    made = AgentX.fill(asked)
    assert made["--benchmark-duration"] == "1800" and made["--cache-bust"] == "first_turn_prefix" and made["--streaming"]
    assert {flag: made.get(flag, ...) for flag in filled} == filled


def judged(*arguments: Any, **changes: Any) -> ScenarioVerdict:
    return AgentX().judge(evidence(*arguments, **changes))


def counts(found: ScenarioVerdict) -> dict[str, float]:
    return {each.tag: each.value for each in found.figures}


def test_a_run_that_counts_has_no_reasons_in_its_metadata() -> None:
    found = judged()
    assert (found.valid, found.fault, found.notes) == (True, "", ())
    (coverage,) = found.metadata.pop("metric_duration_coverage")
    assert found.metadata == {"scenario": "inferencex-agentx-mvp", "submission_valid": True}
    assert coverage == {
        "phase_name": "profiling", "expected_duration_seconds": 1800.0, "required_ratio": 0.95,
        "ttft_ratio": pytest.approx(1799 / 1800), "inter_token_latency_ratio": pytest.approx(1799 / 1800),
    }  # fmt: skip
    assert found.fields == {"runtime_submission_invalid_reasons": []}
    assert counts(found) == {"context_overflow_count": 0, "skipped_context_overflow_count": 0}


@pytest.mark.parametrize(
    ("skipped", "failed", "good", "valid"),
    [(10, 0, 990, True), (11, 0, 989, False), (0, 10, 990, True), (5, 6, 989, False), (0, 0, 0, True)],
)
def test_overflows_count_above_their_share(skipped: int, failed: int, good: int, valid: bool) -> None:
    found = judged(outcomes={"overflowed": skipped}, errors=too_long(failed), failed=failed, valid=good)
    assert found.valid == valid
    assert counts(found) == {"context_overflow_count": skipped + failed, "skipped_context_overflow_count": skipped}


def test_the_share_and_the_words_are_the_users(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIPERF_AGENTX_CONTEXT_OVERFLOW_RATE_LIMIT", "0.5")
    assert judged(errors=too_long(400), failed=400, valid=600).valid
    monkeypatch.setenv("AIPERF_AGENTX_CONTEXT_OVERFLOW_RATE_LIMIT", "much")
    assert not judged(errors=too_long(400), failed=400, valid=600).valid
    for none in ("[]", '[""]'):
        monkeypatch.setenv("AIPERF_AGENTX_CONTEXT_OVERFLOW_SUBSTRINGS", none)
        assert judged(errors=too_long(400), failed=400, valid=600).valid
    monkeypatch.setenv("AIPERF_AGENTX_CONTEXT_OVERFLOW_SUBSTRINGS", "context")
    assert not judged(errors=too_long(400), failed=400, valid=600).valid


def test_a_short_run_or_a_cancelled_one_needs_no_coverage() -> None:
    minute = replace(HALF_HOUR, duration_ns=60 * NS_PER_S)
    short = judged({}, (SHORT,), minute)
    assert short.reasons == ("unsafe_override",) and "metric_duration_coverage" not in short.metadata
    assert judged({}, cancelled=True).reasons == ("run_cancelled",)


@pytest.mark.parametrize(
    ("last_s", "tokens", "enough"), [(1710.0, 20.0, True), (1709.0, 20.0, False), (1710.0, 1.0, True), (9000.0, 20.0, True)]
)
def test_a_metric_must_reach_near_the_end(last_s: float, tokens: float, enough: bool) -> None:
    found = judged(columns(last_s, tokens))
    assert found.valid == enough and bool(found.fault) == (not enough)
    reasons = [] if enough else ["insufficient_profile_metric_coverage"]
    assert found.fields["runtime_submission_invalid_reasons"] == reasons
    assert found.metadata.get("submission_invalid_reasons", []) == reasons


def test_answers_that_failed_reach_nowhere() -> None:
    kept = columns()
    kept["outcome"][1:] = 1.0
    assert judged(kept).reasons == ("insufficient_profile_metric_coverage",)
    kept["outcome"][0] = 1.0
    silent = judged(kept)
    assert silent.reasons == ("insufficient_profile_metric_coverage",)
    assert silent.notes == (
        "no answer had a first token in the 1800 s of the phase profiling, and the last one must come behind 95 % of them",
    )


def test_an_aggregate_says_that_it_is_of_a_sweep_or_not_judged_whole() -> None:
    swept = judged(None, (LIST,))
    assert swept.reasons == ("unsafe_override",)
    told = joined([swept, judged()])
    assert told == {
        "scenario": "inferencex-agentx-mvp", "submission_valid": False,
        "submission_invalid_reasons": ["unsafe_override", "scenario_with_sweep"],
    }  # fmt: skip
    assert joined([judged(), None])["submission_invalid_reasons"] == ["scenario_reresolve_failed"]
    assert joined([judged(), judged()]) == {"scenario": "inferencex-agentx-mvp", "submission_valid": True}
