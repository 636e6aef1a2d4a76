"""Answers whose grades are known, labelled by hand."""

from __future__ import annotations

from aiperf.testing import GradedAnswer, GraderContract
from aiperf_grading.cases import reasoned

from aiperf_grader_lighteval_expr.grader import LightevalExpr

_RIGHT = (
    ("204", "\\boxed{204}"), ("204", "We get $\\boxed{204}$."), ("204", "\\boxed{204}, as 3 + 4 = 7"),
    ("204", "The answer is 204."), ("204", "**Answer:** 204"), ("204", "The final answer is 204. I hope it is correct."),
    ("204", "First 3, then 4, so 204"), ("204", "204"), ("204", "\\[ x = 204 \\]"), ("204", "$x = 204$"),
    ("25", "\\boxed{025}"), ("025", "\\boxed{25}"), ("1234", "\\boxed{1,234}"), ("1234", "1,234 in all"),
    ("1/2", "\\boxed{0.5}"), ("1/2", "\\boxed{\\frac{1}{2}}"), ("204", "\\boxed{204 \\text{ minutes}}"),
    ("204", "\\boxed{204^\\circ}"), ("204", "\\boxed{1}\n\n\\boxed{204}"), ("-3", "\\boxed{-3}"), ("-3", "the result is -3"),
    ("100000", "\\boxed{10^5}"), ("204", "\\boxed{\\text{204}}"), ("204", "Therefore, the answer is $204$, which is even."),
    ("70", "so 7 * 10 = \\(70\\)"), ("3.5", "\\boxed{\\frac{7}{2}}"),
    ("(" * 5_000 + "1", "(" * 5_000 + "1 \\boxed{" + "(" * 5_000 + "1}"), ("9" * 100_000, "\\boxed{" + "9" * 100_000 + "}"),
)  # fmt: skip
_WRONG = (
    ("204", "\\boxed{205}"), ("204", "\\boxed{204} or \\boxed{205}"), ("204", "The answer is 205, not 204"),
    ("204", "I think 205"), ("204", "\\boxed{-204}"), ("50", "\\boxed{0.5}"), ("204", "\\boxed{204x}"),
    ("204", "204 plus 1 is 205"), ("1234", "\\boxed{1,235}"), ("204", "\\boxed{A, B}"), ("204", "\\boxed{9^(9^9)}"),
    ("204", "\\boxed{" + "9" * 100_000 + "}"), ("204", "\\boxed{" + "[" * 5_000 + "}"), ("9^(9^9)", "\\boxed{9^{9^9}+1}"),
    ("204", "The answer is \\frac{204}{2}."), ("204", "$204 + 1$"), ("204", "Therefore, the answer is $204$, since 1 + 1 = 2."),
)  # fmt: skip
_NOTHING = (
    "", " \n ", "I'm sorry, but I can't answer this.", "two hundred and four", "A or B",
    "\\boxed{",
)  # fmt: skip


class LightevalExprContract(GraderContract):
    grader = LightevalExpr
    cases = (
        *(GradedAnswer(expected, answer, correct=True) for expected, answer in _RIGHT),
        *(GradedAnswer(expected, answer, correct=False) for expected, answer in _WRONG),
        *(GradedAnswer("204", answer, correct=False, unparsed=True) for answer in _NOTHING),
        GradedAnswer("204", "", correct=True, extracted="204", case=reasoned("204", "So \\boxed{204}")),
        GradedAnswer("204", "5", correct=False, extracted="5", case=reasoned("204", "\\boxed{204}", "5")),
    )
