"""Shares, repeats, the table and the advice, from batches to the summary without a wire."""

from __future__ import annotations

import csv
import io
import json
import random
from collections.abc import Sequence
from importlib.resources import files
from itertools import combinations
from math import comb
from pathlib import Path
from statistics import fmean

import jsonschema
import numpy as np
import pytest
from aiperf import RecordBatch, Target
from aiperf.sdk.columns import GRADE_COLUMNS, REPEAT
from aiperf.sdk.raw_values import RawValueCollector, RawValues
from aiperf.testing import sample_batch, sample_evidence
from aiperf_exporter_accuracy import AccuracyLines, AccuracyResults
from aiperf_exporter_accuracy.contract import graded_batch, graded_evidence, graded_summary
from aiperf_exporter_accuracy.metrics import (
    AccuracyAnswers,
    AccuracyOverall,
    AccuracyUnparsed,
    RightAnswerThroughput,
    ShareFold,
    is_cut,
)
from aiperf_exporter_accuracy.repeats import AccuracyExtracted, AccuracyProblem, AccuracyRepeats
from aiperf_exporter_accuracy.table import AccuracyTable
from aiperf_exporter_accuracy.tasks import task_rows
from aiperf_exporter_accuracy.verdict import AccuracyVerdict
from aiperf_grading.rates import pass_at
from aiperf_testing.batches import columns_of

SCHEMA = json.loads(files("aiperf_exporter_accuracy").joinpath("accuracy_export.schema.json").read_bytes())
CONFIG = {"accuracy": {"grader": "exact_match"}}


def answers(right: Sequence[bool], *, repeat: Sequence[int] | None = None) -> RecordBatch:
    """A batch of graded answers."""
    count = len(right)
    batch = sample_batch(count)
    columns = {**batch.columns, **{name: np.ones(count) for name in GRADE_COLUMNS}, "unparsed": np.zeros(count)}
    columns["correct"] = np.array(right, dtype=np.float64)
    columns[REPEAT] = np.full(count, np.nan) if repeat is None else np.array(repeat, dtype=np.float64)
    return RecordBatch(columns, np.ones(count, dtype=bool), batch.texts)


def share_of(*batches: RecordBatch) -> ShareFold:
    fold = ShareFold()
    for batch in batches:
        values = columns_of((AccuracyOverall(),), batch)["accuracy.overall"]
        fold.add(values[np.isfinite(values)])
    return fold


@pytest.mark.parametrize("share", [0.05, 0.5, 0.7, 0.98])
def test_nine_of_ten_intervals_hold_the_true_share(share: float) -> None:
    problems, seeds, held = 200, 200, 0
    for seed in range(seeds):
        draw = random.Random(f"{share}-{seed}")
        right = np.array([draw.random() < share for _ in range(problems)], dtype=np.float64)
        first, second = ShareFold(), ShareFold()
        first.add(right[:90])
        second.add(right[90:])
        first.merge(ShareFold.load(second.dump()))
        interval = first.interval()
        assert interval is not None
        held += interval.low <= share <= interval.high
    assert held >= 180, f"{held} of {seeds} intervals hold {share}"


def test_repeats_of_a_problem_make_no_interval_narrower() -> None:
    once, often = share_of(answers([True, False] * 50)), share_of(
        answers([True, False] * 50, repeat=[0] * 100), answers([True, False] * 50, repeat=[1] * 100)
    )  # fmt: skip
    assert once.interval() == often.interval()
    assert often.result() == {"avg": 0.5, "sum": 100, "count": 200}


def test_a_failed_request_is_in_no_share_and_counts_apart() -> None:
    batch = graded_batch()
    graded = batch["graded"] == 1
    assert share_of(batch).result() == {
        "avg": pytest.approx(batch["correct"][graded].mean()), "sum": batch["correct"][graded].sum(), "count": graded.sum(),
    }  # fmt: skip
    metric = AccuracyAnswers()
    values = columns_of((metric,), batch)["accuracy.answers"]
    fold = metric.fold()
    fold.add(values[np.isfinite(values)])
    cut = sum(1 for row in np.flatnonzero(graded) if batch.texts["finish_reason"][row] == "length")
    failed = int((batch["graded"] == 0).sum())
    assert fold.counts() == {"graded": int(graded.sum()), "failed": failed, "ungraded": 0, "cut": cut} and cut


