"""The contracts of planners and of exporters of studies: good ones pass, bad ones are caught."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from aiperf.sdk.exporter import Artifact, StudyExporter
from aiperf.sdk.planner import PlanEnd, PlannedTrial, Planner, Space
from aiperf.sdk.study import Dimension, Study, StudyCell, StudyRun
from aiperf.testing import PlannerContract, StudyExporterContract
from test_conformance import verdicts

COUNT = itertools.count()
LIST = Dimension("profiling.concurrency", "concurrency", (1, 2))


class Once(Planner):
    """Each value of the first list, once."""

    def next(self, finished: Sequence[StudyRun]) -> Sequence[PlannedTrial] | PlanEnd:
        done = {run.cell.index for run in finished}
        values = enumerate(self.space.dimensions[0].values)
        cells = [StudyCell(index, {"concurrency": value}, f"c{value}") for index, value in values]
        return [PlannedTrial(cell) for cell in cells if cell.index not in done] or PlanEnd()

    def most(self) -> int | None:
        return len(self.space.dimensions[0].values)


@pytest.fixture(autouse=True)
def few_proposals(monkeypatch: pytest.MonkeyPatch) -> None:
    """The contract gives up a planner that never ends after so many."""
    monkeypatch.setattr("aiperf_testing.planners._MOST_PROPOSALS", 200)


def failing(**methods: Any) -> set[str]:
    """The checks that a planner with these methods fails."""
    own = {"planner": type("Bad", (Once,), methods), "spaces": (Space((LIST,)),)}
    contract: type[PlannerContract] = type("Changed", (PlannerContract,), own)
    return verdicts(contract())


def test_a_good_planner_keeps_the_contract() -> None:
    assert failing() == set()


@pytest.mark.parametrize(
    ("method", "made", "caught"),
    [
        ("next", lambda self, finished: [], "test_a_plan_ends_and_names_each_run_once"),
        ("next", lambda self, finished: PlanEnd(), "test_a_plan_ends_and_names_each_run_once"),
        ("next", lambda self, finished: [PlannedTrial(StudyCell(0, {}, "a"))], "test_a_plan_ends_and_names_each_run_once"),
        ("most", lambda self: 1, "test_most_is_at_least_what_it_plans"),
        (
            "next", lambda self, finished: PlanEnd() if finished else [PlannedTrial(StudyCell(n, {}, "a")) for n in (0, 1)],
            "test_a_cell_keeps_its_name_and_values",
        ),
        (
            "next", lambda self, finished: PlanEnd() if finished else [PlannedTrial(StudyCell(0, {}, "a/b"))],
            "test_a_cell_keeps_its_name_and_values",
        ),
        (
            "next", lambda self, finished: PlanEnd() if finished else [PlannedTrial(StudyCell(0, {"rate": 1}, "a"))],
            "test_values_belong_to_the_dimensions",
        ),
        ("design", lambda self: {"at": next(COUNT)}, "test_its_design_is_json"),
    ],
)  # fmt: skip
def test_what_a_bad_planner_does_is_caught(method: str, made: Any, caught: str) -> None:
    assert caught in failing(**{method: made})


def test_a_planner_that_draws_anew_is_caught() -> None:
    count = itertools.count()

    def moody(self: Planner, finished: Sequence[StudyRun]) -> Sequence[PlannedTrial] | PlanEnd:
        return PlanEnd() if finished else [PlannedTrial(StudyCell(0, {}, f"c{next(count)}"))]

    assert "test_the_same_finished_runs_give_the_same_proposal" in failing(next=moody)


def test_what_a_bad_exporter_of_studies_does_is_caught(tmp_path: Path) -> None:
    count = itertools.count()

    class Bad(StudyExporter):
        files = {"a.txt": "a.txt"}

        def export_study(self, study: Study) -> Sequence[Artifact]:
            study.directory.mkdir(parents=True, exist_ok=True)
            path = study.directory / "b.txt"
            path.write_text(f"{next(count)} {[run.label for run in study.runs]}")
            return [Artifact("B", path)]

    contract: type[StudyExporterContract] = type("Changed", (StudyExporterContract,), {"exporter": Bad})
    found = verdicts(contract(), tmp_path=tmp_path)
    assert {"test_it_declares_every_file_it_writes", "test_the_same_runs_give_the_same_files"} <= found
    assert "test_the_order_in_which_runs_ended_changes_nothing" in found
