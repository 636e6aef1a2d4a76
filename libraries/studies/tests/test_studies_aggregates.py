"""Cells beside each other: rows, best cells, bytes, and what repeats say of themselves."""

from __future__ import annotations

import csv
import io
import math
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from aiperf.sdk.scenario import ScenarioVerdict
from aiperf.sdk.study import Dimension, Objective, SlaFilter, Study, StudyCell, StudyRun
from aiperf.sdk.summary import Result, Summary
from aiperf.testing import sample_study, sample_summary
from aiperf_studies.best import best_cells, pareto_cells
from aiperf_studies.cells import numbers_of, rows_of
from aiperf_studies.confidence import confidence
from aiperf_studies.documents import aggregate_csv, aggregate_document, json_bytes, sweep_csv, sweep_document
from aiperf_studies.repeats import warm_repeats
from msgspec.structs import replace

HERE = Path("none")


def summary(**metrics: float) -> Summary:
    """A run with these averages; each is the median and the 99th percentile, too."""
    stats = {tag: dict.fromkeys(("avg", "p50", "p99"), value) for tag, value in metrics.items()}
    return sample_summary(*(Result(tag, tag, "ms", each) for tag, each in stats.items()))


def study_of(cells: Sequence[tuple[dict[str, Any], Sequence[Summary | None]]], **more: Any) -> Study:
    runs = [
        StudyRun(StudyCell(index, parameters, f"c{index}"), trial, HERE, 42, each, "" if each else "no server")
        for index, (parameters, summaries) in enumerate(cells)
        for trial, each in enumerate(summaries, 1)
    ]
    trials = max(len(summaries) for _, summaries in cells)
    dimensions = (Dimension("profiling.concurrency", "concurrency", (1, 2)),)
    return replace(Study("x", "0.1.0", HERE, tuple(runs), "grid", dimensions, trials=trials), **more)


def repeats_of(values: Sequence[float], tag: str = "time_to_first_token", seeds: Sequence[int] = ()) -> Study:
    """Repeats of one load with these medians."""
    runs = [
        StudyRun(StudyCell(0, {}), trial, HERE, seeds[trial - 1] if seeds else 42, summary(**{tag: value}))
        for trial, value in enumerate(values, 1)
    ]
    return Study("x", "0.1.0", HERE, tuple(runs), "grid", trials=len(values))


def test_rows_are_those_of_each_statistic_alone() -> None:
    draws, tags = random.Random(5), [f"m{number}" for number in range(20)]
    for count in (1, 2, 5):
        runs = [
            {tag: Result(tag, "", "ms", {"avg": draws.gauss(0, 9), "p99": draws.random()}) for tag in tags}
            for _ in range(count)
        ]
        rows = rows_of(runs, 0.9)
        assert len(rows) == 40 and list(rows) == sorted(rows)
        for key, row in rows.items():
            tag, _, stat = key.rpartition("_")
            alone = confidence([each[tag].stats[stat] for each in runs], 0.9, "ms")
            numbers, expected = (list(msgspec.to_builtins(each).values()) for each in (row, alone))
            assert numbers[:8] == pytest.approx(expected[:8], rel=1e-9) and numbers[8:] == expected[8:]


def test_a_statistic_counts_the_runs_that_have_it() -> None:
    first, second = summary(a=1.0, b=2.0), summary(a=3.0)
    rows = rows_of([first.results, second.results], 0.95)
    assert rows["a_avg"].mean == 2.0 and rows["a_avg"].std == pytest.approx(math.sqrt(2))
    assert (rows["b_avg"].mean, rows["b_avg"].t_critical) == (2.0, None)


def test_counts_bounds_and_infinite_values_are_no_rows() -> None:
    stats = {"avg": 1.0, "count": 9.0, "censored": 1.0, "max": math.inf, "p99.9": 4.0, "pmax": 1.0}
    assert list(rows_of([{"a": Result("a", "", "ms", stats)}], 0.95)) == ["a_avg", "a_p99.9"]


def test_cells_of_equal_values_stay_apart() -> None:
    parameters = {"concurrency": 3}
    study = study_of([
        (parameters, [summary(request_throughput=5.0, time_to_first_token=9.0)]),
        (dict(parameters), [summary(request_throughput=7.0, time_to_first_token=9.0)]),
    ])  # fmt: skip
    document = sweep_document(study, numbers_of(study))
    assert document["metadata"]["num_combinations"] == 2
    assert [each["cell"] for each in document["per_combination_metrics"]] == ["c0", "c1"]
    assert document["best_configurations"]["best_throughput"]["cell"] == "c1" and document["pareto_cells"] == ["c1"]


