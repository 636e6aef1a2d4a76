"""Answers whose grades are known, labelled by hand."""

from __future__ import annotations

from aiperf.testing import GradedAnswer, GraderContract
from aiperf_grading.cases import reasoned

from aiperf_grader_exact_match.grader import ExactMatch

_RIGHT = (
    ("B", "B"), ("B", " B"), ("B", "B\n"), (" B", "B"), ("(A)", "(A)"), ("True", "True"), ("yes", "\n\nyes\n"), ("42", "42"),
    ("1,234", "1,234"), ("\\frac{1}{2}", "\\frac{1}{2}"), ("5 cm", "5 cm"), ("a b", "a b"), ("größer", "größer"),
    ("] ) }", "] ) }"), ("10^5", "10^5"), ("valid", "\tvalid\t"), ("9" * 50_000, "9" * 50_000), ("(" * 5_000, "(" * 5_000),
    ("A, B", "A, B"),
)  # fmt: skip
_WRONG = (
    ("B", "b"), ("B", "B."), ("B", "(B)"), ("B", "The answer is B"), ("B", "A, B"), ("B", "B\nA"), ("B", "**B**"),
    ("True", "true"), ("42", "42.0"), ("1,234", "1234"), ("\\frac{1}{2}", "1/2"), ("5 cm", "5"), ("5 cm", "5  cm"),
    ("a b", "ab"), ("42", "٤٢"), ("e\u0301", "\u00e9"), ("B", "I'm sorry, but I can't answer that."),
    ("9" * 50_000, "9" * 49_999), ("42", "forty-two"), ("B", "Answer: B"), ("9^(9^9)", "9^9^9"),
)  # fmt: skip


class ExactMatchContract(GraderContract):
    grader = ExactMatch
    cases = (
        *(GradedAnswer(expected, answer, correct=True, extracted=answer.strip()) for expected, answer in _RIGHT),
        *(GradedAnswer(expected, answer, correct=False) for expected, answer in _WRONG),
        GradedAnswer("B", "", correct=False, unparsed=True, extracted=""),
        GradedAnswer("B", " \n\t ", correct=False, unparsed=True, extracted=""),
        GradedAnswer("", "", correct=False, unparsed=True),
        GradedAnswer("B", "", correct=True, extracted="B", case=reasoned("B", "B")),
        GradedAnswer("B", "A", correct=False, extracted="A", case=reasoned("B", "B", "A")),
    )
