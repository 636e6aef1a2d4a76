"""A generated sample for the conformance suite.  For tests, and for ``aiperf plugins validate``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from aiperf_benchmarks.contract import BenchmarkContract

from aiperf_dataset_bigbench.dataset import Bigbench


def sample(count: int, subtasks: Sequence[str] = ("boolean_expressions", "snarks", "object_counting")) -> list[dict[str, Any]]:
    """*count* problems of these subtasks in turn."""
    return [
        {"input": f"not ( {number} ) is", "target": "True" if number % 2 else "False", "task": subtasks[number % len(subtasks)]}
        for number in range(count)
    ]


class BigbenchContract(BenchmarkContract):
    benchmark = Bigbench
    named = "bigbench"
    rows = sample(5)


__all__ = ["BigbenchContract", "sample"]
