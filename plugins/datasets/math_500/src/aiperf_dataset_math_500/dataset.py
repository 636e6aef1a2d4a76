"""MATH-500: 500 problems of the data set MATH."""

from __future__ import annotations

from collections.abc import Sequence

from aiperf_benchmarks.benchmark import Benchmark
from aiperf_benchmarks.problems import ProblemRow
from aiperf_benchmarks.protocol import AskedProblem, Protocol, one_text


class Math500(Benchmark):
    """The bare problem; the whole solution is expected, in whose box the answer stands."""

    protocol = Protocol(
        columns=("problem", "solution"), split="test", task_column="subject", tokens=32768,
    )  # fmt: skip

    def content(self, row: ProblemRow) -> str:
        return row.text("problem")

    def expected(self, row: ProblemRow) -> str:
        return row.text("solution")

    def asked(self, row: ProblemRow, task: str, shots: Sequence[ProblemRow]) -> AskedProblem:
        return one_text(self.content(row))


__all__ = ["Math500"]
