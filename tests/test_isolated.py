"""Tests of packages alone: none is lost, and failures of two kinds differ."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import isolated
import pytest
from requirements import ROOT


def outcome(code: int, *tests: str, **other: list[str]) -> dict[str, Any]:
    return {"code": code, "tests": list(tests), "skipped": [], **other}


@pytest.mark.parametrize(("outcomes", "passes_alone", "runs", "faults"), [
    ([outcome(0), outcome(0)], True, [], []),
    ([outcome(1, "a", "b"), outcome(0)], True, [["a", "b"]], []),
    ([outcome(1, "a"), outcome(1, "b")], False, [["a"], ["b"]], ["p0 alone: failed twice: a", "p1 alone: failed twice: b"]),
    ([outcome(1, "a", uncollected=["file"])], True, [], ["p0 alone: pytest exits 1"]),
    ([outcome(1, "a", teardowns=["a"])], True, [], ["p0 alone: pytest exits 1"]),
    ([outcome(1, *"abcdef"), outcome(1, *"ghijk")], True, [], ["p0 alone: pytest exits 1", "p1 alone: pytest exits 1"]),
    ([outcome(5)], True, [], ["p0 alone: pytest exits 5"]),
    ([{"code": "without a word"}], True, [], ["p0 alone: pytest exits without a word"]),
])  # fmt: skip
def test_only_tests_that_failed_run_once_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, outcomes: list[dict[str, Any]], passes_alone: bool,
    runs: list[list[str]], faults: list[str],
) -> None:  # fmt: skip
    seen: list[list[str]] = []

    def run(python: Path, *words: str, cache: Path) -> subprocess.CompletedProcess[str]:
        seen.append([word for word in words if len(word) == 1])
        return subprocess.CompletedProcess(words, 0 if passes_alone else 1, "", "")

    monkeypatch.setattr(isolated, "run", run)
    log = tmp_path / "log"
    log.touch()
    found = isolated.Faults()
    packages = [isolated.Part(f"p{number}", tmp_path, log, [], 0) for number in range(len(outcomes))]
    isolated.judge(list(zip(packages, outcomes, strict=True)), found)
    assert (seen, list(found)) == (runs, faults)


def test_a_divided_package_keeps_all_its_tests(tmp_path: Path) -> None:
    found = isolated.parts(isolated.KERNEL, tmp_path)
    assert len(found) > 1
    files = [path for part in found for path in part.paths]
    assert sorted(files) == sorted((ROOT / "core" / "tests").rglob("test_*.py"))
