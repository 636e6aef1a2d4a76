"""LiveCodeBench: programs for problems of contests, which run on test cases."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Any

import msgspec
from aiperf import BadDataset
from aiperf_benchmarks.benchmark import Benchmark
from aiperf_benchmarks.problems import ProblemRow
from aiperf_benchmarks.protocol import AskedProblem, Protocol, one_text
from aiperf_benchmarks.words import words

RELEASE = "AIPERF_ACCURACY_LCB_RELEASE_TAG"
_USUAL, _MOST = "v4_v5", 6
"""The release without the variable; the number of the newest file."""
_MATERIAL = ("starter_code", "public_test_cases", "private_test_cases", "metadata")
"""The columns that a grader needs to run a program."""


class LcbCodegeneration(Benchmark):
    """The statement with its starter code; the test cases are expected, as the row has them.

    The repository's script isn't run: a release is some of its files.
    """

    protocol = Protocol(columns=("question_content", *_MATERIAL[1:3]), split="test", tokens=32768, cot=False, large=True)

    def place(self) -> dict[str, Any]:
        return {**self.context.row, "files": files_of(os.environ.get(RELEASE, "").strip() or _USUAL)}

    def content(self, row: ProblemRow) -> str:
        return row.text("question_content")

    def expected(self, row: ProblemRow) -> str:
        return msgspec.json.encode({column: row.values.get(column) or "" for column in _MATERIAL}).decode()

    def asked(self, row: ProblemRow, task: str, shots: Sequence[ProblemRow]) -> AskedProblem:
        said, starter = words(__package__ or ""), row.text("starter_code", empty=True)
        how, code = (said["starter"], starter) if starter else (said["input"], said["blank"])
        return one_text(f"{said['instruction']}Question: {self.content(row)}\n\n{how}```python\n{code}\n```\n\n")


def files_of(release: str) -> list[str]:
    """The files of a release: ``v5`` is one, ``v4_v5`` a range of them, ``release_v5`` all up to it.

    Raises:
        BadDataset: There is no such release.
    """
    match = re.fullmatch(r"(release_)?v([1-9])(?:_v([1-9]))?", release)
    first, last = (1 if match[1] else int(match[2]), int(match[3] or match[2])) if match else (0, 0)
    if not 1 <= first <= last <= _MOST or (match and match[1] and match[3]):
        raise BadDataset(
            f"{RELEASE}={release}: LiveCodeBench has no such release",
            f"write v1 to v{_MOST}, a range such as {_USUAL}, or release_v{_MOST}",
        )
    return [f"test{number}.jsonl" if number > 1 else "test.jsonl" for number in range(first, last + 1)]


__all__ = ["LcbCodegeneration"]
