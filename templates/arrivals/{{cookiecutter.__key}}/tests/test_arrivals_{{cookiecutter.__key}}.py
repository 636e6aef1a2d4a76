"""The {{ cookiecutter.name }} arrival pattern: mean 1, repeatable, in any piece."""

from __future__ import annotations

import numpy as np

from {{ cookiecutter.__module }} import gaps


def test_the_mean_gap_is_one() -> None:
    drawn = np.concatenate([gaps(7, "arrivals", block, 4096, 1.0) for block in range(8)])
    assert abs(drawn.mean() - 1.0) < 0.02
    assert drawn.min() >= 0.0 and drawn.max() <= 2.0


def test_the_same_arguments_give_the_same_gaps() -> None:
    assert np.array_equal(gaps(7, "arrivals", 3, 100, 1.0), gaps(7, "arrivals", 3, 100, 1.0))
    assert not np.array_equal(gaps(7, "arrivals", 3, 100, 1.0), gaps(8, "arrivals", 3, 100, 1.0))


def test_fewer_are_the_first_of_more() -> None:
    assert np.array_equal(gaps(7, "arrivals", 0, 10, 1.0), gaps(7, "arrivals", 0, 100, 1.0)[:10])
