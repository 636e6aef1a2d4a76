"""Answers whose grades are known, labelled by hand."""

from __future__ import annotations

from aiperf.testing import GradedAnswer, GraderContract
from aiperf_grading.cases import reasoned

from aiperf_grader_math.grader import Math

_BOXED = (
    ("42", "42"), ("42", "42.0"), ("42", "$42$"), ("42", "\\text{42}"), ("1/2", "\\frac12"), ("\\frac{1}{2}", "0.5"),
    ("\\dfrac{1}{2}", "\\tfrac{1}{2}"), ("1234", "1,234"), ("1,234", "1234"), ("1000", "1{,}000"), ("1000", "1\\,000"),
    ("5", "5\\text{ cm}"), ("5 cm", "5"), ("5", "5cm"), ("5", "5 m"), ("10", "10^\\circ"), ("10", "10 degrees"),
    ("12", "12\\text{ square units}"), ("25", "\\$25"), ("0.5", "50\\%"), ("50\\%", "0.5"), ("50\\%", "50"), ("x=5", "5"),
    ("5", "x=5"), ("x^2+1", "1+x^2"), ("2(x+1)", "2x+2"), ("(x-1)(x+1)", "x^2-1"),
    ("\\frac{\\sqrt{2}}{2}", "\\frac{1}{\\sqrt{2}}"), ("(1,2)", "(1, 2)"), ("(1,2)", "\\left(1,2\\right)"), ("1,2", "2, 1"),
    ("1,2", "2 \\text{ and } 1"), ("1/2, 3", "3, 0.5"), ("3\\sqrt{5}", "\\sqrt{45}"), ("\\pi", "\\pi"),
    ("2\\pi r", "2 \\cdot \\pi \\cdot r"), ("\\sin^2 x + \\cos^2 x", "1"), ("C", "(C)"), ("C", "\\text{C}"), ("5", "(B) 5"),
    ("\\text{yes}", "Yes"), ("-1", "−1"), ("-\\frac{3}{4}", "-0.75"), ("3\\frac{1}{2}", "3.5"), ("\\infty", "infinity"),
    ("2^{10}", "1024"), ("10^5", "100000"), ("720", "6!"), ("10", "\\binom{5}{2}"), ("e^{i\\pi}", "-1"),
    ("\\begin{pmatrix}1\\\\2\\end{pmatrix}", "\\begin{bmatrix}1\\\\2\\end{bmatrix}"), ("7", "7."), ("12", ":12"),
    ("12", "\n12\n"), ("0.33333", "\\frac{1}{3}"), ("x \\in [0,1]", "[0,1]"), ("9" * 100_000, "9" * 100_000),
    ("1000000", "1,000,000"),
)  # fmt: skip
_BOXED_WRONG = (
    ("42", "43"), ("50", "0.5"), ("50", "5000"), ("0.5", "50"), ("m+1", "1"), ("t", "5"), ("2s", "2"), ("5", "5x"),
    ("(1,2)", "(2,1)"), ("[1,2]", "(1,2)"), ("1,2", "1,2,3"), ("1,234", "1,235"), ("x^2", "x^3"), ("\\sqrt{x^2}", "x"),
    ("\\ln x^2", "2\\ln x"), ("C", "(D)"), ("a", "b"), ("12", "1 and 2"), ("x", ""), ("1/2", "2/1"), ("-5", "5"),
    ("5^2", "52"), ("6", "I cannot answer"), ("2^{100}", "1267650600228229401496703205377"), ("x=5", "y=6"),
    ("c", "3 \\times 10^8"),
)  # fmt: skip
_OTHER = (
    ("42", "The final answer is 42.", "42"), ("7", "the answer is 7 because 3 + 4 = 7", "7"), ("42", "ANSWER: 42", "42"),
    ("12", "Answer:\n12", "12"), ("42", "42", "42"), ("\\frac{1}{2}", "The answer is $\\frac{1}{2}$.", "$\\frac{1}{2}$"),
    ("-4/5", "3 and then -4/5", "-4/5"), ("xyz", " Xyz ", "Xyz"), ("C", "The answer is (C)", "(C)"),
    ("3.5", "the answer is 3.5. Then 7", "3.5"), ("5", "5 cm", "5"),
)  # fmt: skip
_OTHER_WRONG = (
    ("7", "The answer is \\boxed{7", "\\boxed{7"), ("7", "the answer is 7 and 3 pears", "3"),
    ("1234", "Answer: 1,234", "234"), ("42", "I'm sorry, but I can't.", "I'm sorry, but I can't."),
    ("B", "A, B or D", "A, B or D"), ("1/2", "The answer is one half", "one half"), ("5", "5 or 6", "6"),
)  # fmt: skip

# Each takes a naive comparison forever, or ends it.
_HUGE = (
    ("9^(9^9)", "9^{9^9}+1"), ("9" * 100_000, "9" * 100_000 + "1"), ("(" * 5_000 + "1" + ")" * 5_000, "2"),
    ("1", "[" * 5_000), ("^".join("9" * 1_500), "3"), ("x!" * 2_000, "2"), ("300!", "300!+1"), ("2^{8000}", "2^{8000}+1"),
    ("\\frac" * 3_000, "1"), ("a=b" * 3_000, "c=d"), ("1," * 3_000, "2," * 3_000), ("\\sqrt" * 2_000 + "2", "2"),
    ("-" * 2_999 + "1", "1"),
)  # fmt: skip


class MathContract(GraderContract):
    grader = Math
    cases = (
        *(GradedAnswer(expected, f"So it is \\boxed{{{answer}}}", correct=True) for expected, answer in _BOXED),
        *(
            GradedAnswer(expected, f"So it is \\boxed{{{answer}}}", correct=False)
            for expected, answer in (*_BOXED_WRONG, *_HUGE)
        ),
        *(GradedAnswer(expected, answer, correct=True, unparsed=True, extracted=found) for expected, answer, found in _OTHER),
        *(
            GradedAnswer(expected, answer, correct=False, unparsed=True, extracted=found)
            for expected, answer, found in _OTHER_WRONG
        ),
        GradedAnswer("2", "\\boxed{1}, no: \\boxed{2}", correct=True, extracted="2"),
        GradedAnswer("42", "", correct=False, unparsed=True, extracted=""),
        GradedAnswer("", "", correct=False, unparsed=True),
        GradedAnswer("", "\\boxed{}", correct=False, extracted=""),
        GradedAnswer("42", "", correct=True, extracted="42", case=reasoned("42", "6 * 7 = \\boxed{42}")),
        GradedAnswer("42", "41", correct=False, unparsed=True, extracted="41", case=reasoned("42", "\\boxed{42}", "41")),
    )
