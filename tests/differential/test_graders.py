"""The reference's graders on the same answers: the same grades, but for faults that are mended here.

Its lighteval graders and code_execution need lighteval in its environment, without which they are skipped.  Without sympy there
its math compares texts alone: then only what is extracted is compared.
"""

from __future__ import annotations

import json
import os
import subprocess
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest
from aiperf.sdk.grader import Grader
from aiperf.testing import GradedAnswer
from graded_pairs import PAIRS, Pair, pairs

REFERENCE = os.environ.get("AIPERF_REFERENCE", "")
pytestmark = pytest.mark.skipif(not REFERENCE, reason="AIPERF_REFERENCE names no reference; make differential installs one")
EXTRACTIVE = ("lighteval_expr", "lighteval_latex", "lighteval_gpqa")
"""The reference's give the whole response as what they extracted, and tell nothing as unparsed but their own failures (A20)."""


def ours(grader: Grader[Any], pair: Pair) -> list[Any]:
    grade = GradedAnswer(pair.expected, pair.response, correct=True).grade(grader)
    return [grade.correct, grade.unparsed, grade.extracted]


def python(*words: str, given: str = "") -> subprocess.CompletedProcess[str]:
    program = Path(REFERENCE).parent / "python"
    return subprocess.run([program, *words], input=given, capture_output=True, text=True, check=False, timeout=600)


def theirs(name: str, asked: list[Pair]) -> list[Any]:
    done = python(
        str(Path(__file__).with_name("reference_graders.py")), given=json.dumps([[name, *pair[:2]] for pair in asked])
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    if isinstance(found, str):
        pytest.skip(f"the reference's {name}: {found}")
    assert isinstance(found, list)
    return found


def compare(grader: Grader[Any], asked: list[Pair], grades: list[Any], alike: Any) -> set[str]:
    """The faults that explain differences; every other difference fails.  alike: whether our grade is theirs."""
    unlike, explained = [], set()
    for pair, grade in zip(asked, grades, strict=True):
        mine = ours(grader, pair)
        if alike(mine, grade):
            continue
        if pair.fault is None:
            unlike.append((pair.expected, pair.response, mine, grade))
        else:
            explained.add(pair.fault)
    assert unlike == [] and len(asked) == PAIRS
    return explained


def plugin(name: str) -> type[Grader[Any]]:
    (point,) = entry_points(group="aiperf.graders", name=name)
    kind: type[Grader[Any]] = point.load()
    return kind


@pytest.mark.parametrize("name", ["exact_match", "multiple_choice", "mmlu_pro", "lighteval_gsm8k", "math"])
def test_three_hundred_answers_get_the_reference_grades(name: str) -> None:
    asked = [*pairs(name)]
    grades = theirs(name, asked)
    symbolic = name != "math" or python("-c", "import sympy, latex2sympy2_extended").returncode == 0

    def alike(mine: list[Any], grade: list[Any]) -> bool:
        # A full stop or space behind a formula is no part of what was extracted here.
        extracted = grade[2] == "[invalid]" or (grade[2] or "").rstrip(". ") == (mine[2] or "").rstrip(". ")
        return extracted and mine[1] == grade[1] and (not symbolic or mine[0] == grade[0])

    explained = compare(plugin(name)(), asked, grades, alike)
    assert explained == ({"A9", "A10"} if name == "math" and symbolic else set())


@pytest.mark.parametrize("name", EXTRACTIVE)
def test_extractive_matching_agrees_with_lighteval(name: str) -> None:
    asked = [*pairs(name)]
    grades = theirs(name, asked)
    assert 30 < sum(grade[0] for grade in grades) < PAIRS - 30
    explained = compare(plugin(name)(), asked, grades, lambda mine, grade: mine[0] == grade[0])
    assert explained <= {"A10"}


def test_programs_in_answers_pass_where_they_pass_there() -> None:
    options = pytest.importorskip("aiperf_grader_code_execution.options")
    asked = [*pairs("code_execution")]
    grades = theirs("code_execution", asked)
    assert 30 < sum(grade[0] for grade in grades) < PAIRS - 30
    made = plugin("code_execution")(options.CodeExecutionOptions(allowed="unisolated"))
    compare(made, asked, grades, lambda mine, grade: mine[:2] == grade[:2])