def test_combinations_are_counted_and_not_multiplied() -> None:
    study = study_of([({"a": value, "b": value}, [summary(request_throughput=1.0)]) for value in (1, 2)])
    metadata = sweep_document(study, numbers_of(study))["metadata"]
    assert metadata["num_combinations"] == 2
    assert metadata["sweep_parameters"] == [{"name": "a", "values": [1, 2]}, {"name": "b", "values": [1, 2]}]


def test_objectives_of_the_user_make_the_front() -> None:
    objectives = (Objective("energy", "avg", maximize=False),)
    cells = [({"c": value}, [summary(request_throughput=1.0 + value, energy=3.0 - value)]) for value in (1, 2)]
    study = study_of(cells, objectives=objectives)
    numbers = numbers_of(study)
    assert [cell.cell.index for cell in pareto_cells(study, numbers)] == [1]
    named = {each.name: each.cell.cell.index for each in best_cells(study, numbers)}
    assert named == {"best_throughput": 1, "best_energy_avg": 1}
    assert sweep_document(study, numbers)["metadata"]["objectives"] == ["energy:avg:min"]


def test_only_cells_that_hold_the_filters_are_best() -> None:
    cells = [({"c": value}, [summary(request_throughput=1.0 * value, request_latency=10.0 * value)]) for value in (1, 2, 3)]
    study = study_of([*cells, ({"c": 4}, [None])], sla_filters=(SlaFilter("request_latency", "p99", "le", 20.0),))
    document = sweep_document(study, numbers_of(study))
    assert document["best_configurations"]["best_throughput"]["parameters"] == {"c": 2}
    assert document["pareto_optimal"] == [{"c": 1}, {"c": 2}]
    assert document["metadata"]["sla_constraints"] == {
        "active_filters": [{"metric_tag": "request_latency", "stat": "p99", "op": "le", "threshold": 20.0}],
        "feasible_count": 2, "infeasible_count": 2,
    }  # fmt: skip
    none = replace(study, sla_filters=(SlaFilter("request_latency", "p99", "lt", 1.0),))
    document = sweep_document(none, numbers_of(none))
    assert document["best_configurations"]["best_throughput"]["parameters"] == {"c": 3} and document["pareto_optimal"] == []


@pytest.mark.parametrize(
    "text", ["a:p95:lt", "a:p95:eq:1", "a:p95:lt:x", "a:p95:lt:nan", ":p95:lt:1", "a:b:lt:1", "a:p95:lt:1:2"]
)
def test_a_filter_of_another_form_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="TAG:STAT:OP:NUMBER"):
        SlaFilter.parsed(text)
    assert SlaFilter.parsed("a:p99.9:ge:-1.5") == SlaFilter("a", "p99.9", "ge", -1.5)


def test_a_cell_without_a_first_token_turns_all_to_the_latency() -> None:
    streamed = summary(request_throughput=1.0, time_to_first_token=5.0, request_latency=9.0)
    study = study_of([({"c": 1}, [streamed]), ({"c": 2}, [summary(request_throughput=1.0, request_latency=7.0)])])
    best = {each.name: each for each in best_cells(study, numbers_of(study))}
    assert (best["best_latency_p99"].metric, best["best_latency_p99"].cell.cell.index) == (7.0, 1)


def test_failed_runs_are_listed_and_do_not_count() -> None:
    good = summary(request_throughput=1.0)
    study = study_of([({"c": 1}, [good, None]), ({"c": 2}, [None, None])])
    first, second = numbers_of(study)
    assert second.rows == {}
    document = aggregate_document(study, first)
    assert document["metadata"]["failed_runs"] == [{"label": "c0/trial_0002", "error": "no server"}]
    assert (document["metadata"]["num_successful_runs"], document["metadata"]["single_run"]) == (1, True)
    assert sweep_document(study, (first, second))["num_successful_runs"] == 1


