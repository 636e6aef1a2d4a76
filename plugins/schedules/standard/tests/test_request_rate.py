"""Due times of request rates, and orders of entries: the same numbers for ever, and of the right shape."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter

import numpy as np
import pytest
from aiperf.errors import ConfigError
from aiperf.sdk.draws import BLOCK
from aiperf.sdk.plan import PhasePlan
from aiperf.sdk.schedule import ScheduleContext
from aiperf_schedule_standard import arrivals
from aiperf_schedule_standard.burst import Burst
from aiperf_schedule_standard.request_rate import RequestRate
from aiperf_schedule_standard.samplers import random, sequential, shuffle
from hypothesis import given, settings
from hypothesis import strategies as st

GAPS = {"constant": arrivals.constant_gaps, "poisson": arrivals.poisson_gaps, "gamma": arrivals.gamma_gaps}
seeds = st.integers(0, 2**64 - 1)


PINNED_SHUFFLE = [7, 6, 1, 0, 4, 5, 2, 3, 9, 8]
PINNED_DUE = {"poisson": [55813869, 126293294, 184077979], "gamma": [9196100, 45109806, 46482029]}


def phase(**changes: object) -> PhasePlan:
    fields: dict[str, object] = {"name": "profiling", "kind": "profiling", "index": 0, "schedule": "request_rate", "rate": 20.0}
    return PhasePlan(**{**fields, **changes})  # type: ignore[arg-type]


def rate(pattern: str = "poisson", seed: int = 7, **changes: object) -> RequestRate:
    return RequestRate(ScheduleContext(seed, phase(pattern=pattern, **changes), GAPS[pattern]))


def test_numbers_of_a_seed_never_change() -> None:
    """Pinned: a run of last year, repeated with its seed, must be the same run."""
    assert rate("poisson", 42).due_block(0, 3).tolist() == PINNED_DUE["poisson"]
    assert rate("gamma", 42, smoothness=0.5).due_block(0, 3).tolist() == PINNED_DUE["gamma"]
    assert [shuffle(42, session, 10) for session in range(10)] == PINNED_SHUFFLE


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


def test_sequential_wraps_around() -> None:
    assert [sequential(9, session, 3) for session in range(7)] == [0, 1, 2, 0, 1, 2, 0]


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
        "import sys; from aiperf_schedule_standard.samplers import random, shuffle;"
        "from aiperf_schedule_standard.url_strategies import RoundRobin; shuffle(1, 5, 10), random(1, 5, 10);"
        "print([name for name in ('numpy', 'pydantic', 'typer') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
