"""MMLU-Pro: questions with up to ten choices in 14 categories."""

from __future__ import annotations

from collections.abc import Sequence

from aiperf_benchmarks.benchmark import Benchmark
from aiperf_benchmarks.problems import LETTERS, ProblemRow
from aiperf_benchmarks.protocol import AskedProblem, Protocol
from aiperf_benchmarks.words import words

CATEGORIES = (
    "biology", "business", "chemistry", "computer science", "economics", "engineering", "health", "history", "law", "math",
    "philosophy", "physics", "psychology", "other",
)  # fmt: skip
_MOST = 10
"""Choices of a question."""
_ABSENT = "N/A"
"""What stands in place of a choice that a question doesn't have."""
_MARK = "A: "
"""What the worked reasoning of an example may begin with."""


class MmluPro(Benchmark):
    """Examples are the first rows of the category in the split validation, with their worked reasoning."""

    protocol = Protocol(
        columns=("question", "options", "answer"), split="test", shot_splits=("validation",),
        task_column="category", tasks=CATEGORIES, shots=5, most_shots=32, cot=True, both=True, tokens=4000, tokens_cot=4000,
    )  # fmt: skip

    def content(self, row: ProblemRow) -> str:
        return _question(row)

    def expected(self, row: ProblemRow) -> str:
        return LETTERS[row.choice("answer", _MOST)]

    def asked(self, row: ProblemRow, task: str, shots: Sequence[ProblemRow]) -> AskedProblem:
        said = words(__package__ or "")
        lead = said["instruction"].format(category=task) + (said["reasoning"] if self.cot else "") + "\n\n"
        last = f"{_question(row)}Answer: {said['primer'] if self.cot else ''}\n\n"
        pairs = [(_question(shot), self._answer(shot)) for shot in shots]
        text = "".join((lead, *(f"{question}Answer: {answer}\n\n" for question, answer in pairs), last))
        if not pairs:
            return AskedProblem(text, text)
        first, *others = [(f"{question}Answer:", answer) for question, answer in pairs]
        return AskedProblem(text, last, ((lead + first[0], first[1]), *others))

    def _answer(self, row: ProblemRow) -> str:
        if not self.cot:
            return self.expected(row)
        worked = row.text("cot_content", empty=True) or words(__package__ or "")["primer"]
        return worked.removeprefix(_MARK)


def _question(row: ProblemRow) -> str:
    choices = [choice for choice in row.texts("options", 1, _MOST) if choice != _ABSENT]
    lines = (f"{letter}. {choice}\n" for letter, choice in zip(LETTERS, choices, strict=False))
    return f"Question: {row.text('question')}\nOptions: {''.join(lines)}"


__all__ = ["MmluPro"]
