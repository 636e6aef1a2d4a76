"""A planner of lists, and an exporter of studies, in one file that is installed for a test."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from itertools import product
from pathlib import Path

from aiperf.sdk.exporter import Artifact, StudyExporter
from aiperf.sdk.planner import PlanEnd, PlannedTrial, Planner
from aiperf.sdk.study import Study, StudyCell, StudyRun

MANIFEST = """
schema_version: 1
api: ">=1,<2"
plugins:
  - {category: planners, name: grid, summary: "All combinations of lists."}
  - {category: planners, name: scenarios, summary: "Named cells."}
  - {category: exporters, name: ledger, summary: "A line for each run.", capabilities: {studies: true}}
"""
POINTS = """
[aiperf.planners]
grid = listed_planner_of_tests:Listed
scenarios = listed_planner_of_tests:Listed
[aiperf.exporters]
ledger = listed_planner_of_tests:Ledger
"""
FAILS = "TESTS_LEDGER_FAILS"
"""A variable: the exporter raises behind the last run."""


class Listed(Planner[None]):
    """Every combination, or every scenario; all cells, then all again, or all runs of a cell, then the next one."""

    def cells(self) -> list[StudyCell]:
        if self.space.scenarios:
            return [StudyCell(at, each.parameters, each.name) for at, each in enumerate(self.space.scenarios)]
        cells = []
        for at, values in enumerate(product(*(each.values for each in self.space.dimensions))):
            parameters = dict(zip((each.key for each in self.space.dimensions), values, strict=True))
            cells.append(StudyCell(at, parameters, "__".join(f"{key}_{value}" for key, value in parameters.items())))
        return cells

    def next(self, finished: Sequence[StudyRun]) -> Sequence[PlannedTrial] | PlanEnd:
        if finished:
            return PlanEnd()
        trials = range(1, self.space.trials + 1)
        if self.space.order == "repeated":
            return [PlannedTrial(cell, trial) for trial in trials for cell in self.cells()]
        return [PlannedTrial(cell, trial) for cell in self.cells() for trial in trials]

    def most(self) -> int:
        return len(self.cells()) * self.space.trials


class Ledger(StudyExporter[None]):
    """Writes how often it heard of a run, and what it was given at the end."""

    heard = 0

    def run_ended(self, study: Study) -> None:
        self.heard += 1

    def export_study(self, study: Study) -> list[Artifact]:
        if FAILS in os.environ:
            raise RuntimeError("the ledger is full")
        runs = {run.label: run.failed or (run.summary and run.summary.valid) for run in study.runs}
        about = {"heard": self.heard, "runs": runs, "complete": study.complete, "reason": study.reason, "order": study.order}
        path = self.target.directory / "ledger.json"
        path.write_text(json.dumps(about))
        return [Artifact("Ledger", path)]


def install(site: Path) -> None:
    """Put the planner into *site*, which is to stand in ``PYTHONPATH``."""
    package, about = site / "listed_planner_of_tests", site / "listed_planner_of_tests-1.0.dist-info"
    package.mkdir(parents=True)
    about.mkdir()
    (package / "__init__.py").write_text(Path(__file__).read_text())
    (package / "aiperf.yaml").write_text(MANIFEST)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: listed-planner-of-tests\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(POINTS)
