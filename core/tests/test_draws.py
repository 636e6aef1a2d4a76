"""Draws: the same numbers for ever, and of the right shape; samplers that break their contract."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from aiperf.errors import PluginError
from aiperf.registry.samplers import sampler_of
from aiperf.sdk import draws
from aiperf.sdk.draws import BLOCK, shuffled, uniform, uniforms
from aiperf_testing.plans import sample_plan, sample_ref
from hypothesis import given
from hypothesis import strategies as st

seeds = st.integers(0, 2**64 - 1)
PINNED_UNIFORMS = [0.3274966726344634, 0.24424376876780535, 0.247489131613069]
PINNED_SHUFFLE = [7, 6, 1, 0, 4, 5, 2, 3, 9, 8]


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


@given(seeds, st.integers(0, 1000), st.integers(1, 300))
def test_shuffling_gives_every_entry_once_an_epoch(seed: int, epoch: int, count: int) -> None:
    assert sorted(shuffled(seed, epoch, count, i) for i in range(count)) == list(range(count))


def test_epochs_differ_and_positions_are_even() -> None:
    orders = {tuple(shuffled(5, epoch, 20, i) for i in range(20)) for epoch in range(50)}
    assert len(orders) == 50
    where = Counter(shuffled(5, epoch, 10, 3) for epoch in range(2000))
    assert set(where) == set(range(10))
    assert all(abs(seen / 200 - 1) < 0.35 for seen in where.values())


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


def test_what_workers_use_needs_neither_numpy_nor_pydantic() -> None:
    code = (
        "import sys; from aiperf.registry.samplers import sampler_of; from aiperf.sdk.draws import shuffled, uniform, normal;"
        "from aiperf.rundir.store import Store;"
        "shuffled(1, 0, 10, 5), uniform(1, 's', 2), normal(1, 's', 2);"
        "print([name for name in ('numpy', 'pydantic', 'typer') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
