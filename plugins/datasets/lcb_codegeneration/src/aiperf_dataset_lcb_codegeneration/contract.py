"""A generated sample for the conformance suite.  For tests, and for ``aiperf plugins validate``."""

from __future__ import annotations

import json
from typing import Any

from aiperf_benchmarks.contract import BenchmarkContract

from aiperf_dataset_lcb_codegeneration.dataset import LcbCodegeneration


def sample(count: int) -> list[dict[str, Any]]:
    """*count* problems: programs that read and write, and functions with starter code, in turn."""
    return [_row(number) for number in range(count)]


def _row(number: int) -> dict[str, Any]:
    function = number % 2 == 1
    starter = "class Solution:\n    def add(self, a: int) -> int:\n        " if function else ""
    cases = [{"input": str(given), "output": str(given + number), "testtype": "stdin"} for given in (1, 2)]
    return {
        "question_id": f"q{number}", "question_title": f"Add {number}", "platform": "none", "difficulty": "easy",
        "question_content": f"Add {number} to a number.", "starter_code": starter,
        "public_test_cases": json.dumps(cases), "private_test_cases": json.dumps(cases[:1]),
        "metadata": json.dumps({"func_name": "add"} if function else {}),
    }  # fmt: skip


class LcbCodegenerationContract(BenchmarkContract):
    benchmark = LcbCodegeneration
    named = "lcb_codegeneration"
    rows = sample(4)


__all__ = ["LcbCodegenerationContract", "sample"]
