"""The reference's graders on the same answers: the same grades, but for faults that are mended here.

The reference's lighteval graders need lighteval, and its code_execution needs its own worker: they are not compared.  Without
sympy in the reference's environment its math compares texts alone: then only what is extracted is compared.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
from collections.abc import Iterator
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest
from aiperf.sdk.grader import Grader
from aiperf.testing import GradedAnswer

REFERENCE = os.environ.get("AIPERF_REFERENCE", "")
pytestmark = pytest.mark.skipif(not REFERENCE, reason="AIPERF_REFERENCE names no reference; make differential installs one")
PAIRS = 300
FRAMES = (
    "{}", " {}\n", "The answer is {}", "The answer is {}.", "the answer is ({})", "Answer: {}", "answer:\n{}", "**{}**",
    "\\boxed{{{}}}", "So \\boxed{{{}}}, as 3 + 4 is 7", "We think.\n\nThe answer is ({}).", "#### {}",
    "3 * 6 = 18\n#### {}", "{}\n\nQuestion: next", "It may be {}", "First A, then {}", "I cannot say", "",
    "Final answer: {}", "({}) is it",
)  # fmt: skip
TEXTS = ("yes", "True", "42", "(A)", "a b", "5 cm", "] ) }")
LETTERS = "ABCDEFGHIJ"
FORMULAS = (
    "42", "-3", "0.5", "1/2", "\\frac{1}{2}", "\\frac12", "x^2+1", "1+x^2", "2(x+1)", "2x+2", "(1,2)", "(2,1)", "1,2",
    "2,1", "\\sqrt{2}", "\\frac{2}{\\sqrt{2}}", "1,234", "1234", "\\pi", "3\\pi", "x=5", "5", "10^\\circ", "10",
    "\\text{yes}", "Yes", "C", "(C)",
)  # fmt: skip
FAULTS = {
    ("0.5", "50\\%"): None, ("50", "0.5"): "A10", ("0.5", "50"): "A10", ("5", "5cm"): "A10", ("m+1", "1"): "A10",
    ("50\\%", "0.5"): None, ("50", "5000"): "A10", ("10^5", "100000"): "A9", ("12 cm", "12"): None, ("2x", "2"): None,
    ("5 m", "5"): None,
}  # fmt: skip
"""Pairs of mathematics in boxes, with the row of the list of faults that explains a difference; None where there is none."""


def cases(name: str) -> Iterator[tuple[str, str, str | None]]:
    """Expected answer, response, and the fault that explains a difference; None where there is none."""
    draw = random.Random(f"grader {name}")
    for number in range(PAIRS):
        frame = draw.choice(FRAMES)
        if name == "exact_match":
            text = draw.choice(TEXTS)
            response = frame.format(draw.choice((text, text, draw.choice(TEXTS))))
            yield text, response, None
        elif name in ("multiple_choice", "mmlu_pro"):
            letters = LETTERS[: 4 if name == "multiple_choice" else 10]
            yield draw.choice((" ", "")) + draw.choice(letters), frame.format(draw.choice(letters)), None
        elif name == "lighteval_gsm8k":
            gold, sign = draw.randint(0, 3_000), draw.choice(("", "-"))
            shown = draw.choice((f"{gold}", f"{gold:,}", f"{gold}.0", f"{gold + 1}", f"${gold}"))
            yield f"It is\n#### {sign}{gold:,}", frame.format(sign + shown), None
        elif number < len(FAULTS):
            (gold_text, answer), fault = list(FAULTS.items())[number]
            yield gold_text, f"\\boxed{{{answer}}}", fault
        else:
            yield draw.choice(FORMULAS), frame.format(draw.choice(FORMULAS)), None


def ours(grader: Grader[Any], expected: str, response: str) -> list[Any]:
    grade = GradedAnswer(expected, response, correct=True).grade(grader)
    return [grade.correct, grade.unparsed, grade.extracted]


def python(*words: str, given: str = "") -> subprocess.CompletedProcess[str]:
    program = Path(REFERENCE).parent / "python"
    return subprocess.run([program, *words], input=given, capture_output=True, text=True, check=False, timeout=600)


@pytest.mark.parametrize("name", ["exact_match", "multiple_choice", "mmlu_pro", "lighteval_gsm8k", "math"])
def test_three_hundred_answers_get_the_reference_grades(name: str) -> None:
    pairs = [*cases(name)]
    done = python(
        str(Path(__file__).with_name("reference_graders.py")), given=json.dumps([[name, *pair[:2]] for pair in pairs])
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    theirs = json.loads(done.stdout.splitlines()[-1])
    symbolic = name != "math" or python("-c", "import sympy, latex2sympy2_extended").returncode == 0
    (point,) = entry_points(group="aiperf.graders", name=name)
    grader, unlike, explained = point.load()(), [], set()
    for (expected, response, fault), grade in zip(pairs, theirs, strict=True):
        mine = ours(grader, expected, response)
        same = mine[:2] == grade[:2] if symbolic else mine[1] == grade[1]
        # A full stop or space behind a formula is no part of what was extracted here.
        if grade[2] != "[invalid]" and (grade[2] or "").rstrip(". ") != (mine[2] or "").rstrip(". "):
            same = False
        if same == (fault is not None and symbolic):
            unlike.append((expected, response, mine, grade, fault))
        elif fault:
            explained.add(fault)
    assert unlike == []
    assert len(pairs) == PAIRS and (name != "math" or not symbolic or explained == {"A9", "A10"})
