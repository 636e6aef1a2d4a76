"""Answers that were expected and not graded, for the summary."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence

import msgspec
import numpy as np
from aiperf.sdk.columns import REPEAT, RecordBatch
from aiperf.sdk.plan import PhasePlan
from aiperf.sdk.summary import UngradedAnswer

from aiperf_reducer_columns.reduce.grading import Graded

_MOST = 1000
"""Answers that a summary names."""
_read = msgspec.json.Decoder(Graded).decode


def with_ungraded(
    known: list[UngradedAnswer], batch: RecordBatch, phases: Sequence[PhasePlan]
) -> list[UngradedAnswer]:
    """*known* with those of a batch, the first by conversation; a failed request has no answer and is none of them."""
    profiling = [phase.index for phase in phases if phase.kind == "profiling"]
    rows = np.flatnonzero((batch["graded"] == 0) & batch.valid & np.isin(batch["phase"], profiling)).tolist()
    if not rows:
        return known
    names, grades = batch.texts["conversation_id"], batch.texts["grade"]
    turns, repeats = batch["turn"], batch[REPEAT]
    found = []
    for row in rows:
        reason = _read((grades[row] or "{}").encode()).ungraded or "the grader gave no grade"
        repeat = -1 if np.isnan(repeats[row]) else int(repeats[row])
        found.append(UngradedAnswer(names[row] or "", int(turns[row]), repeat, reason))
    return least([*known, *found])


def least(answers: Iterable[UngradedAnswer]) -> list[UngradedAnswer]:
    """At most 1,000 of them, the first by conversation, turn and repeat."""
    return heapq.nsmallest(_MOST, answers)
