"""Clocks that are held down: how far, how long and why."""

from __future__ import annotations

import numpy as np
import pytest
from aiperf.sdk.verdict import Evidence, Finding
from aiperf.testing import sample_evidence
from aiperf_verdict_clock_throttling import ClockThrottling
from aiperf_verdict_clock_throttling.contract import ClockThrottlingContract, lower, sampled
from aiperf_verdict_clock_throttling.drops import drops
from aiperf_verdict_clock_throttling.gpu_samples import _loaded


class TestItKeepsTheContract(ClockThrottlingContract):
    pass


def judged(evidence: Evidence) -> Finding:
    (finding,) = ClockThrottling(None).judge(evidence)
    return finding


def test_drop_time_and_reason_are_in_the_sentence() -> None:
    finding = judged(sampled(lower, _power))
    assert finding.sentence.startswith(
        "the SM clock of GPU 0 NVIDIA H100 was 15 % lower, 1,683 instead of 1,980 MHz, for 5.0 of 60 s, from 20.0 to 24.7 s:"
        " held down by the limit of power, as the driver says"
    )
    assert (finding.confidence, finding.numbers["reasons"], finding.numbers["gpus"]) == (1.0, 4, 1)


def _power(at_s: float) -> int:
    return 4 if 20 <= at_s < 25 else 0


@pytest.mark.parametrize(("mask", "confidence", "words"), [
    (None, 0.8, "not known: the driver's reasons"), (0, 0.5, "the driver gave no reason"),
    (64, 1.0, "the temperature (hardware)"),
])  # fmt: skip
def test_confidence_follows_the_reasons(mask: int | None, confidence: float, words: str) -> None:
    finding = judged(sampled(lower, None if mask is None else lambda at_s: mask if 20 <= at_s < 25 else 0))
    assert finding.confidence == confidence and words in finding.sentence


def test_a_clock_that_was_high_for_a_while_is_the_usual_one() -> None:
    finding = judged(sampled(lambda at_s: 1980.0 if at_s < 15 else 1700.0))
    assert finding.numbers["usual_mhz"] == 1980 and finding.numbers["lasted_s"] == pytest.approx(45, abs=1)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("noise", ["normal", "uniform", "laplace", "wander"])
def test_noise_alone_is_no_drop(noise: str, seed: int) -> None:
    draw = np.random.default_rng(seed)
    made = {
        "normal": draw.normal(0, 0.05, 600), "uniform": draw.uniform(-0.1, 0.1, 600), "laplace": draw.laplace(0, 0.03, 600),
        "wander": np.convolve(draw.normal(0, 0.02, 609), np.ones(10) / 10, "valid"),
    }  # fmt: skip
    assert drops(np.arange(600) / 3, 1980 * (1 + made[noise]), 600).drops == ()


@pytest.mark.parametrize(("length", "found"), [(2, False), (4, True)])
def test_a_drop_lasts_a_second(length: int, *, found: bool) -> None:
    clock = np.full(180, 1980.0)
    clock[60 : 60 + length] = 1500.0
    assert bool(drops(np.arange(180) / 3, clock, 180).drops) is found


@pytest.mark.parametrize("size", [1, 2, 3, 8])
def test_times_with_a_request_in_flight_are_joined_block_by_block(size: int) -> None:
    sent = np.array([7.0, 0.0, np.nan, 1.0, 9.0, 3.0, 2.5, 20.0]) * 1e9
    ended = np.array([8.0, 2.0, 30.0, 1.5, np.nan, 4.0, 3.0, 21.0]) * 1e9
    known = {"sent_ns": sent, "ended_ns": ended}
    evidence = sample_evidence(
        read_columns=lambda names: (tuple(known[name][at : at + size] for name in names) for at in range(0, 8, size))
    )
    begins, ends = _loaded(evidence, 0.5)
    assert (begins.tolist(), ends.tolist()) == ([-0.5, 2.0, 6.5, 19.5], [1.5, 3.5, 7.5, 20.5])
