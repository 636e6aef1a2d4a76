"""Answers for both programs: by grader 300 expected answers with a response, drawn with a seed of its own."""

from __future__ import annotations

import base64
import json
import pickle
import random
import zlib
from collections.abc import Iterator
from typing import NamedTuple

PAIRS = 300
_FRAMES = (
    "{}", " {}\n", "The answer is {}", "The answer is {}.", "the answer is ({})", "Answer: {}", "answer:\n{}", "**{}**",
    "\\boxed{{{}}}", "So \\boxed{{{}}}, as 3 + 4 is 7", "We think.\n\nThe answer is ({}).", "#### {}",
    "3 * 6 = 18\n#### {}", "{}\n\nQuestion: next", "It may be {}", "First A, then {}", "I cannot say", "",
    "Final answer: {}", "({}) is it",
)  # fmt: skip
_MATHEMATICAL = (
    "${}$", "The answer is ${}$.", "\\[ {} \\]", "\\( {} \\)", "We get ${}$, and that is all", "Let x = 3. Then ${}$",
    "Therefore, the final answer is: ${}$. I hope it is correct.", "Answer: ${}$", "the answer: x = 1 + {}", "$1$ and ${}$",
)  # fmt: skip
_TEXTS = ("yes", "True", "42", "(A)", "a b", "5 cm", "] ) }")
_LETTERS = {"multiple_choice": "ABCD", "lighteval_gpqa": "ABCD", "mmlu_pro": "ABCDEFGHIJ"}
_FORMULAS = (
    "42", "-3", "0.5", "1/2", "\\frac{1}{2}", "\\frac12", "x^2+1", "1+x^2", "2(x+1)", "2x+2", "(1,2)", "(2,1)", "1,2",
    "2,1", "\\sqrt{2}", "\\frac{2}{\\sqrt{2}}", "1,234", "1234", "\\pi", "3\\pi", "x=5", "5", "10^\\circ", "10",
    "\\text{yes}", "Yes", "C", "(C)",
)  # fmt: skip
_HARDER = (
    "50\\%", "0.5", "x=5", "5", "x>2", "2<x", "\\{1,2\\}", "(1,2]", "\\begin{pmatrix}1\\\\2\\end{pmatrix}", "\\infty",
    "2\\sqrt{3}", "\\sqrt{12}", "\\text{Evelyn}", "3\\frac{1}{2}", "3.5", "10^5", "100000", "1{,}000", "1000", "\\$25", "25",
    "\\frac{1}{3}", "0.33333", "0.3333", "-\\frac{3}{4}", "-0.75", "2^{10}", "1024", "\\binom{5}{2}", "1/2, 3", "3, 0.5",
    "[0,1]", "90^\\circ", "90", "\\log_2 8", "3", "y=2x+1", "2x+1", "(3, \\frac{\\pi}{2})", "\\frac{14}{3}", "5 \\text{ m}",
)  # fmt: skip
_SOLUTIONS = ("We add. Thus $\\boxed{%s}$.", "$%s$", "So it is \\[\\boxed{%s}.\\]", "\\boxed{%s}")
_FAULTS = {
    ("0.5", "50\\%"): None, ("50", "0.5"): "A10", ("0.5", "50"): "A10", ("5", "5cm"): "A10", ("m+1", "1"): "A10",
    ("50\\%", "0.5"): None, ("50", "5000"): "A10", ("10^5", "100000"): "A9", ("12 cm", "12"): None, ("2x", "2"): None,
    ("5 m", "5"): None,
}  # fmt: skip
"""Pairs of mathematics in boxes, with the row of the list of faults that explains a difference; None where there is none."""
_PROGRAMS = (
    "print(int(input()) + {n})", "n = int(input())\nprint(n + {n})", "print(int(input()) + {n}.0)", "print({n})",
    "class Solution:\n    def add(self, a):\n        return a + {n}",
    "class Solution:\n    def add(self, a):\n        return {n}", "def add(a):\n    return a + {n}",
    "import sys\nprint(int(sys.stdin.readline()) + {n})", "print(input() + '{n}')",
    "syntax (", "raise ValueError", "import sys\nprint(int(input()) + {n})\nsys.exit()", "", "while False: pass",
    "if __name__ == '__main__':\n    print(int(input()) + {n})", "print('  ' + str(int(input()) + {n}) + ' ')",
)  # fmt: skip
_BLOCKS = (
    "```python\n{}\n```", "```\n{}\n```", "Here:\n```py\n{}\n```\nDone.", "```python\nprint(0)\n```\nNo:\n```python\n{}\n```",
    "{}", "```python\n{}",
)  # fmt: skip


