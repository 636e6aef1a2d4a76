"""A generated sample for the conformance suite.  For tests, and for ``aiperf plugins validate``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from aiperf_benchmarks.contract import BenchmarkContract

from aiperf_dataset_mmlu.dataset import Mmlu


def sample(count: int, subjects: Sequence[str] = ("anatomy", "astronomy")) -> list[dict[str, Any]]:
    """*count* questions of these subjects in turn, then seven rows of each for examples."""
    rows = [_row(number, subjects[number % len(subjects)], "test") for number in range(count)]
    return rows + [_row(1000 + number, subject, "dev") for subject in subjects for number in range(7)]


def _row(number: int, subject: str, split: str) -> dict[str, Any]:
    choices = [f"{number + offset} times" for offset in range(4)]
    question = f"How often does {subject} {number} turn?"
    return {"question": question, "choices": choices, "answer": number % 4, "subject": subject, "split": split}


class MmluContract(BenchmarkContract):
    benchmark = Mmlu
    named = "mmlu"
    rows = sample(4)


__all__ = ["MmluContract", "sample"]
