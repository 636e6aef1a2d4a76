"""A generated sample for the conformance suite.  For tests, and for ``aiperf plugins validate``."""

from __future__ import annotations

from typing import Any

from aiperf_benchmarks.contract import BenchmarkContract

from aiperf_dataset_math_500.dataset import Math500


def sample(count: int) -> list[dict[str, Any]]:
    """*count* problems of two subjects in turn."""
    return [
        {
            "problem": f"What is ${number} / 3$?", "solution": rf"It is $\boxed{{\frac{{{number}}}{{3}}}}$.",
            "subject": ("Algebra", "Number Theory")[number % 2], "level": 1 + number % 5, "unique_id": f"test/{number}.json",
        }
        for number in range(count)
    ]  # fmt: skip


class Math500Contract(BenchmarkContract):
    benchmark = Math500
    named = "math_500"
    rows = sample(5)


__all__ = ["Math500Contract", "sample"]