class Pair(NamedTuple):
    """fault: the row of the specification's lists that explains a difference; None where there is none."""

    expected: str
    response: str
    fault: str | None = None


def _test_cases(number: int, *, function: bool) -> str:
    cases = [{"input": str(given), "output": str(given + number), "testtype": "stdin"} for given in (1, 20)]
    private = json.dumps(cases[1:])
    if number % 2:  # as they are published
        private = base64.b64encode(zlib.compress(pickle.dumps(private))).decode()
    return json.dumps({
        "starter_code": "class Solution:" if function else "", "public_test_cases": json.dumps(cases[:1]),
        "private_test_cases": private, "metadata": json.dumps({"func_name": "add"} if function else {}),
    })  # fmt: skip


def _code(draw: random.Random) -> Pair:
    number = draw.randint(1, 9)
    program, block = draw.choice(_PROGRAMS).replace("{n}", str(number)), draw.choice(_BLOCKS)
    return Pair(_test_cases(number, function=draw.random() < 0.4), block.replace("{}", program))


def _extractive(draw: random.Random, *, latex: bool) -> Pair:
    frame = draw.choice((*_FRAMES, *_MATHEMATICAL))
    if latex:
        known = draw.choice((_FORMULAS, _HARDER))
        gold = draw.choice(known)
        answer = draw.choice((gold, gold, draw.choice(known)))
        unit = "50\\%" in (gold, answer) or "\\text{ m}" in gold + answer
        return Pair(draw.choice(_SOLUTIONS) % gold, frame.format(answer), "A10" if unit else None)
    gold = draw.choice((str(draw.randint(0, 999)), f"{draw.randint(0, 99):03d}", "1/2", "3*4", "-7", "0.25", "1,234"))
    others = ("0.5", "12", "\\frac{1}{2}", "1234", "2^3", "x+1", str(draw.randint(0, 999)))
    return Pair(gold, frame.format(draw.choice((gold, gold, f"{gold}.0" if gold.isdigit() else gold, draw.choice(others)))))


def pairs(name: str) -> Iterator[Pair]:
    """The pairs of a grader."""
    draw = random.Random(f"grader {name}")
    for number in range(PAIRS):
        frame = draw.choice(_FRAMES)
        if name == "exact_match":
            text = draw.choice(_TEXTS)
            yield Pair(text, frame.format(draw.choice((text, text, draw.choice(_TEXTS)))))
        elif name in _LETTERS:
            letters = _LETTERS[name]
            yield Pair(draw.choice((" ", "")) + draw.choice(letters), frame.format(draw.choice(letters)))
        elif name == "lighteval_gsm8k":
            gold, sign = draw.randint(0, 3_000), draw.choice(("", "-"))
            shown = draw.choice((f"{gold}", f"{gold:,}", f"{gold}.0", f"{gold + 1}", f"${gold}"))
            yield Pair(f"It is\n#### {sign}{gold:,}", frame.format(sign + shown))
        elif name == "code_execution":
            yield _code(draw)
        elif name in ("lighteval_expr", "lighteval_latex"):
            yield _extractive(draw, latex=name == "lighteval_latex")
        elif number < len(_FAULTS):
            (gold_text, answer), fault = list(_FAULTS.items())[number]
            yield Pair(gold_text, f"\\boxed{{{answer}}}", fault)
        else:
            yield Pair(draw.choice(_FORMULAS), frame.format(draw.choice(_FORMULAS)))


__all__ = ["PAIRS", "Pair", "pairs"]
