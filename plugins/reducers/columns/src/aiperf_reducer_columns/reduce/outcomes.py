"""What slow graders made of a run's answers: ``grades`` in the journal, a line of JSON for each answer."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TypeAlias

import msgspec
from aiperf.sdk.grader import Grade
from msgspec import Struct
from msgspec.structs import replace

from aiperf_reducer_columns.reduce.grading import Graded

Key: TypeAlias = tuple[int, int]
"""Shard and number of a request."""
GRADES = "grades"


class Outcome(Struct, frozen=True, omit_defaults=True):
    """A line of the file."""

    shard: int
    request: int
    grade: Grade | None = None
    ungraded: str | None = None

    def of(self, pending: Graded) -> Graded:
        """The answer with this outcome."""
        return replace(pending, grade=self.grade, ungraded=self.ungraded, pending=None)


def read_outcomes(path: Path) -> tuple[dict[Key, Outcome], int]:
    """The outcomes, and the bytes of a last line that a killed process left half written."""
    try:
        *lines, half = path.read_bytes().split(b"\n")
    except FileNotFoundError:
        return {}, 0
    outcomes = (msgspec.json.decode(line, type=Outcome) for line in lines)
    return {(each.shard, each.request): each for each in outcomes}, len(half)


def with_outcomes(grades: dict[int, Graded], keys: Mapping[int, Key], outcomes: Mapping[Key, Outcome]) -> dict[int, Graded]:
    """The grades by row, those that waited with their outcomes.  *keys*: of the requests, by row."""
    known = {row: outcomes[key] for row, key in keys.items() if grades[row].pending is not None and key in outcomes}
    return grades | {row: outcome.of(grades[row]) for row, outcome in known.items()}
