"""An exporter of studies in one file, installed for a test: what it was told, and when."""

from __future__ import annotations

import json
import os
from pathlib import Path

from aiperf.sdk.exporter import Artifact, StudyExporter
from aiperf.sdk.study import Study

MANIFEST = """
schema_version: 1
api: ">=1,<2"
plugins:
  - {category: exporters, name: ledger, summary: "A line for each run.", capabilities: {studies: true}}
"""
POINTS = "[aiperf.exporters]\nledger = ledger_of_tests:Ledger\n"
FAILS = "TESTS_LEDGER_FAILS"
"""A variable: the exporter raises behind the last run."""


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
    """Put the exporter into *site*, which is to stand in ``PYTHONPATH``."""
    package, about = site / "ledger_of_tests", site / "ledger_of_tests-1.0.dist-info"
    package.mkdir(parents=True)
    about.mkdir()
    (package / "__init__.py").write_text(Path(__file__).read_text())
    (package / "aiperf.yaml").write_text(MANIFEST)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: ledger-of-tests\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(POINTS)
