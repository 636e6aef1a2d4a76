"""GPQA Diamond: hard questions of biology, chemistry and physics with four choices."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Sequence

from aiperf_benchmarks.benchmark import Benchmark
from aiperf_benchmarks.problems import LETTERS, ProblemRow
from aiperf_benchmarks.protocol import AskedProblem, Protocol, one_text
from aiperf_benchmarks.words import words

_RIGHT = "Correct Answer"
_CHOICES = (_RIGHT, "Incorrect Answer 1", "Incorrect Answer 2", "Incorrect Answer 3")
_SEEDS = 2**32
"""Seeds of orders of choices."""


class GpqaDiamond(Benchmark):
    """The choices have an order that is drawn from the question, so it is the same in every run."""

    protocol = Protocol(columns=("Question", *_CHOICES), split="train", tokens=32768)

    def content(self, row: ProblemRow) -> str:
        return row.text("Question")

    def expected(self, row: ProblemRow) -> str:
        return LETTERS[_order(row).index(_RIGHT)]

    def asked(self, row: ProblemRow, task: str, shots: Sequence[ProblemRow]) -> AskedProblem:
        choices = (f"{letter}) {row.text(column)}" for letter, column in zip(LETTERS, _order(row), strict=False))
        lead = words(__package__ or "")["instruction"]
        return one_text(f"{lead}\n\n{self.content(row)}\n\n" + "\n".join(choices))


def _order(row: ProblemRow) -> list[str]:
    """The columns of the choices in the order in which they are shown."""
    seed = int(hashlib.sha256(row.text("Question").encode()).hexdigest(), 16) % _SEEDS
    order = list(_CHOICES)
    random.Random(seed).shuffle(order)
    return order


__all__ = ["GpqaDiamond"]
