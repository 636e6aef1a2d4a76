"""What a person should hear before believing the numbers, though nothing is wrong with how they were measured."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from aiperf.model import LENGTH_FIELDS
from aiperf.plan import PhasePlan, Plan
from aiperf.summary import Result

if TYPE_CHECKING:
    from aiperf.pipeline import Census

_COLD = 3.0
_COLD_MS = 50.0
_COLD_REQUESTS = 20
_CACHED_SHARE = 0.1


def advice(plan: Plan, phase: PhasePlan, census: Census, results: Mapping[str, Result], *, single: bool) -> list[str]:
    """Sentences on the profiling phase.  *single*: conversations have one turn."""
    found = [*_cold_start(plan, phase, census, results), *_hidden_reasoning(census)]
    if single:
        found += _warm_cache(census, phase)
    found += _mismatches(plan, results)
    return found


def _cold_start(plan: Plan, phase: PhasePlan, census: Census, results: Mapping[str, Result]) -> Iterator[str]:
    """Whether even the fastest of the first wave was far slower than the usual request.

    The fastest, because requests of one wave wait for each other also on a warm server.
    """
    usual = results.get("time_to_first_token") or results.get("request_latency")
    wave = census.opening[: max(1, phase.concurrency or 1)]
    if usual is None or not wave or any(each.kind == "warmup" for each in plan.phases):
        return
    p50_ms, fastest_ms = usual.stats["p50"], min(latency_ns for _, latency_ns in wave) / 1e6
    if usual.stats["count"] >= _COLD_REQUESTS and fastest_ms > max(_COLD * p50_ms, p50_ms + _COLD_MS):
        yield (
            f"the first requests took {fastest_ms:,.0f} ms and more, the usual one {p50_ms:,.0f} ms: the server was cold;"
            " warm it up with --warmup-request-count"
        )


def _hidden_reasoning(census: Census) -> Iterator[str]:
    if census.hidden_reasoning:
        yield (
            f"the server counts reasoning tokens with {_answers(census.hidden_reasoning)} without any to be seen: time to first"
            " token is to the first word behind the reasoning; is a reasoning parser switched on?"
        )


def _warm_cache(census: Census, phase: PhasePlan) -> Iterator[str]:
    share = census.cached_tokens / census.prompt_tokens if census.prompt_tokens else 0.0
    if share > _CACHED_SHARE:
        sent = sum(census.outcomes.values())
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
        free = not LENGTH_FIELDS & plan.extra.keys()
        hint = "; where the server knows it, --extra-inputs ignore_eos:true or min_tokens makes it keep to them" if free else ""
        have = "doesn't" if lengths.stats["avg"] == 1 else "don't"
        yield f"{_answers(lengths.stats['avg'])} {have} have the length that was asked for{hint}"


def _answers(count: float) -> str:
    return "1 answer" if count == 1 else f"{count:,.0f} answers"
