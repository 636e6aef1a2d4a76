"""A generated sample for the conformance suite.  For tests, and for ``aiperf plugins validate``."""

from __future__ import annotations

from typing import Any

from aiperf_benchmarks.contract import BenchmarkContract

from aiperf_dataset_aime.dataset import Aime


def sample(count: int, *, bare: bool = False) -> list[dict[str, Any]]:
    """*count* problems.  bare: with the columns of ``aime24`` and ``aime25``."""
    rows = []
    for number in range(count):
        problem = f"Find $n$ with $n - {number} = {number}$."
        worked = f"Add ${number}$ to both sides: $n = {2 * number}$."
        row = {"problem": problem, "answer": str(2 * number)}
        rows.append(row if bare else {"Problem": problem, "Solution": worked, "Answer": 2 * number})
    return rows


class AimeContract(BenchmarkContract):
    benchmark = Aime
    named = "aime"
    rows = sample(5)
    examples = 2


__all__ = ["AimeContract", "sample"]
