"""Aggregates beside the reference's (AIPerf 0.13.0) of the same runs, captured against ``aiperf simulate``.

``captured.json`` has, of a few metrics, the runs' own summaries and what the reference made of them: three repeats with
``--convergence-metric``, a sweep over two values with two trials, and one with a single trial.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from aiperf.sdk.study import Dimension, Study, StudyCell, StudyRun
from aiperf.sdk.summary import Result
from aiperf.testing import sample_summary
from aiperf_studies.cells import numbers_of
from aiperf_studies.collated import collated_document
from aiperf_studies.documents import aggregate_document, json_bytes, sweep_document

CAPTURED = json.loads((Path(__file__).parent / "captured.json").read_bytes())
FIELDS = ("mean", "std", "min", "max", "cv", "se", "ci_low", "ci_high", "t_critical", "unit")


def run(cell: StudyCell, trial: int, metrics: Mapping[str, Any]) -> StudyRun:
    results = [
        Result(tag, tag, entry["unit"], {name: value for name, value in entry.items() if name != "unit"})
        for tag, entry in metrics.items()
    ]
    return StudyRun(cell, trial, Path("none"), 42, sample_summary(*results))


def sweep_of(runs: Mapping[str, Any], trials: int) -> Study:
    cells = {f"concurrency_{value}": StudyCell(value - 1, {"concurrency": value}, f"concurrency_{value}") for value in (1, 2)}
    made = [
        run(cells[label.rpartition("/")[2]], int(label.partition("/")[0][-1]) if trials > 1 else 1, metrics)
        for label, metrics in runs.items()
    ]
    dimensions = (Dimension("profiling.concurrency", "concurrency", (1, 2)),)
    return Study("x", "0.1.0", Path("none"), tuple(made), "grid", dimensions, trials=trials)


REPEATS = Study(
    "x", "0.1.0", Path("none"), trials=3,
    runs=tuple(run(StudyCell(0, {}), number, each) for number, each in enumerate(CAPTURED["repeats"]["runs"].values(), 1)),
)  # fmt: skip
SWEEP, ONE_TRIAL = sweep_of(CAPTURED["sweep"]["runs"], 2), sweep_of(CAPTURED["one_trial"]["runs"], 1)


def plain(document: Any) -> Any:
    """The document as a reader of the file has it."""
    return msgspec.json.decode(json_bytes(document))


def check_rows(ours: Mapping[str, Any], theirs: Mapping[str, Any], fields: tuple[str, ...] = FIELDS) -> None:
    assert list(ours) == sorted(theirs)
    for key, row in theirs.items():
        for field in fields:
            expected = row[field]
            if isinstance(expected, float) and expected != 0:
                scale = max(abs(row["min"]), abs(row["max"]), 1e-12)
                assert ours[key][field] == pytest.approx(expected, rel=1e-9, abs=1e-9 * scale), (key, field)
            else:
                assert ours[key][field] == expected, (key, field)


@pytest.mark.parametrize(
    ("study", "cell", "theirs"),
    [
        (REPEATS, 0, CAPTURED["repeats"]["aggregate"]),
        *((SWEEP, index, CAPTURED["sweep"]["aggregates"][f"concurrency_{index + 1}"]) for index in (0, 1)),
        *((ONE_TRIAL, index, CAPTURED["one_trial"]["aggregates"][f"concurrency_{index + 1}"]) for index in (0, 1)),
    ],
)  # fmt: skip
def test_an_aggregate_is_the_references(study: Study, cell: int, theirs: Mapping[str, Any]) -> None:
    ours = plain(aggregate_document(study, numbers_of(study)[cell]))
    check_rows(ours["metrics"], theirs["metrics"])
    assert ours["schema_version"] == theirs["schema_version"]
    own = ("run_labels", "model", "variation_label", "variation_values")  # names of ours, and the model, which no fixture has
    same = {key: value for key, value in theirs["metadata"].items() if key not in own}
    assert {key: ours["metadata"].get(key) for key in same} == same


def test_a_sweep_is_the_references() -> None:
    ours, theirs = plain(sweep_document(SWEEP, numbers_of(SWEEP))), CAPTURED["sweep"]["sweep"]
    for mine, its in zip(ours["per_combination_metrics"], theirs["per_combination_metrics"], strict=True):
        assert mine["parameters"] == its["parameters"]
        check_rows(mine["metrics"], its["metrics"], ("mean", "std", "min", "max", "cv", "ci_low", "ci_high", "unit"))
    assert {key: ours["metadata"].get(key) for key in theirs["metadata"]} == theirs["metadata"]
    for key, its in theirs["best_configurations"].items():
        mine = ours["best_configurations"][key]
        assert (mine["parameters"], mine["unit"]) == (its["parameters"], its["unit"])
        assert mine["metric"] == pytest.approx(its["metric"], rel=1e-9)
    assert ours["pareto_optimal"] == theirs["pareto_optimal"]
    assert {key: ours[key] for key in ("aggregation_type", "num_profile_runs", "num_successful_runs", "failed_runs")} == {
        key: theirs[key] for key in ("aggregation_type", "num_profile_runs", "num_successful_runs", "failed_runs")
    }


def test_one_trial_has_best_cells_where_the_reference_has_none() -> None:
    theirs = CAPTURED["one_trial"]["sweep"]
    assert (theirs["best_configurations"], theirs["pareto_optimal"]) == ({}, [])
    ours = plain(sweep_document(ONE_TRIAL, numbers_of(ONE_TRIAL)))
    runs = CAPTURED["one_trial"]["runs"]
    throughputs = [runs[f"concurrency_{value}"]["request_throughput"]["avg"] for value in (1, 2)]
    fastest = ours["best_configurations"]["best_throughput"]
    assert fastest["metric"] == max(throughputs)
    assert fastest["parameters"] == {"concurrency": 1 + throughputs.index(max(throughputs))}
    assert ours["pareto_optimal"]
    assert all("time_to_first_token_p99" in each["metrics"] for each in ours["per_combination_metrics"])  # as of n trials


def test_the_requests_of_all_runs_together_are_the_references() -> None:
    (cell,) = numbers_of(REPEATS)
    columns = [
        {tag: np.array(values) for tag, values in requests.items()} for requests in CAPTURED["repeats"]["requests"].values()
    ]
    ours, theirs = plain(collated_document(REPEATS, cell, columns)), CAPTURED["repeats"]["collated"]
    assert sorted(ours["metrics"]) == sorted(theirs["metrics"])
    for tag, its in theirs["metrics"].items():
        mine = ours["metrics"][tag]
        assert mine["combined"] == pytest.approx(its["combined"], rel=1e-9)
        for one, other in zip(mine["per_run"], its["per_run"], strict=True):
            assert one["label"] == other["label"] and one["count"] == other["count"]
            assert math.isclose(one["mean"], other["mean"], rel_tol=1e-9)
