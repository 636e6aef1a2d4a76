"""Points of the unit cube, the values of dimensions from them, and names of cells."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from aiperf.sdk.study import Dimension, Setting
from aiperf_studies.latin import centered_discrepancy, latin_hypercube
from aiperf_studies.names import RESERVED, cells_of, path_safe
from aiperf_studies.scaling import bounds, scaled
from aiperf_studies.sobol import MOST_DIMENSIONS, sobol_points
from scipy.stats import qmc


def strata(points: np.ndarray) -> list[int]:
    """Of each coordinate: how many of as many equal strata as points have a point."""
    return [len(set((points[:, column] * len(points)).astype(int))) for column in range(points.shape[1])]


@pytest.mark.parametrize(("count", "dimensions"), [(1, 1), (7, 2), (100, 5), (1024, 21), (64, MOST_DIMENSIONS)])
def test_sobol_points_are_those_of_scipy(count: int, dimensions: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = qmc.Sobol(dimensions, scramble=False).random(count)
    assert np.abs(sobol_points(count, dimensions) - expected).max() <= 1e-9


def test_scrambled_points_keep_their_evenness() -> None:
    points = sobol_points(64, 6, scramble=True, seed=3)
    assert strata(points) == [64] * 6
    assert points.min() >= 0 and points.max() < 1
    assert qmc.discrepancy(points) < qmc.discrepancy(np.random.default_rng(3).random((64, 6))) / 2


def test_a_seed_gives_its_own_points() -> None:
    def scrambled(seed: int) -> np.ndarray:
        return sobol_points(16, 3, scramble=True, seed=seed)

    def cube(seed: int) -> np.ndarray:
        return latin_hypercube(16, 3, seed=seed)

    for draw in (scrambled, cube):
        assert np.array_equal(draw(1), draw(1)) and not np.array_equal(draw(1), draw(2))


def test_the_first_points_are_the_same_of_any_count() -> None:
    assert np.array_equal(sobol_points(100, 4, scramble=True, seed=9)[:10], sobol_points(10, 4, scramble=True, seed=9))


@pytest.mark.parametrize("dimensions", [0, MOST_DIMENSIONS + 1])
def test_too_many_dimensions_are_refused(dimensions: int) -> None:
    with pytest.raises(ValueError, match=f"1 to {MOST_DIMENSIONS} dimensions"):
        sobol_points(4, dimensions)


@pytest.mark.parametrize("optimization", [None, "random-cd"])
def test_a_latin_hypercube_has_a_point_in_each_stratum(optimization: str | None) -> None:
    points = latin_hypercube(50, 3, seed=4, optimization=optimization)
    assert strata(points) == [50] * 3
    assert points.min() >= 0 and points.max() < 1


def test_exchanges_lower_the_discrepancy() -> None:
    plain, better = (latin_hypercube(40, 3, seed=4, optimization=each) for each in (None, "random-cd"))
    assert qmc.discrepancy(better) < qmc.discrepancy(plain) / 1.5
    for points in (plain, better):
        assert centered_discrepancy(points) == pytest.approx(qmc.discrepancy(points) - (13 / 12) ** 3, abs=1e-9)


def test_lloyd_moves_points_apart() -> None:
    plain, spread = (latin_hypercube(40, 2, seed=4, optimization=each) for each in (None, "lloyd"))

    def nearest(points: np.ndarray) -> float:
        apart = np.linalg.norm(points[:, None] - points[None], axis=2)
        return float(np.min(apart[apart > 0]))

    assert nearest(spread) > 2 * nearest(plain)
    assert spread.min() >= 0 and spread.max() < 1


def test_an_unknown_optimization_is_refused() -> None:
    with pytest.raises(ValueError, match="choose random-cd or lloyd"):
        latin_hypercube(4, 2, optimization="best")


@pytest.mark.parametrize(
    ("dimension", "share", "value"),
    [
        (Dimension("a", "a", low=10, high=20), 0.25, 12.5),
        (Dimension("a", "a", low=1, high=100, scale="log"), 0.5, 10.0),
        (Dimension("a", "a", low=1, high=1000, scale="log", kind="int"), 0.0, 1),
        (Dimension("a", "a", low=1, high=1000, scale="log", kind="int"), 0.999999, 1000),
        (Dimension("a", "a", low=0.5, high=1.5, kind="int"), 0.0, 1),
        (Dimension("a", "a", choices=("x", "y", "z")), 0.34, "y"),
        (Dimension("a", "a", choices=("x", "y", "z")), 0.9999999999999999, "z"),
        (Dimension("a", "a", values=(1, 2)), 0.5, 2),
    ],
)
def test_a_share_is_a_value(dimension: Dimension, share: float, value: Setting) -> None:
    assert scaled(share, dimension) == pytest.approx(value)
    assert type(scaled(share, dimension)) is type(value)


@pytest.mark.parametrize(
    ("dimension", "why"),
    [
        (Dimension("a", "a"), "neither values"),
        (Dimension("a", "a", low=2, high=2), "must be larger"),
        (Dimension("a", "a", low=0, high=2, scale="log"), "above 0"),
        (Dimension("a", "a", low=0.2, high=0.8, kind="int"), "no whole number"),
        (Dimension("a", "a", low=0, high=float("inf")), "finite"),
    ],
)
def test_a_range_that_nothing_can_be_drawn_from_is_refused(dimension: Dimension, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        bounds(dimension)


def test_a_name_has_last_segments_and_values() -> None:
    (cell,) = cells_of([{"mean": 10, "concurrency": 1, "streaming": True, "rate": 0.5}])
    assert cell.name == "mean_10__concurrency_1__streaming_true__rate_0.5"
    assert cell.label == "mean=10, concurrency=1, streaming=true, rate=0.5"


def test_names_are_safe_as_paths() -> None:
    values: list[Setting] = ["a/b", "..", "x" * 500, "C:\\d", "ü\x00\n", {"a": 1}, [1], "?"]
    cells = cells_of([{"k": value} for value in values])
    names = [cell.name for cell in cells]
    assert names[:2] == ["k_ab", "k_"] and names[3] == "k_Cd" and names[5:7] == ["variation_0005", "variation_0006"]
    assert all(name == path_safe(name) and 0 < len(name.encode()) <= 200 for name in names)
    assert len(set(names)) == len(names)


def test_equal_values_are_cells_of_their_own() -> None:
    cells = cells_of([{"c": 3}, {"c": 4}, {"c": 3}, {"c": 3}])
    assert [cell.name for cell in cells] == ["c_3", "c_4", "c_3__0002", "c_3__0003"]
    assert [cell.index for cell in cells] == [0, 1, 2, 3]


def test_names_that_differ_in_case_alone_are_told_apart() -> None:
    assert [cell.name for cell in cells_of([{"m": "A"}, {"m": "a"}])] == ["m_A", "m_a__0001"]


def test_no_cell_takes_a_directory_of_the_study() -> None:
    cells = cells_of([{}] * len(RESERVED), names=RESERVED)
    assert not {cell.name for cell in cells} & set(RESERVED)
