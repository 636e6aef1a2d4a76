"""A generated sample for the conformance suite.  For tests, and for ``aiperf plugins validate``."""

from __future__ import annotations

from typing import Any

from aiperf_benchmarks.contract import BenchmarkContract

from aiperf_dataset_gsm8k.dataset import Gsm8k


def sample(count: int) -> list[dict[str, Any]]:
    """*count* problems."""
    return [
        {"question": f"A hen lays {number} eggs a day. How many in a week?", "answer": f"7 * {number}\n#### {7 * number}"}
        for number in range(count)
    ]


class Gsm8kContract(BenchmarkContract):
    benchmark = Gsm8k
    named = "gsm8k"
    rows = sample(5)


__all__ = ["Gsm8kContract", "sample"]
