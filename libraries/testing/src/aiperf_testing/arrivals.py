"""The contract of arrival patterns: gaps of mean 1, a function of the arguments alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
import pytest
from aiperf.sdk.arrivals import GapFunction
from aiperf.sdk.columns import Floats
from aiperf.sdk.draws import BLOCK

from aiperf_testing.findings import unlike
from aiperf_testing.manifests import check_row

_BLOCKS = 8
"""Blocks of draws that the statistics are taken over."""


class ArrivalsContract:
    """Subclass with the function::

        class TestMineKeepsTheContract(ArrivalsContract):
            gaps = staticmethod(mine)

    smoothness: tested values of ``--arrival-smoothness``.
    tolerance: allowed distance of the mean of 32,768 gaps from 1; None is five standard errors.
    """

    gaps: ClassVar[GapFunction]
    smoothness: ClassVar[Sequence[float]] = (0.5, 1.0, 4.0)
    tolerance: ClassVar[float | None] = None

    def _drawn(
        self, block: int = 0, count: int = BLOCK, *, seed: int = 7, stream: str = "arrivals:x", smooth: float = 1.0
    ) -> Floats:
        return type(self).gaps(seed, stream, block, count, smooth)

    def _many(self, smooth: float) -> Floats:
        return np.concatenate([self._drawn(block, smooth=smooth) for block in range(_BLOCKS)])

    def test_its_manifest_says_what_it_is(self) -> None:
        check_row("arrivals", type(self).gaps)

    @pytest.mark.parametrize("count", [0, 1, 7, BLOCK])
    def test_as_many_gaps_come_as_are_asked_for(self, count: int) -> None:
        for smooth in self.smoothness:
            drawn = self._drawn(count=count, smooth=smooth)
            assert drawn.shape == (count,), unlike(drawn.shape, (count,), "give an array with a gap for each arrival asked for")
            assert drawn.dtype == np.float64, unlike(drawn.dtype, np.float64, "give the gaps as float64")

    def test_no_gap_is_negative_or_without_end(self) -> None:
        for smooth in self.smoothness:
            drawn = self._many(smooth)
            assert np.isfinite(drawn).all() and (drawn >= 0).all(), (
                "a gap is negative, infinite or NaN: gaps are times between arrivals, with a mean of 1"
            )

    def test_the_mean_gap_is_one(self) -> None:
        for smooth in self.smoothness:
            drawn = self._many(smooth)
            allowed = 5 * drawn.std() / len(drawn) ** 0.5 + 1e-9 if self.tolerance is None else self.tolerance
            assert abs(drawn.mean() - 1.0) <= allowed, f"with smoothness {smooth} the mean is {drawn.mean():g}"

    def test_the_same_arguments_give_the_same_gaps(self) -> None:
        first = self._drawn(3)
        self._drawn(4, seed=9)
        np.testing.assert_array_equal(first, self._drawn(3), "a call in between changed the gaps")

    def test_a_shard_that_needs_fewer_gets_the_first_of_them(self) -> None:
        for smooth in self.smoothness:
            np.testing.assert_array_equal(self._drawn(2, 100, smooth=smooth), self._drawn(2, smooth=smooth)[:100])

    def test_where_anything_is_drawn_seed_stream_and_block_each_count(self) -> None:
        usual = self._drawn()
        if np.array_equal(usual, self._drawn(seed=8)):
            pytest.skip("nothing is drawn")
        assert not np.array_equal(usual, self._drawn(stream="arrivals:y")), (
            "another stream has the same gaps: draw from the seed, the stream and the block together"
        )
        assert not np.array_equal(usual, self._drawn(1)), (
            "another block has the same gaps: draw from the seed, the stream and the block together"
        )
