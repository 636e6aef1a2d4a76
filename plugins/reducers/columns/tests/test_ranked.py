"""Ranks among more values than memory should hold: those of the sorted values, whatever the blocks."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from aiperf_reducer_columns.statistics import fold, ranked
from aiperf_reducer_columns.statistics.described import statistics
from aiperf_reducer_columns.statistics.fold import Merged, Samples
from aiperf_reducer_columns.statistics.ranked import gathered, values_at
from hypothesis import given
from hypothesis import strategies as st

VALUES = st.lists(
    st.one_of(
        st.floats(allow_nan=False, allow_infinity=False), st.integers(-3, 3).map(float), st.integers(0, 10**9).map(float)
    ), min_size=1, max_size=80,
)  # fmt: skip


@pytest.mark.parametrize("held", [0, 3, 1 << 18])
@given(VALUES, st.integers(1, 9))
def test_a_rank_has_the_value_of_the_sorted_ones(held: int, values: list[float], size: int) -> None:
    blocks = [np.array(values[at : at + size]) for at in range(0, len(values), size)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ranked, "HELD", held)
        found = values_at(lambda: blocks, range(len(values)))
    assert found == dict(enumerate(sorted(values)))


def test_few_ranks_among_many_values_are_found() -> None:
    values = np.random.default_rng(1).gamma(5, 1e6, 300_000)
    ranks = [0, 3_000, 150_000, 299_998, 299_999]
    found = values_at(lambda: np.array_split(values, 70), ranks)
    assert found == dict(zip(ranks, np.sort(values)[ranks].tolist(), strict=True))


@given(st.lists(st.integers(0, 200_000), max_size=5))
def test_blocks_are_put_together_and_cut(sizes: list[int]) -> None:
    values = np.arange(float(sum(sizes)))
    blocks = np.split(values, np.cumsum(sizes)[:-1]) if sizes else []
    found = [*gathered(blocks)]
    assert np.array_equal(np.concatenate([np.empty(0), *found]), values)
    assert all(len(block) <= 1 << 16 for block in found)


@pytest.mark.parametrize("whole", [True, False])
def test_statistics_in_passes_are_those_in_memory(whole: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    draw = random.Random(7)
    values = [draw.gauss(5e8, 1e8) for _ in range(3_000)]
    values = [float(round(value)) for value in values] if whole else values
    parts = [Samples(tmp_path / f"fold-{part}") for part in range(5)]
    for value in values:
        draw.choice(parts).add(np.array([value]))
    merged = Merged(parts)
    usual: Any = (merged.statistics(1e-6), merged.extent(1e-6), merged.adjusted(9, 1e-6), merged.sum())
    monkeypatch.setattr(fold, "WHOLE", 2_999)
    in_passes = Merged(parts)
    found: Any = (in_passes.statistics(1e-6), in_passes.extent(1e-6), in_passes.adjusted(9, 1e-6), in_passes.sum())
    assert found[1:] == usual[1:]
    assert found[0] == usual[0] | {"std": pytest.approx(usual[0]["std"], rel=1e-14)}
    assert merged.statistics(1e-6) == statistics(np.array(values), 1e-6)
    assert in_passes.above(5e8) == sum(value > 5e8 for value in values)


def test_the_order_of_shards_changes_no_statistic_in_passes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fold, "WHOLE", 10)
    values, found = np.random.default_rng(3).normal(1e3, 0.1, 500), set()
    for order, pieces in enumerate((1, 7, 100)):
        parts = [Samples(tmp_path / f"fold-{order}-{number}") for number in range(pieces)]
        for part, some in zip(parts, np.array_split(np.roll(values, 13 * order), pieces), strict=True):
            part.add(some)
        found.add(repr(Merged(parts[::-1]).statistics(1.0)))
    assert len(found) == 1
