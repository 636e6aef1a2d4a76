"""Columns of numbers come back as they were, in few bytes."""

from __future__ import annotations

import numpy as np
import pytest
from aiperf_reducer_columns.reduce.packing import pack, unpacked

ABSENT = float("nan")


@pytest.mark.parametrize(
    ("column", "width"),
    [
        ([ABSENT] * 5, 0), ([7.0] * 5, 0), ([-0.5] * 5, 0), ([7.0, ABSENT, 7.0, 7.0, 7.0], 1), ([0.0, 254.0, 1.0, 2.0, 3.0], 1),
        ([0.0, 255.0, 1.0, 2.0, 3.0], 2), ([1e9, 1e9 + 65_534, ABSENT, 1e9, 1e9], 2), ([0.0, 65_535.0, 0.0, 0.0, 0.0], 4),
        ([-5.0, 4e9, 0.0, ABSENT, 1.0], 4), ([0.0, 2.0**32 - 1, 5.0, 5.0, 5.0], 6),
        ([1e15, 1e15 + 2e14, ABSENT, 1e15, 1e15], 6),
        ([0.0, 2.0**49, 1.0, 1.0, 1.0], 8), ([0.5, 1.0, ABSENT, 2.0, 3.0], 8), ([0.0, float("inf"), 1.0, ABSENT, 1.0], 8),
        ([1e300, -1e300, 0.0, 1.0, 2.0], 8),
    ],
)  # fmt: skip
def test_a_column_comes_back_as_it_was(column: list[float], width: int) -> None:
    table = np.array([column, column[::-1]])
    packed = pack(table)
    assert np.array_equal(unpacked(packed), table, equal_nan=True)
    assert len(packed) <= 2 * (9 + 5 * width) + 12


def test_an_empty_table_comes_back() -> None:
    assert unpacked(pack(np.empty((3, 0)))).shape == (3, 0)
