"""Values in order that memory doesn't hold: those of a sort, whatever their number and the size of the parts."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from aiperf.sdk.columns import Floats
from aiperf_reducer_columns.report import kept_columns, ordering
from aiperf_reducer_columns.report.kept_columns import KeptColumns
from aiperf_reducer_columns.report.ordering import Ordering, ascending

_MB = 1 << 20


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts of a hundred values, of which ten are merged at once."""
    monkeypatch.setattr(ordering, "IN_MEMORY", 100)
    monkeypatch.setattr(ordering, "_HELD", 1)
    monkeypatch.setattr(ordering, "_LEAST", 10)


def blocks(values: Floats, size: int) -> Iterator[Floats]:
    return (values[at : at + size] for at in range(0, len(values), size))


def kinds(count: int) -> dict[str, Floats]:
    draw = np.random.default_rng(count)
    rough = draw.integers(0, 5, count).astype(np.float64)
    return {
        "different": draw.uniform(-1, 1, count), "few": rough, "equal": np.zeros(count), "none": np.full(count, np.nan),
        "gaps": np.where(rough == 0, np.nan, rough), "ascending": np.arange(count) / 7, "descending": -np.arange(count) / 7,
        "infinite": np.where(rough == 1, np.inf, -rough),
    }  # fmt: skip


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("count", [0, 1, 100, 101, 102, 1000, 3001])
@pytest.mark.parametrize("kind", sorted(kinds(1)))
def test_the_order_is_that_of_a_stable_sort(tmp_path: Path, count: int, kind: str) -> None:
    values = kinds(count)[kind]
    made = Ordering(blocks(values, 33), tmp_path)
    for _ in range(2):  # it may be asked for again
        places, found = (np.concatenate(parts) for parts in zip(*made.blocks(), strict=True))
        expected = ascending(values)
        assert (places.tolist(), found.tolist()) == (expected[0].tolist(), expected[1].tolist())
    assert not list(tmp_path.iterdir()), "the file has no name"


@pytest.mark.usefixtures("small")
def test_two_may_read_the_same_order_in_turns(tmp_path: Path) -> None:
    made = Ordering(blocks(kinds(1000)["different"], 33), tmp_path)
    pairs = list(zip(made.blocks(), made.blocks(), strict=True))
    assert len(pairs) > 2 and all((one[0] == other[0]).all() for one, other in pairs)


def peak_mb(tmp_path: Path, count: int) -> float:
    """The most memory for the order of so many values, and for their columns."""

    def column() -> Iterator[Floats]:
        draw = np.random.default_rng(1)
        return (draw.uniform(0, 1, 1000) for _ in range(count // 1000))

    tracemalloc.start()
    try:
        kept = KeptColumns(("a", "b"), tmp_path)
        for block in column():
            kept.add({"a": block, "b": np.rint(block)})
        seen = sum(len(one) for one, _ in kept.blocks(("b", "a")))
        ordered = sum(len(values) for _, values in Ordering((one for (one,) in kept.blocks(("a",))), tmp_path).blocks())
        assert seen == ordered == count
        return tracemalloc.get_traced_memory()[1] / _MB
    finally:
        tracemalloc.stop()


def test_ten_times_the_values_take_the_same_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_columns, "MOST_BYTES", 1 << 16)
    monkeypatch.setattr(ordering, "IN_MEMORY", 4096)
    monkeypatch.setattr(ordering, "_HELD", 4096)
    monkeypatch.setattr(ordering, "_LEAST", 16)
    few, many = (peak_mb(tmp_path, count) for count in (50_000, 500_000))
    assert many < 2 * few and many < 500_000 * 8 / _MB / 2, "half of one column, of two columns and their order"
