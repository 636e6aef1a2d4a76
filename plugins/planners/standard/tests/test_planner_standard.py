"""The planners of lists and of samples: cells, orders, and the end of repeats."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from aiperf.sdk.errors import ConfigError
from aiperf.sdk.planner import PlanEnd, PlannedTrial, Planner, Space
from aiperf.sdk.study import Dimension, Scenario, StudyRun
from aiperf.sdk.summary import Result
from aiperf.testing import PlannerContract, sample_summary
from aiperf_planner_standard.lists import Grid, Scenarios, Zip
from aiperf_planner_standard.options import ConvergenceMode, ConvergenceOptions
from aiperf_planner_standard.samples import LatinHypercube, Sobol

CONCURRENCY = Dimension("profiling.concurrency", "concurrency", (1, 2))
MEAN = Dimension("dataset.prompts.isl.mean", "mean", (10, 20))
RANGE = Dimension("profiling.concurrency", "concurrency", low=1, high=3, kind="int")
EARLY: dict[str, Any] = {"metric": "time_to_first_token"}


class TestGridKeepsTheContract(PlannerContract):
    planner = Grid


class TestZipKeepsTheContract(PlannerContract):
    planner = Zip


class TestScenariosKeepTheContract(PlannerContract):
    planner = Scenarios


class TestSobolKeepsTheContract(PlannerContract):
    planner = Sobol


class TestLatinHypercubeKeepsTheContract(PlannerContract):
    planner = LatinHypercube


class TestAnEarlyEndKeepsTheContract(PlannerContract):
    planner = Grid
    options = ConvergenceOptions(**EARLY)
    spaces = (Space(trials=9), Space((CONCURRENCY,), trials=5), Space((CONCURRENCY,), trials=5, order="independent"))


def run(planned: PlannedTrial, value: float | None, directory: Path = Path("none")) -> StudyRun:
    """A run whose time to first token is *value* on average; None failed."""
    result = Result("time_to_first_token", "Time to First Token", "ms", {"avg": value or 0.0, "p99": 5.0})
    return StudyRun(planned.cell, planned.trial, directory, 1, None if value is None else sample_summary(result))


def followed(planner: Planner[Any], values: Mapping[int, Sequence[float | None]]) -> tuple[list[str], str]:
    """The labels of the runs in their order, and the reason of the end; *values*: by cell, of its trials."""
    finished: list[StudyRun] = []
    while not isinstance(proposal := planner.next(finished), PlanEnd):
        finished += [run(planned, values[planned.cell.index][planned.trial - 1]) for planned in proposal]
    return [each.label for each in finished], proposal.reason


def cells(planner: Planner[Any]) -> list[str]:
    return [planned.cell.name for planned in planner.next(()) if planned.trial == 1]  # type: ignore[union-attr]


def test_a_grid_has_all_combinations_in_the_order_of_their_paths() -> None:
    names = ["mean_10__concurrency_1", "mean_10__concurrency_2", "mean_20__concurrency_1", "mean_20__concurrency_2"]
    for dimensions in ((CONCURRENCY, MEAN), (MEAN, CONCURRENCY)):
        planner = Grid(Space(dimensions))
        assert cells(planner) == names and planner.most() == 4


def test_zip_takes_lists_in_step() -> None:
    assert cells(Zip(Space((CONCURRENCY, MEAN)))) == ["mean_10__concurrency_1", "mean_20__concurrency_2"]


def test_lists_of_other_lengths_are_refused_under_zip() -> None:
    with pytest.raises(ConfigError, match="mean has 2, concurrency has 3 values"):
        Zip(Space((MEAN, Dimension("profiling.concurrency", "concurrency", (1, 2, 4)))))


def test_a_load_without_lists_is_one_cell_without_a_name() -> None:
    labels, reason = followed(Grid(Space(trials=3)), {0: [1.0] * 3})
    assert labels == ["run_0001", "run_0002", "run_0003"] and reason == ""


@pytest.mark.parametrize(("order", "labels"), [("repeated", "1/1 2/1 1/2 2/2"), ("independent", "1/1 1/2 2/1 2/2")])
def test_an_order_is_of_all_cells_or_of_all_trials(order: str, labels: str) -> None:
    made = followed(Grid(Space((CONCURRENCY,), trials=2, order=order)), {0: [1.0] * 2, 1: [1.0] * 2})[0]
    assert made == [f"concurrency_{label.replace('/', '/trial_000')}" for label in labels.split()]


def test_a_huge_grid_is_counted_without_its_cells() -> None:
    many = tuple(Dimension(f"variables.v{number}", f"v{number}", tuple(range(100))) for number in range(10))
    assert Grid(Space(many)).most() == 100**10


@pytest.mark.parametrize("name", ["a/b", "..", "", "Aggregate", "profile_runs"])
def test_a_scenario_needs_a_name_that_a_directory_may_have(name: str) -> None:
    with pytest.raises(ConfigError, match="can't be called"):
        Scenarios(Space(scenarios=(Scenario(name, {}), Scenario("b", {}))))


def test_two_scenarios_of_one_name_are_refused() -> None:
    with pytest.raises(ConfigError, match="two cells are called 'a'"):
        Scenarios(Space(scenarios=(Scenario("a", {}), Scenario("A", {}))))


@pytest.mark.parametrize(
    ("planner", "space"),
    [
        (Grid, Space((RANGE,))), (Zip, Space()), (Scenarios, Space()), (Scenarios, Space((MEAN,), (Scenario("a", {}),))),
        (Grid, Space(scenarios=(Scenario("a", {}),))), (Sobol, Space()), (Sobol, Space(scenarios=(Scenario("a", {}),))),
        (Sobol, Space((RANGE,), settings={"samples": 2, "label_format": "long"})), (Sobol, Space((RANGE,))),
        *((Sobol, Space((RANGE,), settings={"samples": samples})) for samples in (1, 2**20 + 1, 2.5, "8", True)),
        (Sobol, Space((RANGE,), settings={"samples": 4, "seed": -1})),
        (Sobol, Space((RANGE,), settings={"samples": 4, "scramble": "no"})),
        (LatinHypercube, Space((RANGE,), settings={"samples": 4, "optimization": "best"})),
        (LatinHypercube, Space((Dimension("a", "a", low=2, high=1),), settings={"samples": 4})),
    ],
)  # fmt: skip
def test_a_space_that_it_can_not_plan_in_is_refused(planner: type[Planner[Any]], space: Space) -> None:
    with pytest.raises(ConfigError) as error:
        planner(space)
    assert len(error.value.lines()) > 1  # what to do


def test_cells_of_equal_rounded_values_stay_cells() -> None:
    planner = Sobol(Space((RANGE,), seed=3, settings={"samples": 16}))
    names = cells(planner)
    assert len(set(names)) == 16 and {name[:13] for name in names} == {"concurrency_1", "concurrency_2", "concurrency_3"}


def test_a_seed_of_the_file_counts_before_the_one_of_the_run() -> None:
    def of(run_seed: int, **settings: Any) -> list[str]:
        return cells(Sobol(Space((Dimension("a", "a", low=0, high=1),), seed=run_seed, settings={"samples": 4, **settings})))

    assert of(1, seed=5) == of(2, seed=5) == of(5) != of(1)


def test_labels_are_numbers_or_values() -> None:
    space = {"samples": 2, "optimization": None}
    first, second = (
        LatinHypercube(Space((RANGE,), settings=space | more)).next(())[0].cell.label  # type: ignore[index]
        for more in ({}, {"label_format": "kv"})
    )
    assert first == "latin_hypercube_0000" and second.startswith("concurrency=")


def test_a_design_has_the_values_of_the_cells() -> None:
    planner = Sobol(Space((RANGE, Dimension("m", "m", choices=("a", "b"))), seed=3, settings={"samples": 8, "scramble": False}))
    design = json.loads(json.dumps(planner.design()))
    proposal = planner.next(())
    assert not isinstance(proposal, PlanEnd)
    assert design["samples_mapped"] == [list(planned.cell.parameters.values()) for planned in proposal]
    assert {key: design[key] for key in ("type", "samples", "seed", "scramble", "optimization")} == {
        "type": "sobol", "samples": 8, "seed": 3, "scramble": False, "optimization": None,
    }  # fmt: skip
    assert design["dimensions"][0] == {
        "path": "profiling.concurrency", "lo": 1, "hi": 3, "scale": "linear", "kind": "int", "choices": None,
    }  # fmt: skip
    assert design["dimensions"][1]["choices"] == ["a", "b"]
    assert Grid(Space((MEAN,))).design() is None


def early(space: Space, **options: Any) -> Grid:
    return Grid(space, ConvergenceOptions(**{**EARLY, **options}))


def test_equal_runs_end_after_three() -> None:
    labels, reason = followed(early(Space(trials=9)), {0: [10.0] * 9})
    assert len(labels) == 3
    assert reason.startswith("after 3 of 9 runs the interval of time_to_first_token avg is 0 of its mean, below 0.1")


def test_a_file_may_say_two_runs() -> None:
    assert len(followed(early(Space(trials=9), min_runs=2), {0: [10.0] * 9})[0]) == 2


def test_runs_that_differ_go_on_to_the_most() -> None:
    labels, reason = followed(early(Space(trials=5)), {0: [1.0, 9.0, 3.0, 7.0, 5.0]})
    assert len(labels) == 5 and reason == ""


@pytest.mark.parametrize("mode", [ConvergenceMode.CI_WIDTH, ConvergenceMode.CV])
def test_the_threshold_is_compared_with_the_modes_number(mode: ConvergenceMode) -> None:
    values = [98.0, 100.0, 102.0]  # std 2, cv 0.02; width 2 · 4.3027 · 2 / √3 / 100 = 0.0994
    size = {ConvergenceMode.CI_WIDTH: 0.09937, ConvergenceMode.CV: 0.02}[mode]
    for threshold, count in ((size * 1.001, 3), (size * 0.999, 4)):
        assert len(followed(early(Space(trials=4), mode=mode, threshold=threshold), {0: [*values, 150.0]})[0]) == count


def test_failed_runs_do_not_count() -> None:
    labels, _ = followed(early(Space(trials=9)), {0: [10.0, None, 10.0, None, 10.0, 1.0, 1.0, 1.0, 1.0]})
    assert len(labels) == 5


def test_each_cell_ends_by_itself() -> None:
    values = {0: [10.0] * 5, 1: [1.0, 9.0, 3.0, 7.0, 5.0]}
    for order in ("repeated", "independent"):
        labels, reason = followed(early(Space((CONCURRENCY,), trials=5, order=order)), values)
        assert [sum(label.startswith(cell) for label in labels) for cell in ("concurrency_1", "concurrency_2")] == [3, 5]
        assert reason.startswith("1 of 2 cells ended early: ")


def test_a_metric_that_no_run_has_is_named_at_the_end() -> None:
    labels, reason = followed(early(Space(trials=4), metric="time_to_frist_token"), {0: [10.0] * 4})
    assert len(labels) == 4 and "no run has time_to_frist_token avg" in reason


@pytest.mark.parametrize(
    ("space", "options", "why"),
    [
        (Space(trials=1), {}, "--num-profile-runs is 1"),
        (Space(trials=2), {}, "no load ends before 3 runs"),
        (Space(trials=5, export_level="summary"), {"mode": ConvergenceMode.DISTRIBUTION}, "--export-level summary"),
    ],
)
def test_an_early_end_that_can_not_be_is_refused(space: Space, options: dict[str, Any], why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        early(space, **options)


def test_settings_of_an_early_end_that_nobody_asked_for_are_refused() -> None:
    typed = {"mode": "--convergence-mode", "stat": "--convergence-stat"}
    assert len(ConvergenceOptions().problems(typed)) == 2
    assert ConvergenceOptions(**EARLY).problems({"metric": "--convergence-metric", **typed}) == []
    distribution = ConvergenceOptions(**EARLY, mode=ConvergenceMode.DISTRIBUTION)
    assert "--convergence-stat is of no use" in distribution.problems(typed)[0]


def recorded(directory: Path, values: Sequence[float]) -> Path:
    """A run's directory with a record for each value."""
    directory.mkdir()
    about = {"metadata": {"request_start_ns": 5, "benchmark_phase": "profiling"}, "error": None}
    lines = [json.dumps({**about, "metrics": {"time_to_first_token": {"value": value, "unit": "ms"}}}) for value in values]
    (directory / "profile_export.jsonl").write_text("\n".join(lines) + "\n")
    return directory


def test_distributions_are_compared_from_the_requests(tmp_path: Path) -> None:
    planner = early(Space(trials=5), mode=ConvergenceMode.DISTRIBUTION)
    assert planner.reads_files
    (cell,) = planner.cells
    low, high = [float(value) for value in range(40)], [float(value) for value in range(1000, 1040)]
    runs = [
        run(PlannedTrial(cell, trial), 1.0, recorded(tmp_path / str(trial), values))
        for trial, values in enumerate((low, low, high), 1)
    ]
    assert planner.next(runs) == [PlannedTrial(cell, 4)]
    runs.append(run(PlannedTrial(cell, 4), 1.0, recorded(tmp_path / "4", low[::2] + low[::5] + high[::3])))
    end = planner.next(runs)
    assert isinstance(end, PlanEnd) and "after 4 of 5 runs" in end.reason and "doesn't prove that runs are equal" in end.reason
