"""Answers whose grades are known, labelled by hand."""

from __future__ import annotations

from aiperf.testing import GradedAnswer, GraderContract
from aiperf_grading.cases import reasoned

from aiperf_grader_lighteval_gpqa.grader import LightevalGpqa

_RIGHT = (
    ("B", "B"), ("B", "Answer: B"), ("B", "answer: B"), ("B", "**Answer: B**"), ("B", "Answer: **B**"), ("B", "Answer: (B)"),
    ("B", "Answer: B, since 3 + 4 = 7"), ("B", "The answer is B."), ("B", "The correct answer is (B) 5 cm."),
    ("B", "The answer is option B"), ("B", "The final answer is B"), ("B", "Final answer is: B. I hope so"),
    ("B", "B or C"), ("B", "B is wrong, so A."), ("B", "A is wrong. C is wrong.\nAnswer: B"),
    ("B", "Answer: A. No.\nAnswer: B"), ("B", "B. Because of 1,234 m"), ("B", "One man says so.\n\nB. Rome"),
    ("B", "The answer I choose is B"), ("B", "(B)"), ("B", "**B**"), ("B", "Let's think. " * 3_000 + "Answer: B"),
    ("D", "Of A, B, C and D the answer is D"), ("B", "My answer is B"), ("B", "\\boxed{A} is wrong; Answer: B"),
    ("B", "[" * 5_000 + " Answer: B"), (" B ", "Answer: B"), ("C", "The answer:\n\nC"),
)  # fmt: skip
_WRONG = (
    ("B", "A"), ("B", "Answer: C"), ("B", "The answer is (D)"), ("B", "Answer: B\nAnswer: C"),
    ("A", "B or A"), ("A", "B is wrong, so A."),
    ("C", "The answer is A, not C"),
)  # fmt: skip
_NOTHING = (
    "", " \n ", "b", "Answer: $B$", "\\boxed{B}", "Final answer is: \\boxed{\\text{B}}", "I choose B", "B) is it",
    "The answer: \n\n B",  "none of them", "42", "\\frac{1}{2}", "E", "I'm sorry, but I can't answer.", "9" * 100_000, "ABCD",
)  # fmt: skip


class LightevalGpqaContract(GraderContract):
    grader = LightevalGpqa
    cases = (
        *(GradedAnswer(expected, answer, correct=True, extracted=expected.strip()) for expected, answer in _RIGHT),
        *(GradedAnswer(expected, answer, correct=False) for expected, answer in _WRONG),
        *(GradedAnswer("B", answer, correct=False, unparsed=True) for answer in _NOTHING),
        *(GradedAnswer(gold, "Answer: B", correct=False, unparsed=True) for gold in ("", "BC", "E")),
        GradedAnswer("b", "Answer: B", correct=True, extracted="B"),
        GradedAnswer("", "", correct=False, unparsed=True),
        GradedAnswer("B", "", correct=True, extracted="B", case=reasoned("B", "C is wrong. Answer: B")),
        GradedAnswer("B", "A", correct=False, extracted="A", case=reasoned("B", "Answer: B", "A")),
    )
