"""Answers whose grades are known, labelled by hand."""

from __future__ import annotations

from aiperf.testing import GradedAnswer, GraderContract
from aiperf_grading.cases import reasoned

from aiperf_grader_lighteval_latex.grader import LightevalLatex

_GOLD = "We have $x = 2 + 1$, hence $\\boxed{\\frac{3}{4}}$."
_RIGHT = (
    (_GOLD, "\\boxed{\\frac{3}{4}}"), (_GOLD, "\\boxed{\\frac34}"), (_GOLD, "\\boxed{0.75}"), (_GOLD, "\\boxed{3/4}"),
    (_GOLD, "The answer is $\\frac{3}{4}$."), (_GOLD, "$x = \\dfrac{3}{4}$"), (_GOLD, "\\[\\frac{3}{4}\\]"),
    (_GOLD, "\\(\\frac{3}{4}\\)"), (_GOLD, "It is 0.75"), (_GOLD, "\\boxed{1}, no: \\boxed{\\tfrac{3}{4}}"),
    (_GOLD, "The final answer is $\\frac{3}{4}$. I hope it is correct."), ("\\boxed{x^2-1}", "\\boxed{(x-1)(x+1)}"),
    ("\\boxed{(3, \\frac{\\pi}{2})}", "$\\boxed{\\left( 3, \\frac{\\pi}{2} \\right)}$"),
    ("\\boxed{5\\text{ cm}}", "\\boxed{5}"), ("\\boxed{5}", "\\boxed{5\\text{ cm}}"), ("\\boxed{90^\\circ}", "\\boxed{90}"),
    ("\\boxed{1,2}", "\\boxed{2,1}"), ("\\boxed{10,\\!000}", "\\boxed{10000}"), ("\\boxed{10{,}000}", "\\boxed{10,000}"),
    ("\\boxed{\\text{Evelyn}}", "\\boxed{\\text{Evelyn}}"), ("\\boxed{x=5}", "\\boxed{5}"),
    ("\\boxed{50\\%}", "\\boxed{0.5}"), ("$\\frac{1}{2}$", "\\boxed{0.5}"), ("7", "\\boxed{7}"),
    ("\\boxed{2\\sqrt{3}}", "\\boxed{\\sqrt{12}}"), ("\\boxed{\\frac{14}{3}}", "$\\frac{14}{3}$"),
    ("\\boxed{6}", "So $2 + 4 = 6$"), ("\\boxed{C}", "\\boxed{(C)}"), ("\\boxed{[0,1)}", "\\boxed{[0, 1)}"),
)  # fmt: skip
_WRONG = (
    (_GOLD, "\\boxed{\\frac{4}{3}}"), (_GOLD, "\\boxed{3}"), (_GOLD, "$\\frac{3}{5}$"),
    (_GOLD, "\\boxed{\\frac{3}{4}}, no: \\boxed{1}"), ("\\boxed{(1,2)}", "\\boxed{(2,1)}"), ("\\boxed{50}", "\\boxed{0.5}"),
    ("\\boxed{m}", "\\boxed{5}"), ("\\boxed{x^2}", "\\boxed{x^3}"), ("\\boxed{\\text{Evelyn}}", "\\boxed{\\text{Carla}}"),
    ("\\boxed{C}", "\\boxed{D}"), ("\\boxed{1,2}", "\\boxed{1,2,3}"), ("\\boxed{9^{9^9}}", "\\boxed{9^{9^9}+1}"),
    (_GOLD, "\\boxed{" + "9" * 100_000 + "}"), (_GOLD, "\\boxed{" + "(" * 5_000 + "}"),
    (_GOLD, "\\boxed{" + "{" * 5_000 + "}" * 5_000 + "}"), (_GOLD, "2 + 1"),
)  # fmt: skip
_NOTHING = (
    "", " \n ", "I can't help with that.", "three quarters", "A, B or C", "\\boxed{",
)  # fmt: skip


class LightevalLatexContract(GraderContract):
    grader = LightevalLatex
    cases = (
        *(GradedAnswer(expected, answer, correct=True) for expected, answer in _RIGHT),
        *(GradedAnswer(expected, answer, correct=False) for expected, answer in _WRONG),
        *(GradedAnswer(_GOLD, answer, correct=False, unparsed=True) for answer in _NOTHING),
        GradedAnswer(_GOLD, "", correct=True, case=reasoned(_GOLD, "So \\boxed{\\frac{3}{4}}")),
        GradedAnswer(_GOLD, "5", correct=False, extracted="5", case=reasoned(_GOLD, "\\boxed{\\frac{3}{4}}", "5")),
    )
