"""Grading again from columns: a report with another grader, of a run that has kept answers, but not every byte of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from aiperf.parts import journal
from aiperf.parts.journal import Store
from aiperf.sdk.plan import Plan
from msgspec.structs import replace

from aiperf_reducer_columns.reduce.batches import StoredBatch, stored_batches
from aiperf_reducer_columns.reduce.grading import Graded, Grading, Pending
from aiperf_reducer_columns.reduce.reasons import decoded


def segments_are_whole(plan: Plan, directory: Path) -> bool:
    """Whether the run has kept every byte of its answers."""
    if plan.run.sites and not _fetched(plan, directory):
        return False
    kept = (journal.segment_path(directory, shard, 0).exists() for shard in range(plan.run.workers))
    return plan.output.export_level == "raw" and all(kept)


def _fetched(plan: Plan, directory: Path) -> bool:
    """Whether the segments of every site came."""
    end = journal.load_end(directory)
    return end is not None and len(end.sites) == len(plan.run.sites) and not any(site.lost for site in end.sites)


def columns_have_answers(directory: Path) -> bool:
    """Whether the run has kept the texts of its answers: for an exporter with ``answers``, or because it graded them."""
    first = next((stored for stored in stored_batches(directory) if stored.count), None)
    return first is not None and (first.answers is not None or bool(first.grades))


def regraded(stored: StoredBatch, plan: Plan, store: Store, grading: Grading) -> StoredBatch:
    """The batch with new grades.

    A grader gets no ``usage``, which columns have as numbers alone, and tool calls only where the run graded the answers.
    """
    if not stored.count:
        return stored
    columns, grades = stored.columns(), dict[int, Graded]()
    places = (columns[name].astype(np.int64).tolist() for name in ("entry", "turn", "outcome"))
    reasons = decoded(stored.reasons, stored.reason_places) if stored.reasons else [None] * stored.count
    for row, (entry, turn, outcome) in enumerate(zip(*places, strict=True)):
        asked = store.expectation(entry, turn)
        if asked is None or asked.expected is None:
            continue
        if outcome != journal.COMPLETED:
            grades[row] = Graded(asked.expected, asked.task, ungraded=f"no answer: {journal.OUTCOMES[outcome]}")
            continue
        answer = _answer(stored, row, reasons[row], several=plan.data.several_answers)
        if answer is None:
            grades[row] = Graded(asked.expected, asked.task, ungraded="the run has not kept the answer")
        else:
            grades[row] = grading.graded(entry, turn, asked.expected, asked.task, answer)
    return replace(stored, grades=grades)


def _answer(stored: StoredBatch, row: int, reason: str | None, *, several: bool) -> Pending | None:
    """The answer that was graded, of several the first; None where the columns lack it."""
    earlier = stored.grades.get(row)
    if earlier is not None and earlier.pending is not None:
        return earlier.pending
    calls = () if earlier is None else earlier.tool_calls
    if stored.answers is not None and not several:
        reasoning, text = stored.answers.get(row, ("", ""))
        return Pending(text, reasoning, reason, tool_calls=calls)
    return None if earlier is None else Pending(earlier.response, finish_reason=reason, tool_calls=calls)
