"""A generated sample for the conformance suite.  For tests, and for ``aiperf plugins validate``."""

from __future__ import annotations

from typing import Any

from aiperf_benchmarks.contract import BenchmarkContract

from aiperf_dataset_mmlu_pro.dataset import MmluPro


def sample(count: int) -> list[dict[str, Any]]:
    """*count* questions of two categories in turn, then six rows of each for examples."""
    rows = [_row(number, ("law", "math")[number % 2], "test") for number in range(count)]
    return rows + [_row(1000 + number, category, "validation") for category in ("law", "math") for number in range(6)]


def _row(number: int, category: str, split: str) -> dict[str, Any]:
    options = [f"{number + offset} of them" for offset in range(8)] + ["N/A"] * (number % 2)
    answer = "ABCDEFGH"[number % 8]
    worked = f"A: Let's think step by step. Count to {number}. The answer is ({answer})." if split == "validation" else ""
    question = f"How many {category} cases are in {number}?"
    return {
        "question": question, "options": options, "answer": answer, "category": category, "cot_content": worked, "split": split,
    }  # fmt: skip


class MmluProContract(BenchmarkContract):
    benchmark = MmluPro
    named = "mmlu_pro"
    rows = sample(4)


__all__ = ["MmluProContract", "sample"]
