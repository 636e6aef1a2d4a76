"""A slow beginning: how long, by what factor, and which warmup covers it."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from aiperf.sdk.columns import Floats, Ints
from aiperf.sdk.plan import PhasePlan
from aiperf.sdk.verdict import Evidence, Finding
from aiperf.testing import sample_evidence
from aiperf_verdict_cold_server import ColdServer
from aiperf_verdict_cold_server.beginning import _t_quantile, slow_beginning
from aiperf_verdict_cold_server.contract import ColdServerContract, S, timed
from aiperf_verdict_cold_server.instants import Moments, count_up
from aiperf_verdict_cold_server.requests import ColdRequests, cold_requests
from msgspec.structs import replace


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


def busy(count: int, phase: PhasePlan, size: int | None = None) -> Evidence:
    """Requests of which nothing is even; *size*: of the blocks in which their columns come, None for whole columns."""
    draw = np.random.default_rng(count)
    begun = np.round(np.sort(draw.uniform(0, count / 50, count)), 1) * S  # some at once
    wait, order = draw.lognormal(-1, 0.5, count) * S, draw.permutation(count)
    known = {
        "sent_ns": np.where(draw.random(count) < 0.02, np.nan, begun), "first_token_ns": begun + wait,
        "last_token_ns": begun + 3 * wait, "ended_ns": begun + 4 * wait, "outcome": draw.random(count) < 0.02,
        "entry": draw.integers(0, count // 3, count), "turn": draw.integers(0, 3, count),
        "output_tokens": draw.integers(1, 200, count), "input_tokens": draw.integers(1, 900, count),
    }  # fmt: skip
    known = {name: np.asarray(values, dtype=np.float64)[order] for name, values in known.items()}
    whole = sample_evidence(phase=phase, read_column=lambda name: known.get(name, np.full(count, np.nan)))
    if size is None:
        return whole

    def cut(parts: tuple[Floats | Ints, ...]) -> Iterator[Any]:
        return (tuple(part[at : at + size] for part in parts) for at in range(0, len(parts[0]), size))

    return replace(
        whole, read_columns=lambda names: cut(*whole.columns(*names)), read_ordered=lambda name: cut(*whole.ordered(name))
    )  # fmt: skip


_CLOSED = PhasePlan("profiling", "profiling", 0, "burst", concurrency=64)
_OPEN = PhasePlan("profiling", "profiling", 0, "rate", rate=50.0)


@pytest.mark.parametrize("phase", [_CLOSED, _OPEN])
@pytest.mark.parametrize("size", [1, 7, 300, 1000])
def test_blocks_of_columns_give_what_whole_columns_give(phase: PhasePlan, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aiperf_verdict_cold_server.requests._MOST_ROWS", 300)
    whole, cut = (cold_requests(busy(1000, phase, each), 12_345.0) for each in (None, size))
    assert whole is not None and cut is not None and len(whole.begun_s) > 300
    for name in ColdRequests.__struct_fields__:
        one, other = getattr(whole, name), getattr(cut, name)
        assert one == other if isinstance(one, bool) else one.tobytes() == other.tobytes(), name


def test_moments_have_the_instants_up_to_them() -> None:
    draw = np.random.default_rng(1)
    instants, at = np.sort(draw.integers(0, 40, 200) / 4), np.append(draw.integers(-2, 44, 100) / 4, np.nan)
    right, left = Moments(at), Moments(at, "left")
    count_up((instants[begin : begin + 9] for begin in range(0, 200, 9)), right, left)
    assert right.counts.tolist() == np.searchsorted(instants, at, "right").tolist()
    assert left.counts.tolist() == np.searchsorted(instants, at, "left").tolist()
    for moment, area in zip(at[:-1].tolist(), right.areas[:-1].tolist(), strict=True):
        assert area == pytest.approx(np.maximum(0, moment - instants).sum())


class EvenRequests:
    """Columns of so many requests, made block by block; nobody may ask for a whole one."""

    _SIZE = 1000

    def __init__(self, count: int) -> None:
        def whole(name: str) -> Floats:
            raise AssertionError(f"the whole column {name}")

        self._count = count
        self.evidence = sample_evidence(
            phase=_CLOSED, read_column=whole, read_columns=self._columns, read_ordered=self._ordered
        )  # fmt: skip

    def _block(self, name: str, begin: int) -> Floats:
        places = np.arange(begin, begin + self._SIZE, dtype=np.float64)
        instants = {"sent_ns": 0.0, "first_token_ns": 0.1, "last_token_ns": 0.9, "ended_ns": 1.0}
        return (places / 50 + instants[name]) * S if name in instants else places if name == "entry" else np.zeros(self._SIZE)

    def _columns(self, names: Sequence[str]) -> Iterator[tuple[Floats, ...]]:
        return (tuple(self._block(name, begin) for name in names) for begin in range(0, self._count, self._SIZE))

    def _ordered(self, name: str) -> Iterator[tuple[Ints, Floats]]:
        begins = range(0, self._count, self._SIZE)
        return ((np.arange(begin, begin + self._SIZE), self._block(name, begin)) for begin in begins)


def test_many_requests_take_a_fraction_of_a_column(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aiperf_verdict_cold_server.requests._MOST_ROWS", 300)
    count = 400_000
    evidence = EvenRequests(count).evidence
    tracemalloc.start()
    try:
        found = cold_requests(evidence, 0.0)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert found is not None and 300 <= len(found.begun_s) < 600
    assert most < count * 8 / 2
