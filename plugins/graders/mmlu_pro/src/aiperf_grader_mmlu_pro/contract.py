"""Answers whose grades are known, labelled by hand."""

from __future__ import annotations

from aiperf.testing import GradedAnswer, GraderContract
from aiperf_grading.cases import reasoned

from aiperf_grader_mmlu_pro.grader import MmluPro

_CLEAN = (
    ("B", "B", "B"), ("J", "J", "J"), (" E", "E\nbecause", "E"), ("H", "We add 3 and 4. The answer is (H).", "H"),
    ("H", "The answer is H", "H"), ("G", "The answer is (A)? No. The answer is (G).", "G"), ("I", "answer is I", "I"),
    ("C", "Answer: D. The answer is (C)", "C"), ("F", "Let's think. " * 3_000 + "The answer is (F).", "F"),
    ("A", "\n\nA", "A"), ("D", "so the answer is D: 1,234 m", "D"), ("B", "The answer is (B) or (C).", "B"),
)  # fmt: skip
_CLEAN_WRONG = (
    ("B", "C", "C"), ("B", "The answer is (J).", "J"), ("B", "The answer is (B). Wait: the answer is (D).", "D"),
    ("H", "A\nThe answer is H", "A"), ("B", "The answer is Helium", "H"),
)  # fmt: skip
_LOOKED_FOR = (
    ("E", "Answer: E", "E"), ("E", "the final\nAnswer:\n\nE", "E"), ("E", "answer: A\nanswer: E", "E"),
    ("J", "We find (J)", "J"), ("B", "**B**", "B"), ("B", "A, B", "B"), ("G", "\\boxed{G}", "G"),
    ("B", "The Answer is B", "B"), ("B", "A man chose B", "B"), ("C", "B. no. C.", "C"), ("I", "so I", "I"),
    ("B", "{" * 5_000 + "B", "B"), ("D", "It is 5 cm, option D) here", "D"),
)  # fmt: skip
_LOOKED_FOR_WRONG = (
    ("B", "B or perhaps C", "C"), ("B", "Answer: C\nB", "C"), ("B", "I think it is b", "I"),
    ("A", "Option K, not A but J", "J"), ("B", "I can't help with that.", "I"),
)  # fmt: skip
_NOTHING = (
    "", " \n ", "none of them", "b", "42", "\\frac{1}{2}", "K", "ABCDEFGHIJ", "9" * 10_000, "Sorry, no answer to this.",
)  # fmt: skip


class MmluProContract(GraderContract):
    grader = MmluPro
    cases = (
        *(GradedAnswer(expected, answer, correct=True, extracted=letter) for expected, answer, letter in _CLEAN),
        *(GradedAnswer(expected, answer, correct=False, extracted=letter) for expected, answer, letter in _CLEAN_WRONG),
        *(
            GradedAnswer(expected, answer, correct=True, unparsed=True, extracted=letter)
            for expected, answer, letter in _LOOKED_FOR
        ),
        *(
            GradedAnswer(expected, answer, correct=False, unparsed=True, extracted=letter)
            for expected, answer, letter in _LOOKED_FOR_WRONG
        ),
        *(GradedAnswer("B", answer, correct=False, unparsed=True, extracted="") for answer in _NOTHING),
        GradedAnswer("", "", correct=False, unparsed=True),
        GradedAnswer("H", "", correct=True, extracted="H", case=reasoned("H", "3 + 4 = 7. The answer is (H).")),
        GradedAnswer("H", "A", correct=False, extracted="A", case=reasoned("H", "The answer is (H).", "A")),
    )
