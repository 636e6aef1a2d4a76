"""Accuracy: a table of the tasks, and a line for each answer with its grade.

The numbers are metrics (``metrics.py``, ``repeats.py``), the console's table and the summary's block are ``table.py``.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import TYPE_CHECKING

from aiperf import Artifact, BatchExporter, Summary, SummaryExporter, Target, atomic

if TYPE_CHECKING:
    from aiperf import RecordBatch


def _is_graded(target: Target) -> bool:
    return target.config.get("accuracy", {}).get("grader") is not None


class AccuracyLines(BatchExporter):
    """``accuracy_export.jsonl``: each request of the profiling phases with an expected answer, failed ones too, and its grade.

    It has what another grader needs: the expected answer, the whole answer, its reasoning.
    """

    label = "Accuracy Export"
    kind = "accuracy.jsonl"
    files = {kind: "{prefix_}accuracy{_export}.jsonl"}
    answers = True

    def wanted(self) -> bool:
        return _is_graded(self.target)

    def rows(self, batch: RecordBatch) -> bytes:
        from aiperf_exporter_accuracy.lines import lines  # numpy: not in the parent, which only joins parts

        return lines(batch, self.target)


class AccuracyResults(SummaryExporter):
    """``accuracy_results.csv``: a row for each task, then OVERALL."""

    files = {"accuracy_results.csv": "{prefix_}accuracy_results.csv"}
    early = True

    def wanted(self) -> bool:
        return _is_graded(self.target)

    def export(self, summary: Summary) -> Sequence[Artifact]:
        from aiperf_exporter_accuracy.tasks import TaskRow, task_rows

        path, text = self.target.file("accuracy_results.csv"), io.StringIO(newline="")
        writer = csv.writer(text, lineterminator="\r\n")
        writer.writerow(TaskRow._fields)
        for row in task_rows(summary):
            writer.writerow("" if cell is None else f"{cell:.4f}" if isinstance(cell, float) else cell for cell in row)
        with atomic(path) as draft:
            draft.write_bytes(text.getvalue().encode())
        return [Artifact("Accuracy Results", path)]


__all__ = ["AccuracyLines", "AccuracyResults"]
