"""What contaminated a run is found in runs made up by seed, and nothing is found in clean ones."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from itertools import combinations
from typing import Any

import pytest
from aiperf.sdk.verdict import Evidence, Finding, Verdict
from aiperf_command_simulate.engine import EngineModel
from aiperf_verdict_clock_throttling import ClockThrottling
from aiperf_verdict_cold_server import ColdServer
from aiperf_verdict_other_tenants import OtherTenants
from aiperf_verdict_server_queue import ServerQueue
from aiperf_verdict_warm_cache import WarmCache
from made_runs import MS, MadeLoad, MadeServer, made_run
from msgspec.structs import replace

VERDICTS: tuple[type[Verdict[Any]], ...] = (WarmCache, OtherTenants, ClockThrottling, ColdServer, ServerQueue)
FEW, ALL = 5, 100
"""Runs of a case in each suite, and nightly."""
NARROW = EngineModel(
    prefill_ns=40_000, decode_ns=40 * MS, decode_batch_ns=MS // 2, jitter=0.1, cache_blocks=100_000, max_running=8,
    first_token_ns=400 * MS,
)  # fmt: skip
"""An engine in whose queue requests of ten users spend half of their time to first token."""
CLOSED, CHAT = MadeLoad(rate=None), MadeLoad(rate=None, users=6, turns=4, system=200, prompt=150)
RISING = (MadeLoad(ramp=0.8), MadeLoad(rate=None, users=16, ramp=0.8))


def even(seed: int) -> list[MadeLoad]:
    """Loads that stay: at due times of several kinds, in closed loops, with failures, without streams, without usage."""
    draw = random.Random(f"load {seed}")
    rate = draw.uniform(2, 8)
    return [
        MadeLoad(rate=rate), MadeLoad(rate=rate, burst=4.0), replace(CLOSED, users=draw.randrange(2, 16)),
        MadeLoad(failing=0.1), MadeLoad(streaming=False), MadeLoad(usage=False), MadeLoad(rate=3.0, sweep=True),
    ]  # fmt: skip


def kinds(evidence: Evidence) -> set[str]:
    return {finding.kind for verdict in VERDICTS for finding in found(verdict, evidence)}


def found(verdict: type[Verdict[Any]], evidence: Evidence) -> Iterable[Finding]:
    judged = verdict(None).judge(evidence)
    return (judged,) if isinstance(judged, Finding) else judged or ()


def clean(seed: int) -> Evidence:
    """A run with noise alone: each load, chats that share prefixes on purpose, ramps, ten requests, each engine's page."""
    few = (MadeLoad(rate=2.0, requests=10), MadeLoad(rate=3.0, system=400, prompt=100, usage=False))
    loads = (*even(seed), CHAT, *RISING, *few)
    engine = ("vllm", "sglang", "dynamo", "levels")[seed % 4]
    return made_run(seed, loads[seed % len(loads)], MadeServer(gpus=2, reasons=bool(seed % 2), engine=engine))


def warm(seed: int) -> Evidence:
    return made_run(seed, even(seed)[seed % 7], MadeServer(warm=0.2, engine=("vllm", "sglang")[seed % 2]))


def tenant(seed: int) -> Evidence:
    load = even(seed)[seed % 7]
    return made_run(seed, load, MadeServer(tenant=0.1 * (load.rate or 4.0), engine=("vllm", "sglang")[seed % 2]))


def throttled(seed: int) -> Evidence:
    begin_s = random.Random(f"clock {seed}").uniform(2, 50)
    server = MadeServer(gpus=2, reasons=bool(seed % 2), throttled=(begin_s, 5.0, 0.15))
    return made_run(seed, (*even(seed), *RISING, CHAT)[seed % 10], server)


def cold(seed: int) -> Evidence:
    return made_run(seed, even(seed)[seed % 7], MadeServer(slow=(0.0, 10.0, 1.5)))


def queued(seed: int) -> Evidence:
    loads = (replace(CLOSED, users=10), replace(CLOSED, users=10, streaming=False), MadeLoad(rate=4.4))
    return made_run(seed, loads[seed % 3], MadeServer(model=NARROW, engine=("vllm", "sglang")[seed % 2]))


CASES = {
    "warm_cache": warm, "other_tenants": tenant, "clock_throttling": throttled, "cold_server": cold, "server_queue": queued,
}  # fmt: skip
PARTS: dict[str, dict[str, Any]] = {
    "warm_cache": {"warm": 0.2}, "other_tenants": {"tenant": 0.4}, "cold_server": {"slow": (0.0, 10.0, 1.5)},
    "clock_throttling": {"gpus": 2, "throttled": (30.0, 5.0, 0.15)}, "server_queue": {"model": NARROW},
}  # fmt: skip


def missed(make: Callable[[int], Evidence], kind: str, seeds: int) -> list[int]:
    """The seeds of the runs in which the cause is not found."""
    return [seed for seed in range(seeds) if kind not in kinds(make(seed))]


@pytest.mark.parametrize("kind", CASES)
def test_a_cause_is_found_in_most_runs(kind: str) -> None:
    assert len(missed(CASES[kind], kind, FEW)) <= 1


@pytest.mark.long
@pytest.mark.parametrize("kind", CASES)
def test_a_cause_is_found_in_95_of_100_runs(kind: str) -> None:
    assert len(missed(CASES[kind], kind, ALL)) <= 5


def test_nothing_is_found_in_clean_runs() -> None:
    assert {seed: told for seed in range(12) if (told := kinds(clean(seed)))} == {}


@pytest.mark.long
def test_each_cause_is_found_in_2_of_100_clean_runs_at_most() -> None:
    told = [kinds(clean(seed)) for seed in range(ALL)]
    assert {kind: count for kind in CASES if (count := sum(kind in each for each in told)) > 2} == {}


def both(first: str, second: str, seed: int) -> set[str]:
    load = replace(CLOSED, users=10) if "server_queue" in (first, second) else MadeLoad()
    return kinds(made_run(seed, load, MadeServer(**PARTS[first], **PARTS[second])))


@pytest.mark.parametrize(("first", "second"), [*combinations(PARTS, 2)])
def test_two_causes_at_once_are_both_found(first: str, second: str) -> None:
    assert both(first, second, 1) == {first, second}


@pytest.mark.long
@pytest.mark.parametrize(("first", "second"), [*combinations(PARTS, 2)])
def test_two_causes_at_once_are_both_found_in_95_of_100_runs(first: str, second: str) -> None:
    assert sum(both(first, second, seed) >= {first, second} for seed in range(ALL)) >= 95
