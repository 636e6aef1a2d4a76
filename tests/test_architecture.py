"""docs/architecture.md names files, tests and commits that exist."""

from __future__ import annotations

import ast
import re
import subprocess

import pytest
from requirements import ROOT

TEXT = (ROOT / "docs" / "architecture.md").read_text()
PATHS = sorted(set(re.findall(r"`((?:core|libraries|plugins|templates|tests|docs|benchmarks)/[\w./{}-]*)`", TEXT)))
TESTS = sorted(set(re.findall(r"`((?:core|libraries|plugins|tests)/[\w./-]+\.py)::(\w+)`", TEXT)))
COMMITS = sorted(set(re.findall(r"commit ([0-9a-f]{7,})", TEXT)))
ROOMS = sorted(set(re.findall(r"^\| `(\w+)` \| ", TEXT, re.MULTILINE)))


@pytest.mark.parametrize("path", PATHS)
def test_a_named_path_exists(path: str) -> None:
    assert (ROOT / path).exists()


@pytest.mark.parametrize(("file", "name"), TESTS)
def test_a_named_test_exists(file: str, name: str) -> None:
    functions = {node.name for node in ast.walk(ast.parse((ROOT / file).read_text())) if isinstance(node, ast.FunctionDef)}
    assert name in functions


@pytest.mark.parametrize("commit", COMMITS)
def test_a_named_commit_exists(commit: str) -> None:
    words = ["git", "rev-parse", "--is-shallow-repository"]
    answer = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    if answer.returncode or answer.stdout.strip() == "true":
        pytest.skip("no git checkout with the whole history")
    kind = subprocess.run(["git", "cat-file", "-t", commit], cwd=ROOT, capture_output=True, text=True, check=False)
    assert kind.stdout.strip() == "commit"


def test_every_room_has_its_row() -> None:
    kernel = ROOT / "core" / "src" / "aiperf"
    assert sorted(path.parent.name for path in kernel.glob("*/__init__.py")) == ROOMS


def test_ten_changes_have_an_example() -> None:
    table = TEXT.partition("## Ten typical changes")[2]
    rows = [line for line in table.splitlines() if line.startswith("| a new ")]
    assert len(rows) == 10 and all("commit " in row and "test" in row for row in rows)