@pytest.mark.parametrize(("reason", "cut"), [
    ("length", True), ("max_tokens", True), ("stop, LENGTH", True), ("stop", False), ("tool_calls", False), (None, False),
])
def test_an_answer_is_cut_by_its_reason(reason: str | None, cut: bool) -> None:
    assert is_cut(reason) is cut


def repeated(outcomes: Sequence[Sequence[str]], right: str) -> RecordBatch:
    """Answers to problems, those of each in the order of its repeats; *right* is the right one."""
    rows = [(problem, repeat, said) for problem, each in enumerate(outcomes) for repeat, said in enumerate(each)]
    random.Random(1).shuffle(rows)
    batch = answers([said == right for *_, said in rows], repeat=[repeat for _, repeat, _ in rows])
    texts = {
        **batch.texts, "conversation_id": [f"p{problem}" for problem, *_ in rows],
        "grade": [json.dumps({"grade": {"correct": said == right, "extracted": said or None}}) for *_, said in rows],
    }  # fmt: skip
    columns = {**batch.columns, "turn": np.zeros(len(rows))}
    return RecordBatch(columns, batch.valid, texts)


def repeats_of(tmp_path: Path, *batches: RecordBatch) -> dict[str, float]:
    metric, states = AccuracyRepeats(), []
    for number, batch in enumerate(batches):
        keeper = RawValueCollector(tmp_path / str(number), metric.keeps, metric.lists)
        keeper.add(batch, columns_of((AccuracyProblem(), AccuracyExtracted()), batch))
        states.append(keeper.dump())
    (results,) = metric.results(RawValues(states), [(0.0, float("inf"))])
    return {result.title: result.stats["avg"] for result in results}


def test_repeats_have_pass_at_k_and_the_majoritys_answer(tmp_path: Path) -> None:
    outcomes = [["A", "B", "A", "C"], ["B", "B", "A", "A"], ["", "", "", "A"], ["C", "C", "C", "C"]]
    found = repeats_of(tmp_path, repeated(outcomes, "A"))
    rights = [2, 2, 1, 0]
    assert found == {
        "pass@1": pytest.approx(fmean(right / 4 for right in rights)),
        "pass@2": pytest.approx(fmean(1 - comb(4 - right, 2) / comb(4, 2) for right in rights)),
        "pass@4": pytest.approx(0.75),
        # The first has A twice; of the second B comes first, of the third only A says anything.
        "maj@4": pytest.approx(0.5),
    }
    halves = repeated(outcomes, "A")
    parts = [halves.take(rows) for rows in np.array_split(np.arange(len(halves)), 3)]
    (tmp_path / "parts").mkdir()
    assert repeats_of(tmp_path / "parts", *reversed(parts)) == found


def test_problems_that_are_asked_once_have_no_repeats(tmp_path: Path) -> None:
    assert repeats_of(tmp_path, answers([True, False])) == {}


def test_pass_at_k_is_what_enumeration_gives() -> None:
    for answered in range(1, 9):
        for right in range(answered + 1):
            outcomes = [True] * right + [False] * (answered - right)
            for k in range(1, answered + 1):
                enumerated = fmean(any(each) for each in combinations(outcomes, k))
                assert pass_at(k, right, answered) == pytest.approx(enumerated)


def test_lines_are_of_the_schema_and_say_why_there_is_no_grade(tmp_path: Path) -> None:
    batch = graded_batch()
    lines = [json.loads(line) for line in AccuracyLines(Target(tmp_path, config=CONFIG)).rows(batch).splitlines()]
    assert len(lines) == int(np.isfinite(batch["graded"]).sum())
    for line in lines:
        jsonschema.validate(line, SCHEMA)
    failed = [line for line in lines if line["passed"] is None]
    assert {line["explanation"] for line in failed} == {"no answer: error"} and len(failed) == 6
    assert {line["expected"] for line in lines} == {"4", "9"} and {line["grader_name"] for line in lines} == {"exact_match"}


def test_a_run_without_a_grader_writes_neither_file(tmp_path: Path) -> None:
    assert not AccuracyLines(Target(tmp_path)).wanted() and not AccuracyResults(Target(tmp_path)).wanted()


