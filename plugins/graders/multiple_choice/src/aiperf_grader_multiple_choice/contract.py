"""Answers whose grades are known, labelled by hand."""

from __future__ import annotations

from aiperf.testing import GradedAnswer, GraderContract
from aiperf_grading.cases import reasoned

from aiperf_grader_multiple_choice.grader import MultipleChoice

_CLEAN = (
    ("B", "B", "B"), (" B", "B", "B"), ("B", " B \nA", "B"), ("B", "\n\nB\n\nQuestion: next", "B"),
    ("B", "The answer is B", "B"), ("B", "The answer is (B).", "B"), ("B", "The answer is A. No, the answer is B", "B"),
    ("D", "the correct answer is D because A", "D"), ("B", "Answer: C\nThe answer is (B", "B"),
    ("A", "answer is A" + " " * 5_000, "A"), ("C", "C\n" + "A " * 2_000, "C"),
)  # fmt: skip
_CLEAN_WRONG = (
    ("B", "A", "A"), ("B", "The answer is (C)", "C"), ("B", "The answer is B or the answer is A", "A"),
    ("B", "C\nThe answer is B", "C"), ("A", "The answer is Denmark", "D"), ("b", "B", "B"),
)  # fmt: skip
_LOOKED_FOR = (
    ("B", "Answer: B", "B"), ("B", "answer:\n\n B", "B"), ("B", "(B)", "B"), ("B", "B. Rome", "B"), ("B", "**B**", "B"),
    ("B", "B) 5 cm", "B"), ("B", "It is hard to say.\nPerhaps B", "B"), ("B", "\\boxed{B}", "B"), ("B", "$\\text{B}$", "B"),
    ("B", "b\nB", "B"), ("B", "The Answer is B!", "B"), ("D", "Answer: A\nAnswer: D", "D"), ("none", "none", "none"),
    ("C", "1,234 m, so C", "C"), ("B", "[" * 5_000 + "B", "B"),
)  # fmt: skip
_LOOKED_FOR_WRONG = (
    ("B", "A, B", "A"), ("B", "A or B or C", "A"), ("B", "A man chose B", "A"), ("B", "b", "b"), ("B", "42", "42"),
    ("B", "ABCD", "ABCD"), ("B", "E", "E"),
    ("B", "I'm sorry, but I can't help with that.", "I'm sorry, but I can't help with that."),
    ("B", "\\frac{1}{2}", "\\frac{1}{2}"), ("B", "It is not B\nbut C", "B"), ("B", "9" * 1_000, "9" * 1_000),
    ("B", "Antwort: Б", "Antwort: Б"),
)  # fmt: skip


class MultipleChoiceContract(GraderContract):
    grader = MultipleChoice
    cases = (
        *(GradedAnswer(expected, answer, correct=True, extracted=letter) for expected, answer, letter in _CLEAN),
        *(GradedAnswer(expected, answer, correct=False, extracted=letter) for expected, answer, letter in _CLEAN_WRONG),
        *(
            GradedAnswer(expected, answer, correct=True, unparsed=True, extracted=letter)
            for expected, answer, letter in _LOOKED_FOR
        ),
        *(
            GradedAnswer(expected, answer, correct=expected == letter, unparsed=True, extracted=letter)
            for expected, answer, letter in _LOOKED_FOR_WRONG
        ),
        GradedAnswer("B", "", correct=False, unparsed=True, extracted=""),
        GradedAnswer("B", " \n ", correct=False, unparsed=True, extracted=""),
        GradedAnswer("", "", correct=False, unparsed=True),
        GradedAnswer("B", "", correct=True, extracted="B", case=reasoned("B", "Rome lies in Italy. The answer is B.")),
        GradedAnswer("B", "A", correct=False, extracted="A", case=reasoned("B", "The answer is B.", "A")),
    )
