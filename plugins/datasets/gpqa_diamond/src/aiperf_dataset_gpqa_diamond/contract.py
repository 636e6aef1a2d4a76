"""A generated sample for the conformance suite.  For tests, and for ``aiperf plugins validate``."""

from __future__ import annotations

from typing import Any

from aiperf_benchmarks.contract import BenchmarkContract

from aiperf_dataset_gpqa_diamond.dataset import GpqaDiamond


def sample(count: int) -> list[dict[str, Any]]:
    """*count* questions."""
    return [
        {
            "Question": f"Which element has {number} protons?", "Correct Answer": f"number {number}",
            **{f"Incorrect Answer {wrong}": f"number {number + wrong}" for wrong in (1, 2, 3)},
            "High-level domain": "Chemistry", "Subdomain": "Chemistry (general)",
        }
        for number in range(count)
    ]  # fmt: skip


class GpqaDiamondContract(BenchmarkContract):
    benchmark = GpqaDiamond
    named = "gpqa_diamond"
    rows = sample(5)


__all__ = ["GpqaDiamondContract", "sample"]
