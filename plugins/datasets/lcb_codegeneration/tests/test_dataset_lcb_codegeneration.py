"""LiveCodeBench: how its rows are asked."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from aiperf import BadDataset
from aiperf_benchmarks.contract import opened, write
from aiperf_dataset_lcb_codegeneration.contract import LcbCodegenerationContract, sample
from aiperf_dataset_lcb_codegeneration.dataset import LcbCodegeneration, files_of


class TestLcbCodegenerationKeepsTheContract(LcbCodegenerationContract):
    pass


LEAD = (
    "You will be given a question (problem specification) and will generate a correct Python program that matches the"
    " specification and passes all tests.\n\nQuestion: Add {0} to a number.\n\n"
)


def test_programs_and_functions_are_asked_for(tmp_path: Path) -> None:
    program, function = opened(LcbCodegeneration, "lcb_codegeneration", write(tmp_path / "l.jsonl", sample(2)))
    assert program.turns[0].text.startswith(LEAD.format(0) + "Read the inputs from stdin")
    assert program.turns[0].text.endswith("writes output to STDOUT.\n```python\n# YOUR CODE HERE\n```\n\n")
    assert function.turns[0].text.startswith(LEAD.format(1) + "You will use the following starter code")
    assert "```python\nclass Solution:\n    def add(self, a: int) -> int:\n" in function.turns[0].text


def test_the_test_cases_are_expected(tmp_path: Path) -> None:
    rows = sample(2)
    _, function = opened(LcbCodegeneration, "lcb_codegeneration", write(tmp_path / "l.jsonl", rows))
    names = ("starter_code", "public_test_cases", "private_test_cases", "metadata")
    assert json.loads(function.turns[0].expected or "") == {name: rows[1][name] for name in names}


@pytest.mark.parametrize(("release", "files"), [
    ("v1", ["test.jsonl"]), ("v5", ["test5.jsonl"]), ("v4_v5", ["test4.jsonl", "test5.jsonl"]),
    ("release_v3", ["test.jsonl", "test2.jsonl", "test3.jsonl"]),
])  # fmt: skip
def test_a_release_is_some_files(release: str, files: list[str]) -> None:
    assert files_of(release) == files


@pytest.mark.parametrize("release", ["v7", "v5_v4", "release_v4_v5", "latest", ""])
def test_unknown_releases_are_refused(release: str) -> None:
    with pytest.raises(BadDataset, match="LiveCodeBench has no such release"):
        files_of(release)


def test_a_folder_has_the_files_of_the_release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number, row in enumerate(sample(3)):
        write(tmp_path / f"test{number + 4}.jsonl", [row])
    count = len(list(opened(LcbCodegeneration, "lcb_codegeneration", tmp_path)))
    monkeypatch.setenv("AIPERF_ACCURACY_LCB_RELEASE_TAG", "v6")
    assert (count, len(list(opened(LcbCodegeneration, "lcb_codegeneration", tmp_path)))) == (2, 1)
