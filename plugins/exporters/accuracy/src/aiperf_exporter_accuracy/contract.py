"""The contracts of this package's plugins, with their material.  For tests, and for ``aiperf plugins validate``."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from aiperf import RecordBatch, Result, Target
from aiperf.sdk.columns import REPEAT
from aiperf.sdk.summary import GroupSummary, Interval, Summary
from aiperf.sdk.verdict import Evidence
from aiperf.testing import (
    AnalysisContract,
    BatchExporterContract,
    MetricContract,
    RunMetricContract,
    SummaryExporterContract,
    TablesContract,
    VerdictContract,
    sample_batch,
    sample_evidence,
    sample_summary,
)
from msgspec.structs import replace

from aiperf_exporter_accuracy import AccuracyLines, AccuracyResults
from aiperf_exporter_accuracy.metrics import AccuracyAnswers, AccuracyOverall, AccuracyUnparsed, RightAnswerThroughput
from aiperf_exporter_accuracy.repeats import AccuracyExtracted, AccuracyProblem, AccuracyRepeats
from aiperf_exporter_accuracy.table import AccuracyTable
from aiperf_exporter_accuracy.verdict import AccuracyVerdict

_RIGHT = '{"expected":"4","task":"sums","response":"4","grade":{"correct":true,"extracted":"4"}}'
_WRONG = '{"expected":"9","task":"sums","response":"8","grade":{"correct":false,"extracted":"8"}}'
_FAILED = '{"expected":"9","task":"sums","ungraded":"no answer: error"}'


def graded_batch() -> RecordBatch:
    """The made-up batch with grades, each problem asked three times."""
    batch = sample_batch()
    grades = [
        None if np.isnan(graded) else _FAILED if graded == 0 else _RIGHT if correct == 1 else _WRONG
        for graded, correct in zip(batch["graded"].tolist(), batch["correct"].tolist(), strict=True)
    ]
    texts = {
        **batch.texts, "grade": grades, "conversation_id": [f"p{i // 3}" for i in range(len(batch))],
        "finish_reason": ["length" if i % 5 == 2 else "stop" for i in range(len(batch))],
    }  # fmt: skip
    columns = {**batch.columns, REPEAT: np.arange(len(batch), dtype=np.float64) % 3}
    return RecordBatch(columns, batch.valid, texts)


def results_of(right: int, graded: int, *, failed: int = 0, ungraded: int = 0, cut: int = 0) -> dict[str, Result]:
    """The results of so many graded answers, one of which was unparsed."""
    share, interval = {"avg": right / graded, "sum": float(right), "count": graded}, Interval(0.25, 0.75, 0.95)
    unparsed = {"avg": 1 / graded, "sum": 1.0, "count": graded}
    counts = {"graded": graded, "failed": failed, "ungraded": ungraded, "cut": cut}
    return {
        "accuracy.answers": Result("accuracy.answers", "Answers", "count", {}, counts=counts),
        "accuracy.overall": Result("accuracy.overall", "Accuracy", "ratio", share, interval=interval),
        "accuracy.unparsed": Result("accuracy.unparsed", "Unparsed Answers", "ratio", unparsed),
    }


def graded_summary(*, cut: int = 0) -> Summary:
    """A run of two tasks."""
    summary = sample_summary(*results_of(9, 16, failed=6, ungraded=2, cut=cut).values())
    groups = (
        GroupSummary("task", "products", 0, results_of(3, 8, failed=4), 12),
        GroupSummary("task", "sums", 0, results_of(6, 8, failed=2, ungraded=2), 12),
    )
    return replace(summary, groups=groups)


def graded_evidence(*, cut: int = 0) -> Evidence:
    """The evidence of that run."""
    return replace(sample_evidence(), summary=graded_summary(cut=cut))


def _target(directory: Path) -> Target:
    return Target(directory, config={"accuracy": {"grader": "exact_match"}})


class AccuracyLinesContract(BatchExporterContract):
    """With grades."""

    exporter = AccuracyLines

    @pytest.fixture
    def target(self, tmp_path: Path) -> Target:
        return _target(tmp_path)

    def batch(self) -> RecordBatch:
        return graded_batch()


class AccuracyResultsContract(SummaryExporterContract):
    """With two tasks."""

    exporter = AccuracyResults

    def target(self, directory: Path) -> Target:
        return _target(directory)

    def summary(self) -> Summary:
        return graded_summary()


class AccuracyAnswersContract(MetricContract):
    """Graded and ungraded requests."""

    metric = AccuracyAnswers()

    def batch(self) -> RecordBatch:
        return graded_batch()


class AccuracyOverallContract(MetricContract):
    """Repeated problems."""

    metric = AccuracyOverall()

    def batch(self) -> RecordBatch:
        return graded_batch()


class AccuracyUnparsedContract(MetricContract):
    """Repeated problems."""

    metric = AccuracyUnparsed()

    def batch(self) -> RecordBatch:
        return graded_batch()


class AccuracyProblemContract(MetricContract):
    """Repeated problems."""

    metric = AccuracyProblem()

    def batch(self) -> RecordBatch:
        return graded_batch()


class AccuracyExtractedContract(MetricContract):
    """Repeated problems."""

    metric = AccuracyExtracted()

    def batch(self) -> RecordBatch:
        return graded_batch()


class AccuracyRepeatsContract(AnalysisContract):
    """Repeated problems."""

    metric = AccuracyRepeats()
    needed = (AccuracyProblem(), AccuracyExtracted())

    def batch(self) -> RecordBatch:
        return graded_batch()


class RightAnswerThroughputContract(RunMetricContract):
    """Any run."""

    metric = RightAnswerThroughput()


class AccuracyTableContract(TablesContract):
    """Runs with and without grades."""

    tables = AccuracyTable
    cases = ((graded_evidence(), ("accuracy_tasks",)), (sample_evidence(), ()))


class AccuracyVerdictContract(VerdictContract):
    """Runs with cut answers, and without."""

    verdict = AccuracyVerdict
    cases = ((graded_evidence(), ()), (graded_evidence(cut=1), ("answers_cut",)), (sample_evidence(), ()))
