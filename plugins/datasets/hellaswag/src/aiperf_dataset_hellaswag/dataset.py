"""HellaSwag: which of four sentences goes on with a text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from aiperf_benchmarks.benchmark import Benchmark
from aiperf_benchmarks.problems import LETTERS, ProblemRow
from aiperf_benchmarks.protocol import AskedProblem, Protocol
from aiperf_benchmarks.words import words

_ENDINGS = 4
"""Continuations of a text."""
_ACTIVITY = "activity_label"


class Hellaswag(Benchmark):
    """Examples are the first row of each activity in the split train."""

    protocol = Protocol(
        columns=("ctx", "endings", "label"), split="validation", shot_splits=("train",), task_column=_ACTIVITY,
        shots=10, most_shots=15, cot=False, tokens=5,
    )  # fmt: skip

    def content(self, row: ProblemRow) -> str:
        return _question(row)

    def expected(self, row: ProblemRow) -> str:
        return LETTERS[row.choice("label", _ENDINGS)]

    def usable(self, row: ProblemRow) -> bool:
        """Whether its answer is known: it isn't in the hub's split test."""
        return row.values.get("label") not in ("", None)

    def asked(self, row: ProblemRow, task: str, shots: Sequence[ProblemRow]) -> AskedProblem:
        said = words(__package__ or "")
        lead, last = said["instruction"].format(activity=task), _question(row) + said["closing"]
        pairs = [(_question(shot), self.expected(shot)) for shot in shots]
        text = "".join((lead, *(f"{question} {answer}\n\n" for question, answer in pairs), last))
        if not pairs:
            return AskedProblem(text, text)
        return AskedProblem(text, last, ((lead + pairs[0][0], pairs[0][1]), *pairs[1:]))

    def example_rows(self, rows: Iterator[tuple[str, ProblemRow]], count: int) -> dict[str, tuple[ProblemRow, ...]]:
        first: dict[str, ProblemRow] = {}
        for activity, row in rows:
            first.setdefault(activity, row)
            if len(first) == count:
                break
        return {"": tuple(first.values())} if first else {}


def _question(row: ProblemRow) -> str:
    endings = row.texts("endings", _ENDINGS)
    lines = (f"\n{letter}. {ending}" for letter, ending in zip(LETTERS, endings, strict=False))
    return f"{row.text('ctx')}{''.join(lines)}\nAnswer:"


__all__ = ["Hellaswag"]
