"""Answers whose grades are known, labelled by hand."""

from __future__ import annotations

from aiperf.testing import GradedAnswer, GraderContract
from aiperf_grading.cases import reasoned

from aiperf_grader_lighteval_gsm8k.grader import LightevalGsm8k

_GOLD = "She sells 3 * 6 = <<3*6=18>>18 eggs.\n#### 18"
_CLEAN = (
    (_GOLD, "#### 18", "18"), (_GOLD, "3 * 6 = 18\n#### 18", "18"), (_GOLD, "#### 18.0", "18.0"), (_GOLD, "#### 18.", "18."),
    (_GOLD, "#### 18 dollars", "18"), ("#### 1,234", "#### 1234", "1234"), ("#### 1234", "#### 1,234", "1234"),
    ("#### -5", "#### -5", "-5"), (_GOLD, "#### 18 #### 19", "18"), (_GOLD, "#### 18.0000001", "18.0000001"),
    ("#### 0.5", "#### .5", ".5"), (_GOLD, "#### 18%", "18"), ("#### 1.2.3", "#### 1.2.3", "1.2.3"),
    ("#### " + "9" * 50_000, "#### " + "9" * 50_000, "9" * 50_000),
)  # fmt: skip
_CLEAN_WRONG = (
    (_GOLD, "#### 19", "19"), (_GOLD, "#### 19\n#### 18", "19"), (_GOLD, "#### -18", "-18"), (_GOLD, "#### 18.01", "18.01"),
    (_GOLD, "#### .", "."), ("18", "#### 18", "18"), ("#### 9007199254740993", "#### 9007199254740992", "9007199254740992"),
    (_GOLD, "#### 1,8,0", "180"), ("#### " + "9" * 50_000, "#### " + "9" * 49_999, "9" * 49_999),
)  # fmt: skip
_LAST = (
    (_GOLD, "18", "18"), (_GOLD, "She has 18.", "18"), (_GOLD, "3 * 6 = 18", "18"), (_GOLD, "It costs $18", "18"),
    (_GOLD, "####18", "18"), (_GOLD, "#### $18", "18"), ("#### 1234", "That makes 1,234 apples", "1234"),
    ("#### -5", "minus: -5", "-5"), (_GOLD, "\\boxed{18}", "18"), (_GOLD, "\\frac{36}{2} = 18", "18"), (_GOLD, "18 cm", "18"),
    ("#### 5", "(" * 5_000 + "5", "5"), ("#### 12", "1,2", "12"),
)  # fmt: skip
_LAST_WRONG = (
    (_GOLD, "18 or 19", "19"), (_GOLD, "18 eggs, 3 days", "3"), (_GOLD, "36/2", "2"), ("#### 0.5", "\\frac{1}{2}", "2"),
    (_GOLD, "10^5", "5"), (_GOLD, "18 is 1 of 2 answers", "2"),
)  # fmt: skip
_NOTHING = (
    "", " \n", "eighteen", "####", "#### ", "I'm sorry, I can't answer.", "٤٢", "A, B or C", "x + y",
)  # fmt: skip


class LightevalGsm8kContract(GraderContract):
    grader = LightevalGsm8k
    cases = (
        *(GradedAnswer(expected, answer, correct=True, extracted=number) for expected, answer, number in _CLEAN),
        *(GradedAnswer(expected, answer, correct=False, extracted=number) for expected, answer, number in _CLEAN_WRONG),
        *(GradedAnswer(expected, answer, correct=True, unparsed=True, extracted=number) for expected, answer, number in _LAST),
        *(
            GradedAnswer(expected, answer, correct=False, unparsed=True, extracted=number)
            for expected, answer, number in _LAST_WRONG
        ),
        *(GradedAnswer(_GOLD, answer, correct=False, unparsed=True) for answer in _NOTHING),
        GradedAnswer(_GOLD, "", correct=True, extracted="18", case=reasoned(_GOLD, "3 * 6\n#### 18")),
        GradedAnswer(_GOLD, "5", correct=False, unparsed=True, extracted="5", case=reasoned(_GOLD, "#### 18", "5")),
    )
