"""Draws and due times: the same numbers for ever, and of the right shape."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from aiperf.errors import ConfigError, PluginError
from aiperf.schedule import arrivals
from aiperf.schedule.request_rate import Burst, RequestRate
from aiperf.schedule.samplers import random, sampler_of, sequential, shuffle
from aiperf.sdk import draws
from aiperf.sdk.draws import BLOCK, shuffled, uniform, uniforms
from aiperf.sdk.plan import PhasePlan
from aiperf.sdk.schedule import ScheduleContext
from aiperf.testing.plans import sample_plan, sample_ref
from hypothesis import given, settings
from hypothesis import strategies as st

GAPS = {"constant": arrivals.constant_gaps, "poisson": arrivals.poisson_gaps, "gamma": arrivals.gamma_gaps}
seeds = st.integers(0, 2**64 - 1)


PINNED_UNIFORMS = [0.3274966726344634, 0.24424376876780535, 0.247489131613069]
PINNED_DUE = {"poisson": [55813869, 126293294, 184077979], "gamma": [9196100, 45109806, 46482029]}
PINNED_SHUFFLE = [7, 6, 1, 0, 4, 5, 2, 3, 9, 8]


def phase(**changes: object) -> PhasePlan:
    fields: dict[str, object] = {"name": "profiling", "kind": "profiling", "index": 0, "schedule": "request_rate", "rate": 20.0}
    return PhasePlan(**{**fields, **changes})  # type: ignore[arg-type]


def rate(pattern: str = "poisson", seed: int = 7, **changes: object) -> RequestRate:
    return RequestRate(ScheduleContext(seed, phase(pattern=pattern, **changes), GAPS[pattern]))


def by_hand(seed: int, stream: str, block: int, lane: int, i: int) -> float:
    """SplitMix64 as published, from the key that the module's docstring promises."""
    state = int.from_bytes(hashlib.sha256(f"{seed}:{stream}:{block}:{lane}".encode()).digest()[:8], "big")
    for _ in range(i + 1):
        state = (state + 0x9E3779B97F4A7C15) % 2**64
    mixed = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) % 2**64
    mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) % 2**64
    mixed ^= mixed >> 31
    return float((mixed >> 11) + 0.5) * 2.0**-53


@given(seeds, st.text(max_size=20), st.integers(0, 10**6), st.integers(0, 9), st.integers(0, 40))
def test_uniforms_are_splitmix_counted_from_a_hashed_key(seed: int, stream: str, block: int, lane: int, i: int) -> None:
    stream = stream.encode("utf-8", "replace").decode()
    assert uniforms(seed, stream, block, i + 1, lane)[i] == by_hand(seed, stream, block, lane, i)


@given(seeds, st.integers(0, 3), st.integers(0, BLOCK - 1))
def test_one_number_is_the_same_as_that_of_many(seed: int, block: int, i: int) -> None:
    assert uniform(seed, "s", block * BLOCK + i) == uniforms(seed, "s", block, i + 1)[i]


def test_numbers_of_a_seed_never_change() -> None:
    """Pinned: a run of last year, repeated with its seed, must be the same run."""
    assert [uniform(42, "arrivals:profiling", i) for i in (0, 1, BLOCK)] == PINNED_UNIFORMS
    assert rate("poisson", 42).due_block(0, 3).tolist() == PINNED_DUE["poisson"]
    assert rate("gamma", 42, smoothness=0.5).due_block(0, 3).tolist() == PINNED_DUE["gamma"]
    assert [shuffled(42, 0, 10, i) for i in range(10)] == PINNED_SHUFFLE


def test_uniforms_lie_inside_zero_and_one_and_fill_it_evenly() -> None:
    drawn = np.concatenate([uniforms(1, "even", block, BLOCK) for block in range(25)])
    assert drawn.min() > 0.0
    assert drawn.max() < 1.0
    assert abs(drawn.mean() - 0.5) < 0.005
    counts, _ = np.histogram(drawn, 16, (0, 1))
    assert abs(counts / len(drawn) * 16 - 1).max() < 0.05


def test_a_block_has_no_more_numbers_than_it_has() -> None:
    with pytest.raises(ValueError, match="4096"):
        uniforms(1, "s", 0, BLOCK + 1)


def test_streams_blocks_lanes_and_seeds_share_no_numbers() -> None:
    kinds = [(1, "a", 0, 0), (2, "a", 0, 0), (1, "b", 0, 0), (1, "a", 1, 0), (1, "a", 0, 1)]
    drawn = [set(uniforms(seed, stream, block, 256, lane).tolist()) for seed, stream, block, lane in kinds]
    assert len(set().union(*drawn)) == 256 * len(kinds)


def test_normal_numbers_have_mean_zero_and_deviation_one() -> None:
    drawn = np.array([draws.normal(3, "n", i) for i in range(20_000)])
    assert abs(drawn.mean()) < 0.03
    assert abs(drawn.std() - 1) < 0.03


@pytest.mark.parametrize(("pattern", "smoothness", "cv"), [
    ("constant", 1.0, 0.0), ("poisson", 1.0, 1.0), ("gamma", 4.0, 0.5), ("gamma", 0.25, 2.0), ("gamma", 1.0, 1.0),
])  # fmt: skip
def test_gaps_have_the_mean_and_variation_of_their_pattern(pattern: str, smoothness: float, cv: float) -> None:
    due = rate(pattern, 11, smoothness=smoothness, rate=50.0).due_block(0, 60_000)
    gaps = np.diff(due, prepend=0) / 1e9
    assert gaps.mean() == pytest.approx(1 / 50, rel=0.03)
    assert gaps.std() / gaps.mean() == pytest.approx(cv, rel=0.05, abs=1e-6)


