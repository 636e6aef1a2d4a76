"""The table of the tasks, and what the summary says of how they were asked."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from aiperf import Evidence, Summary
from aiperf.sdk.redaction import shown_fields
from aiperf.sdk.table import Cell, SummaryFacts, SummaryTable, TableColumn, Tables

from aiperf_exporter_accuracy.metrics import LEVEL
from aiperf_exporter_accuracy.tasks import TaskRow, task_rows

_COLUMNS = (
    TableColumn("task"), TableColumn("accuracy", "%"), TableColumn("ci_low", "%"), TableColumn("ci_high", "%"),
    TableColumn("correct"), TableColumn("total"), TableColumn("unparsed"), TableColumn("failed"), TableColumn("ungraded"),
)  # fmt: skip
_SETTINGS = ("temperature", "seed", "stop", "max_tokens")
_OF_DATA = ("revision", "data_source", "n_shots", "cot", "limit", "repeats", "problems")


class AccuracyTable(Tables[None]):
    """``accuracy_tasks``, where a grader compared answers."""

    def tables(self, evidence: Evidence) -> Iterator[SummaryTable | SummaryFacts]:
        rows = task_rows(evidence.summary)
        if not rows:
            return
        overall = rows[-1]
        asked = _asked(evidence, overall)
        title = f"Accuracy ({evidence.plan.plugins.grader.name})" if evidence.plan.plugins.grader else "Accuracy"
        notes = tuple(_notes(evidence.summary, overall, asked))
        yield SummaryTable("accuracy_tasks", title, _COLUMNS, tuple(map(_cells, rows)), notes)
        yield SummaryFacts("accuracy", _facts(evidence, overall, asked))


def _cells(row: TaskRow) -> tuple[Cell, ...]:
    accuracy, low, high = (None if each is None else 100 * each for each in (row.accuracy, row.ci_low, row.ci_high))
    return (row.task, accuracy, low, high, row.correct, row.total, row.unparsed, row.failed, row.ungraded)


def _asked(evidence: Evidence, overall: TaskRow) -> int:
    """How many answers a whole pass has: problems times repeats where the data set says so, else the requests so far."""
    facts, seen = evidence.plan.data.facts, overall.total + overall.failed + overall.ungraded
    problems, repeats = facts.get("problems"), facts.get("repeats") or 1
    return max(seen, problems * repeats) if isinstance(problems, int) and isinstance(repeats, int) else seen


def _notes(summary: Summary, overall: TaskRow, asked: int) -> Iterator[str]:
    """Coverage, repeats, and what the interval is."""
    parts = [f"{overall.total:,} of {asked:,} answers graded"]
    parts += [f"{overall.failed:,} requests failed"] if overall.failed else []
    parts += [f"{overall.ungraded:,} left ungraded by the grader"] if overall.ungraded else []
    never = asked - overall.total - overall.failed - overall.ungraded
    parts += [f"{never:,} never asked"] if never else []
    yield "; ".join(parts)
    if (right := summary.results.get("right_answer_throughput")) is not None:
        yield f"{right.stats['avg']:.2f} right answers per second"
    passes = [result for tag, result in summary.results.items() if tag.startswith("accuracy.pass_at_")]
    votes = [summary.results["accuracy.majority"]] if "accuracy.majority" in summary.results else []
    if passes or votes:
        yield ", ".join(f"{each.title} {100 * each.stats['avg']:.1f} %" for each in (*passes, *votes))
    repeated = " of as many answers as problems" if passes else ""
    yield f"intervals: Wilson, {LEVEL:.0%}{repeated}; failed and ungraded requests are in no share"
    for one in summary.ungraded[:3]:
        yield f"ungraded: {one.conversation_id}: {' '.join(one.reason.split())}"


def _facts(evidence: Evidence, overall: TaskRow, asked: int) -> dict[str, Any]:
    facts, plan = evidence.plan.data.facts, evidence.plan
    known = facts.get("settings")
    settings = known if isinstance(known, dict) else {}
    sent = shown_fields(plan.target.sent({name: each for name, each in settings.items() if name != "max_tokens"}, {}))
    sent = {"max_tokens": settings.get("max_tokens"), **sent}
    results = evidence.summary.results
    repeated = {
        tag.removeprefix("accuracy."): result.stats["avg"]
        for tag, result in results.items() if tag.startswith("accuracy.pass_at_") or tag == "accuracy.majority"
    }  # fmt: skip
    return {
        "benchmark": facts.get("name"), "grader": plan.plugins.grader.name if plan.plugins.grader else None,
        **{name: facts.get(name) for name in _OF_DATA},
        "asked": asked, "graded": overall.total, "correct": overall.correct, "failed": overall.failed,
        "ungraded": [
            {"problem_id": one.conversation_id, "repeat": one.repeat, "reason": one.reason}
            for one in evidence.summary.ungraded
        ],
        "ungraded_count": overall.ungraded, **repeated,
        "settings": {name: sent[name] for name in _SETTINGS if sent.get(name) is not None},
        "symbolic_engine": plan.plugins.grading_engine, "interval_level": LEVEL,
    }  # fmt: skip


__all__ = ["AccuracyTable"]
