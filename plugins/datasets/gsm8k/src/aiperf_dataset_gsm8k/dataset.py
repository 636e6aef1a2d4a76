"""GSM8K: problems of grade school mathematics, in words."""

from __future__ import annotations

from collections.abc import Sequence

from aiperf_benchmarks.benchmark import Benchmark
from aiperf_benchmarks.problems import ProblemRow
from aiperf_benchmarks.protocol import AskedProblem, Protocol, one_text


class Gsm8k(Benchmark):
    """The question alone; the worked answer is expected, which ends with its number behind ``####``."""

    protocol = Protocol(columns=("question", "answer"), split="test", cot=False, tokens=256)

    def content(self, row: ProblemRow) -> str:
        return row.text("question")

    def expected(self, row: ProblemRow) -> str:
        return row.text("answer")

    def asked(self, row: ProblemRow, task: str, shots: Sequence[ProblemRow]) -> AskedProblem:
        return one_text(f"Question: {self.content(row)}\nAnswer:")


__all__ = ["Gsm8k"]