def test_aggregates_say_what_the_scenario_says_of_their_runs() -> None:
    def ran(*reasons: str) -> Summary:
        told = {"scenario": "mine", "counts": not reasons, "why_not": [*reasons]}
        return replace(summary(request_throughput=1.0), scenario=ScenarioVerdict("mine", not reasons, aggregate=told))

    study = study_of([({"c": 1}, [ran(), ran()]), ({"c": 2}, [ran(), ran("late")])])
    first, second = numbers_of(study)
    assert aggregate_document(study, first)["metadata"]["counts"] is True
    for document in (aggregate_document(study, second), sweep_document(study, (first, second))):
        told = document["metadata"]
        assert (told["scenario"], told["counts"], told["why_not"]) == ("mine", False, ["late"])


def test_suspect_runs_are_named_with_their_reasons() -> None:
    good = summary(request_throughput=1.0)
    suspect = replace(good, measurement=replace(good.measurement, verdict="suspect", reasons=("slip",)))
    study = study_of([({"c": 1}, [good, suspect])])
    study = replace(study, runs=(replace(study.runs[0], carried_over=3), study.runs[1]))
    known = aggregate_document(study, numbers_of(study)[0])["metadata"]["suspect_runs"]
    assert [each["label"] for each in known] == ["c0/trial_0001", "c0/trial_0002"]
    assert known[1]["reasons"] == ["slip"] and "3 requests of the run before" in known[0]["reasons"][0]


def test_the_order_of_runs_changes_no_byte() -> None:
    study = sample_study(HERE, trials=5)
    mixed = list(study.runs)
    random.Random(2).shuffle(mixed)
    one, other = numbers_of(study), numbers_of(again := replace(study, runs=tuple(mixed)))
    assert json_bytes(sweep_document(study, one)) == json_bytes(sweep_document(again, other))
    assert json_bytes(aggregate_document(study, one[1])) == json_bytes(aggregate_document(again, other[1]))


def test_tables_are_read_back_by_a_csv_reader() -> None:
    study = study_of([({"model": 'a, "b"', "c": 1}, [summary(request_throughput=2.0)]), ({"c": 2}, [summary(other=1.0)])])
    cells = numbers_of(study)
    rows = list(csv.reader(io.StringIO(sweep_csv(sweep_document(study, cells)))))
    head, first, second = rows[:3]
    assert head[:2] == ["model", "c"] and first[:2] == ['a, "b"', "1"] and second[:2] == ["", "2"]
    assert len(head) == len(first) == len(second)
    assert first[head.index("request_throughput_avg_mean")] == "2.00" and first[head.index("other_avg_mean")] == ""
    assert ["Best Configurations"] in rows and ["Pareto Optimal Points"] in rows and ["Number of Combinations", "2"] in rows
    table = list(csv.reader(io.StringIO(aggregate_csv(aggregate_document(study, cells[0])))))
    assert table[0] == ["metric", "mean", "std", "min", "max", "cv", "se", "ci_low", "ci_high", "t_critical", "unit"]
    assert table[1] == ["request_throughput_avg", "2.00", "0.00", "2.00", "2.00", "0.0000", "0.0000", "2.00", "2.00", "", "ms"]
    assert ["Total Runs", "1"] in table


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ([100.0, 30.0, 31.0], True), ([100.0, 60.0, 62.0, 61.0], True), ([31.0, 30.0, 100.0], False),
        ([33.0, 30.0, 36.0], False), ([31.0, 30.9, 31.0, 30.95], False), ([100.0, 30.0], False), ([30.5, 30.0, 30.0], False),
    ],
)  # fmt: skip
def test_later_repeats_that_are_faster_are_a_finding(values: list[float], said: bool) -> None:
    finding = warm_repeats(numbers_of(repeats_of(values)))
    assert (finding is not None) is said
    if finding is not None:
        assert finding.kind == "warm_repeats"
        assert "--vary-seed-per-trial" in finding.sentence and "--cache-bust" in finding.sentence
        assert finding.numbers["first_ms"] == values[0]


def test_runs_with_other_prompts_are_not_warm() -> None:
    assert warm_repeats(numbers_of(repeats_of([100.0, 30.0, 31.0], seeds=(1, 2, 3)))) is None


def test_answers_that_come_whole_are_judged_by_their_latency() -> None:
    finding = warm_repeats(numbers_of(repeats_of([100.0, 30.0, 31.0], "request_latency")))
    assert finding is not None and "median latency" in finding.sentence


def test_noise_is_seldom_warm() -> None:
    draws = random.Random(9)
    studies = (repeats_of([draws.gauss(100, 5) for _ in range(4)]) for _ in range(400))
    assert sum(warm_repeats(numbers_of(study)) is not None for study in studies) < 30