def test_the_table_of_tasks_ends_with_all_together(tmp_path: Path) -> None:
    exporter = AccuracyResults(Target(tmp_path, config=CONFIG))
    (artifact,) = exporter.export(graded_summary())
    rows = list(csv.DictReader(io.StringIO(artifact.path.read_text())))
    assert [row["task"] for row in rows] == ["products", "sums", "OVERALL"]
    assert list(rows[0]) == ["task", "correct", "total", "unparsed", "accuracy", "failed", "ungraded", "ci_low", "ci_high"]
    assert rows[-1] == {
        "task": "OVERALL", "correct": "9", "total": "16", "unparsed": "1", "accuracy": "0.5625", "failed": "6", "ungraded": "2",
        "ci_low": "0.2500", "ci_high": "0.7500",
    }  # fmt: skip


def test_the_console_says_coverage_and_the_summary_how_it_was_asked() -> None:
    table, facts = AccuracyTable(None).tables(graded_evidence())
    assert [row[:2] for row in table.rows] == [("products", 37.5), ("sums", 75.0), ("OVERALL", 56.25)]
    assert table.notes[0] == "16 of 24 answers graded; 6 requests failed; 2 left ungraded by the grader"
    assert (facts.name, facts.facts["graded"], facts.facts["failed"]) == ("accuracy", 16, 6)
    assert task_rows(sample_evidence().summary) == [] and list(AccuracyTable(None).tables(sample_evidence())) == []


@pytest.mark.parametrize(("cut", "kinds"), [(0, []), (1, ["answers_cut"])])
def test_more_than_a_twentieth_cut_is_advice(cut: int, kinds: list[str]) -> None:
    findings = list(AccuracyVerdict(None).judge(graded_evidence(cut=cut)))
    assert [finding.kind for finding in findings] == kinds
    assert all("raise the budget with --osl" in finding.sentence for finding in findings)


class Run:
    """Totals of 4 s with two right answers."""

    duration_s = 4.0

    def sum(self, tag: str) -> float | None:
        return {"accuracy.overall": 2.0}.get(tag)


WORKED = {
    "accuracy_answers": {"graded": 4, "failed": 1, "ungraded": 1, "cut": 1},
    "accuracy_overall": {"avg": 0.5, "sum": 2, "count": 4},
    "accuracy_unparsed": {"avg": 0.25, "sum": 1, "count": 4},
    "accuracy_problem": [0, 0, 1, 1, 2, 3],  # places among different problems
    "accuracy_extracted": [0, 1, None, None, None, None],  # places among different texts; an answer without one is -1
    "accuracy_repeats": {"pass@1": 0.5, "pass@2": 1.0, "maj@2": 0.5},
    "right_answer_throughput": 0.5,
}


def places(values: Sequence[float]) -> list[int | None]:
    order = list(dict.fromkeys(value for value in values if np.isfinite(value) and value >= 0))
    return [order.index(value) if np.isfinite(value) and value >= 0 else None for value in values]


def test_six_answers_are_worked_out_by_hand(tmp_path: Path) -> None:
    """Two problems asked twice, one answered right once each time; one left ungraded; one failed request."""
    batch = answers([True, False, True, False, False, False], repeat=[0, 1, 0, 1, 0, 0])
    columns = {**batch.columns, "turn": np.zeros(6), "graded": np.array([1.0, 1, 1, 1, 0, 0])}
    columns["unparsed"] = np.array([0.0, 0, 1, 0, 0, 0])
    columns["ended_ns"] = np.arange(6.0)
    columns["started_ns"] = np.arange(6.0)
    said = ["4", "5", None, None]
    texts = {
        **batch.texts, "conversation_id": ["a", "a", "b", "b", "c", "d"], "finish_reason": ["stop"] * 3 + ["length"] * 3,
        "grade": [*(json.dumps({"grade": {"correct": True, "extracted": each}}) for each in said), "{}", "{}"],
    }  # fmt: skip
    batch = RecordBatch(columns, np.array([True] * 5 + [False]), texts)
    problem, extracted = AccuracyProblem(), AccuracyExtracted()
    found: dict[str, object] = {}
    shares = {"accuracy_overall": AccuracyOverall(), "accuracy_unparsed": AccuracyUnparsed()}
    for name, metric in {"accuracy_answers": AccuracyAnswers(), **shares}.items():
        values, fold = columns_of((metric,), batch)[metric.tag], metric.fold()
        fold.add(values[np.isfinite(values)])
        found[name] = fold.counts() or fold.result()
    both = columns_of((problem, extracted), batch)
    found |= {name: places(both[name].tolist()) for name in ("accuracy_problem", "accuracy_extracted")}
    found["accuracy_repeats"] = repeats_of(tmp_path, batch)
    found["right_answer_throughput"] = RightAnswerThroughput().number(Run())
    assert found == WORKED
