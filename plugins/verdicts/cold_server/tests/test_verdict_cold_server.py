"""A slow beginning: how long, by what factor, and which warmup covers it."""

from __future__ import annotations

import numpy as np
import pytest
from aiperf.sdk.verdict import Evidence, Finding
from aiperf_verdict_cold_server import ColdServer
from aiperf_verdict_cold_server.beginning import _t_quantile, slow_beginning
from aiperf_verdict_cold_server.contract import ColdServerContract, timed


class TestItKeepsTheContract(ColdServerContract):
    pass


def judged(evidence: Evidence) -> Finding:
    (finding,) = ColdServer(None).judge(evidence)
    return finding


def test_time_factor_and_warmup_are_in_the_sentence() -> None:
    finding = judged(timed(lambda at_s: 1.5 if at_s < 10 else 1.0))
    assert finding.sentence == (
        "the server was cold: in the first 10.0 s its time to first token was 1.5 times and its inter-token latency was 1.5"
        " times that of later requests under the same load (40 requests began then, and are in all statistics);"
        " --warmup-duration 11 would cover it"
    )
    assert finding.numbers["cold_s"] == pytest.approx(10, abs=0.5) and finding.confidence == 0.8


def test_after_a_warmup_a_longer_one_is_advised() -> None:
    finding = judged(timed(lambda at_s: 1.5 if at_s < 10 else 1.0, warmed=True))
    assert "a warmup that is 11 s longer would cover it" in finding.sentence


def test_a_slow_first_request_is_told() -> None:
    finding = judged(timed(lambda at_s: 9.0 if not at_s else 1.0, 30))
    assert finding.sentence.startswith("the server was cold: the first request took 900 ms or more until the first token")
    assert finding.numbers["wave"] == 1


@pytest.mark.parametrize(("factor", "there"), [(1.1, False), (1.3, True)])
def test_a_small_factor_is_not_spoken_of(factor: float, *, there: bool) -> None:
    assert bool(list(ColdServer(None).judge(timed(lambda at_s: factor if at_s < 10 else 1.0)))) is there


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("noise", ["lognormal", "pareto", "wander"])
def test_noise_alone_is_no_slow_beginning(noise: str, seed: int) -> None:
    draw = np.random.default_rng(seed)
    made = {
        "lognormal": draw.lognormal(0, 0.5, 300), "pareto": 1 + draw.pareto(1.5, 300),
        "wander": np.exp(np.convolve(draw.normal(0, 0.3, 319), np.ones(20) / 20, "valid")),
    }  # fmt: skip
    assert slow_beginning(np.arange(300) / 5, made[noise], np.zeros(300, dtype=np.int64), 60.0) is None


def test_requests_under_another_load_are_not_compared() -> None:
    times = np.where(np.arange(300) < 60, 2.0, 1.0)
    same = np.zeros(300, dtype=np.int64)
    assert slow_beginning(np.arange(300) / 5, times, same, 60.0) is not None
    assert slow_beginning(np.arange(300) / 5, times, np.where(np.arange(300) < 60, 1, 0), 60.0) is None


@pytest.mark.parametrize(
    ("tail", "freedom", "t"),
    [(0.05, 1, 6.3138), (0.025, 2, 4.3027), (0.001, 3, 10.2145), (0.01, 4, 3.7469), (0.001, 7, 4.7853), (0.001, 11, 4.0247)],
)
def test_quantiles_of_students_t(tail: float, freedom: int, t: float) -> None:
    assert _t_quantile(tail, freedom) == pytest.approx(t, rel=1e-4)
