"""AIME: problems of the American Invitational Mathematics Examination, 2024 and 2025."""

from __future__ import annotations

from collections.abc import Sequence

from aiperf import DatasetContext
from aiperf_benchmarks.benchmark import Benchmark
from aiperf_benchmarks.options import BenchmarkOptions
from aiperf_benchmarks.problems import ProblemRow
from aiperf_benchmarks.protocol import AskedProblem, Protocol, one_text
from aiperf_benchmarks.words import words

_TOKENS = 32768
_WITH_EXAMPLES = "aime"
"""The name whose problems may stand behind examples; the others are their bare text."""


class Aime(Benchmark):
    """``aime`` has a template of its own; ``aime24`` and ``aime25`` are the bare problems.

    Examples are the first rows of the same split, since there is no other one, but never the problem that is asked; without
    the option there are none.
    """

    def __init__(self, options: BenchmarkOptions, context: DatasetContext) -> None:
        said = words(__package__ or "")
        self._templated = context.name == _WITH_EXAMPLES
        self.protocol = Protocol(
            columns=("Problem", "Answer"), split="train", shot_splits=("train",), most_shots=8, cot=True, both=True,
            tokens=_TOKENS, system_prompt=said["system"],
        ) if self._templated else Protocol(columns=("problem", "answer"), split="train", tokens=_TOKENS)  # fmt: skip
        super().__init__(options, context)

    def content(self, row: ProblemRow) -> str:
        return row.text(self.protocol.columns[0])

    def expected(self, row: ProblemRow) -> str:
        return row.text(self.protocol.columns[1])

    def asked(self, row: ProblemRow, task: str, shots: Sequence[ProblemRow]) -> AskedProblem:
        if not self._templated:
            return one_text(self.content(row))
        said = words(__package__ or "")
        last = f"**Problem**: {self.content(row)}\n**Answer**: \n\n{said['reasoning' if self.cot else 'terse']}"
        pairs = [(f"**Problem**: {self.content(shot)}", self._answer(shot)) for shot in shots]
        if not pairs:
            return one_text(last)
        text = "".join((said["header"], *(f"{question}\n{answer}\n\n" for question, answer in pairs), last))
        return AskedProblem(text, last, ((said["header"] + pairs[0][0], pairs[0][1]), *pairs[1:]))

    def _answer(self, row: ProblemRow) -> str:
        worked = f"**Solution**: {row.text('Solution', empty=True)}\n" if self.cot else ""
        return f"{worked}**Answer**: {self.expected(row)}"


__all__ = ["Aime"]