def test_constant_arrivals_do_not_drift() -> None:
    due = rate("constant", rate=3.0)
    assert due.due_block(0, 3).tolist() == [333_333_333, 666_666_667, 1_000_000_000]
    assert due.due_block(3 * 10**6 - 1, 1)[0] == 10**15


def test_the_first_request_leaves_one_interval_after_the_phase_starts() -> None:
    assert rate("constant", rate=20.0).due_block(0, 1)[0] == 50_000_000
    assert rate("poisson").due_block(0, 1)[0] > 0


@settings(max_examples=40, deadline=None)
@given(
    seeds, st.sampled_from(sorted(GAPS)), st.floats(0.1, 20), st.floats(0.01, 1e5),
    st.integers(0, 3 * BLOCK), st.integers(0, 2 * BLOCK),
)  # fmt: skip
def test_due_times_do_not_depend_on_who_asks_for_which(
    seed: int, pattern: str, smoothness: float, per_s: float, first: int, count: int
) -> None:
    due = rate(pattern, seed, smoothness=smoothness, rate=per_s)
    block = due.due_block(first, count)
    assert block.dtype == np.int64
    assert len(block) == count
    assert (np.diff(block) >= 0).all()
    other = rate(pattern, seed, smoothness=smoothness, rate=per_s)
    whole = other.due_block(0, first + count)
    assert (whole[first:] == block).all()
    assert all(other.due_block(n, 1)[0] == whole[n] for n in {0, first + count - 1} if 0 <= n < len(whole))


def test_shards_together_have_every_arrival_once() -> None:
    due = rate().due_block(0, 1000).tolist()
    for shards in (1, 2, 5):
        assert sorted(time for shard in range(shards) for time in due[shard::shards]) == due


def test_profiling_draws_the_same_with_and_without_a_warmup_before_it() -> None:
    assert rate(index=0).due_block(0, 50).tolist() == rate(index=1).due_block(0, 50).tolist()
    assert rate(name="warmup").due_block(0, 1)[0] != rate().due_block(0, 1)[0]


def test_a_rate_twice_as_high_halves_every_due_time() -> None:
    slow, fast = rate(rate=10.0).due_block(0, 100), rate(rate=20.0).due_block(0, 100)
    assert np.abs(slow - 2 * fast).max() <= 1


def test_a_rate_schedule_without_a_rate_says_so() -> None:
    with pytest.raises(ConfigError, match="needs a rate"):
        RequestRate(ScheduleContext(1, phase(rate=None)))


def test_burst_has_no_due_times() -> None:
    burst = Burst(ScheduleContext(1, phase(schedule="burst", rate=None)))
    assert not burst.paced
    assert len(burst.due_block(0, 10)) == 0


@given(seeds, st.integers(0, 1000), st.integers(1, 300))
def test_shuffling_gives_every_entry_once_an_epoch(seed: int, epoch: int, count: int) -> None:
    assert sorted(shuffled(seed, epoch, count, i) for i in range(count)) == list(range(count))


def test_epochs_differ_and_positions_are_even() -> None:
    orders = {tuple(shuffled(5, epoch, 20, i) for i in range(20)) for epoch in range(50)}
    assert len(orders) == 50
    where = Counter(shuffled(5, epoch, 10, 3) for epoch in range(2000))
    assert set(where) == set(range(10))
    assert all(abs(seen / 200 - 1) < 0.35 for seen in where.values())


def test_sequential_wraps_around() -> None:
    assert [sequential(9, session, 3) for session in range(7)] == [0, 1, 2, 0, 1, 2, 0]


ORDERS = """
def first(seed, session, count): return 0
def beyond(seed, session, count): return count
def word(seed, session, count): return "first"
def failing(seed, session, count): raise ValueError("no order")
"""


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("beyond", "gave session 4 entry 3, of 3"),
        ("word", "failed: TypeError: "),
        ("failing", "failed: ValueError: no order"),
        ("absent", "can't be imported: AttributeError: "),
    ],
)
def test_an_order_that_gives_no_entry_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, said: str) -> None:
    (tmp_path / "some_orders.py").write_text(ORDERS)
    monkeypatch.syspath_prepend(str(tmp_path))

    def entry(order: str) -> int:
        ref = sample_ref("samplers", f"some_orders:{order}")
        return sampler_of(sample_plan(tmp_path, sampling=order, samplers={order: ref}))(9, 4, 3)

    assert entry("first") == 0
    with pytest.raises(PluginError) as caught:
        entry(name)
    assert caught.value.message.startswith(f"the plugin samplers:{name} of acme 1.2 {said}")


def test_shuffle_uses_every_entry_before_any_twice() -> None:
    drawn = [shuffle(9, session, 8) for session in range(24)]
    assert [sorted(drawn[start : start + 8]) for start in (0, 8, 16)] == [list(range(8))] * 3
    assert drawn[:8] != drawn[8:16]


def test_random_draws_with_replacement_and_evenly() -> None:
    drawn = Counter(random(9, session, 5) for session in range(5000))
    assert set(drawn) == set(range(5))
    assert all(abs(count / 1000 - 1) < 0.15 for count in drawn.values())


def test_what_workers_use_needs_neither_numpy_nor_pydantic() -> None:
    code = (
        "import sys; from aiperf.schedule.samplers import random, shuffle; from aiperf.sdk.draws import uniform, normal;"
        "from aiperf.rundir.store import Store;"
        "shuffle(1, 5, 10), random(1, 5, 10), uniform(1, 's', 2), normal(1, 's', 2);"
        "print([name for name in ('numpy', 'pydantic', 'typer') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
