"""Letters, numbers and formulas in answers, and when two are equal."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from aiperf.sdk.columns import BatchTexts, RecordBatch
from aiperf_grading.choices import choice, reasoned_choice
from aiperf_grading.equality import elements, enclosed, equal, number_of
from aiperf_grading.evaluation import same_values, value_of
from aiperf_grading.extraction import boxes, final_answer, last_number, phrase_tail
from aiperf_grading.extractive import candidates, gold_candidates, native_letter
from aiperf_grading.normal import carries_percent, normalized
from aiperf_grading.paired import PairedResult, exact_p, mcnemar, right_answers
from aiperf_grading.parsing import UnreadableError, tree_of


@pytest.mark.parametrize(("text", "expected"), [
    (r"\dfrac12", r"\frac{1}{2}"), (r"\frac{3}4", r"\frac{3}{4}"), ("3/4", r"\frac{3}{4}"), ("-3/4", r"-\frac{3}{4}"),
    (".5", "0.5"), ("7.00", "7"), ("1,234,567", "1234567"),
    ("1,2", "1,2"), (r"5\text{ cm}^2", "5"), ("5 cm", "5"), ("5 m/s", "5"), ("5 miles per hour", "5"), ("5m", "5m"),
    ("m+1", "m+1"), ("t", "t"), (r"\sqrt2", r"\sqrt{2}"),
    (r"\left( 1 , 2 \right)", "(1,2)"), (r"x = 5", "5"), (r"x \in [0,1]", "[0,1]"), ("2x=y", "2x=y"), (r"90^{\circ}", "90"),
    (r"\text{yes}", "yes"), ("50\\%", "50"), ("March 5", "5"),
    ("May", "May"), ("1 and 2", "1,2"), (r"2\pi r", r"2\pi r"), (r"2\pi  r", r"2\pi r"), ("infinity", r"\infty"),
    (r"\$25", "25"), ("a.", "a"), ("", ""), ("3+4j", "3+4i"), (r"\mathbf{v}", "v"),
])  # fmt: skip
def test_a_text_has_one_spelling(text: str, expected: str) -> None:
    assert normalized(text) == expected
    assert normalized(expected) == expected


@pytest.mark.parametrize(("text", "value"), [
    ("1+2*3", 7), ("(1+2)*3", 9), ("2^3^2", 512), ("-2^2", -4), ("2^{-1}", Fraction(1, 2)), (r"\frac{1}{3}", Fraction(1, 3)),
    ("6/2/3", 1), ("3!", 6), (r"\binom{5}{2}", 10),
    (r"2\cdot3", 6), (r"3\frac{1}{2}", Fraction(7, 2)), ("2(3)", 6), ("|-5|", 5), ("0.1+0.2", Fraction(3, 10)), ("1/2*4", 2),
    ("--1", 1), ("10^{30}+1", 10**30 + 1),
])  # fmt: skip
def test_whole_arithmetic_is_exact(text: str, value: Fraction) -> None:
    assert value_of(tree_of(text), {}) == value


@pytest.mark.parametrize(("text", "value"), [
    (r"\sqrt{2}", math.sqrt(2)), (r"\sqrt[3]{8}", 2), (r"\sin\frac{\pi}{6}", 0.5), (r"\ln e", 1), (r"\log_{2}8", 3),
    (r"\cos^{2} 1", math.cos(1) ** 2), ("e^2", math.e**2), (r"\sin 2 x", None),
    (r"\arctan 1", math.pi / 4), ("sqrt(9)", 3), ("2pi", 2 * math.pi), (r"\tan^{2}(1)", math.tan(1) ** 2),
])  # fmt: skip
def test_functions_have_their_values(text: str, value: float | None) -> None:
    found = value_of(tree_of(normalized(text)), {"x": 0.25})
    assert complex(found) == pytest.approx(math.sin(0.5) if value is None else value)


def test_arithmetic_agrees_with_python() -> None:
    draw = random.Random(7)
    for _ in range(300):
        text, value = str(first := draw.randint(1, 9)), Fraction(first)
        for _ in range(draw.randint(1, 6)):
            number = draw.randint(1, 9)
            form, value = draw.choice([
                ("{}+{}", value + number), ("({})*{}", value * number), ("({})/{}", value / number),
    ("-({})+{}", number - value),
                ("({})({})", value * number), (r"\frac{{{}}}{{{}}}", value / number), ("{}-{}", value - number),
            ])  # fmt: skip
            text = form.format(text, number)
        assert value_of(tree_of(text), {}) == value, text


@pytest.mark.parametrize("text", [
    "", "+", "1+", "(1", "1)", "{", r"\frac{1}", r"\unknown", "word", "1;2", "x<y", "|1", "1,2", r"\sin", "^2", "((((" * 40,
    "\u00b2", "9" * 700, "2^" * 300 + "2", "1" * 3_001,
])  # fmt: skip
def test_what_is_no_expression_is_unreadable(text: str) -> None:
    with pytest.raises(UnreadableError):
        tree_of(text)


@pytest.mark.parametrize(("one", "other", "same"), [
    ("x+y", "y+x", True), ("xy", "yx", True), ("x^2-1", "(x-1)(x+1)", True), (r"\sqrt{x^2}", "x", False),
    (r"\sin^2x+\cos^2x", "1", True), ("x", "y", False), ("2^{200}", "2^{200}+1", False),
    ("9^{9^9}", "1", None), ("1/0", "1", None), ("word", "word", None), (r"\frac{x^2-1}{x-1}", "x+1", True),
    ("x_1+x_2", "x_2+x_1", True), (r"\alpha+1", r"1+\alpha", True), ("(x+1)^3", "x^3+3x^2+3x+1", True),
])  # fmt: skip
def test_expressions_are_compared_by_value(one: str, other: str, same: bool | None) -> None:
    assert same_values(one, other) is same
    assert same_values(other, one) is same


def test_equality_is_symmetric_on_plain_answers() -> None:
    texts = ["42", "42.0", "1/2", "0.5", "x+1", "1+x", "(1,2)", "(2,1)", "1,2", "2,1", "yes", "5 cm", "50%", "50"]
    assert all(equal(one, other) == equal(other, one) for one, other in product(texts, texts))
    assert all(equal(text, text) for text in texts)


@pytest.mark.parametrize(("text", "number"), [
    ("1", 1), ("-1.5", Fraction(-3, 2)), ("+2", 2), ("1,234", 1234), ("1e3", 1000), (".5", Fraction(1, 2)), ("1,23", None),
    ("x", None), ("", None), ("9" * 401, None), ("1/2", None),
])  # fmt: skip
def test_a_number_is_read_or_is_none(text: str, number: Fraction | None) -> None:
    assert number_of(text) == number


def test_percent_counts_on_one_side_alone() -> None:
    assert equal("50%", "0.5") and equal("0.5", "50 percent") and equal("50%", "50%") and equal("50", "50%")
    assert not equal("50", "0.5") and not equal("50%", "0.5%") and not equal("50%", "5000%")
    assert carries_percent("5 percent") and not carries_percent("percentage")


def test_lists_are_split_outside_brackets() -> None:
    assert elements("(1,2),3,{4,5}") == ["(1,2)", "3", "{4,5}"]
    assert (enclosed("(1,2)"), enclosed("(1)(2)"), enclosed("1"), enclosed("(")) == ("1,2", None, None, None)


def test_an_engine_only_adds_equalities() -> None:
    asked: list[tuple[str, str]] = []

    def engine(one: str, other: str) -> bool:
        asked.append((one, other))
        return True

    assert equal("x>2", "2<x", engine) and asked == [("x>2", "2<x")]
    assert not equal("1", "2", engine) and not equal("x", "y", engine) and not equal("1", "9^{9^9}", engine)
    assert len(asked) == 1
    assert equal("1", "1", lambda one, other: False)


def test_boxes_have_balanced_braces() -> None:
    text = r"\boxed{1} \boxed{\frac{1}{2}} \boxed {\{3\}} \boxed{4"
    assert [*boxes(text)] == [r"\{3\}", r"\frac{1}{2}", "1"]
    assert [*boxes(r"\boxed{a \boxed{b}}")] == ["b", r"a \boxed{b}"]
    assert [*boxes("none")] == []


def test_the_final_answer_is_looked_for_in_order() -> None:
    assert final_answer(r"the answer is 3. \boxed{4}, 5") == ("4", True)
    assert final_answer("the answer is 3.5. So 7") == ("3.5", False)
    assert final_answer("3 and 4/5") == ("4/5", False)
    assert final_answer(" none ") == ("none", False)
    assert phrase_tail("nothing") is None and last_number("nothing") is None


@pytest.mark.parametrize(("text", "found"), [
    (r"$1$ and \boxed{2} so the answer is 3", ["2"]), ("The final answer is 7. I hope it is correct. 8", ["7"]),
    ("the answer is $5$, as it was", ["5"]), ("1 then 2", ["2"]), (r"\boxed{no number} or 3", ["3", "no number"]),
    ("So $2 + 4 = 6$", ["2 + 4 = 6", "6"]), ("the final answer, I think, is 4, not 5", ["4"]), ("Answer: 3 and 4", ["3"]),
    ("the answer: x = 1 + 2 = 3", ["3"]), ("answer 7\n\nanswer: 8\nand 9", ["8"]), ("the answer\nis 7, not $8$", ["8"]),
    ("$1$ and $2$, or $3$", ["3"]), ("$1$ and $2$.", ["1,2"]), (r"\frac{1}{2}", [r"\frac{1}{2}"]),
    ("x2 has 3*4 rows", ["3*4"]), ("12,5 %", ["12.5%"]),
    ("it costs $1,250.", ["1250"]), ("(5)", []), ("it is (5) (6)", ["(5) (6)"]), ("-1/2", ["-1/2"]), ("3*4.5.", ["3"]),
    ("answer: 5 = 2 + 3", ["2 + 3"]), ("25m", ["25"]),
    ("a 1 - 2 b", ["1 - 2"]), ("$x>2$ or 3", ["3"]), (r"\[ 5 \] \%", [r"5 \%"]),
])  # fmt: skip
def test_extractive_candidates_come_by_level(text: str, found: list[str]) -> None:
    assert [each.strip() for each in candidates(text)] == found


@pytest.mark.parametrize(("text", "gold"), [
    (r"as $1$, \boxed{2}", ["2"]), ("as $1$, so $x = 2$", ["x = 2"]), (" 2 ", ["2"]),
    (r"\boxed{\log_2 8} of 8", [r"\log_2 8"]),
    (r"\boxed{?} and 3", ["?"]), ("$2<x$", ["2<x"]),
])  # fmt: skip
def test_a_worked_solution_expects_its_box_or_last_formula(text: str, gold: list[str]) -> None:
    assert gold_candidates(text, latex=True) == gold and gold_candidates(text, latex=False) == [text.strip()]


def test_long_texts_take_linear_time() -> None:
    for text in (
        "1 " * 50_000, "9" * 100_000, "(" * 50_000, "answer " * 10_000, "answer:=" * 9_000, "$" * 50_000, "1 - " * 30_000,
        "final answer " * 8_000 + " " * 20_000, "\\(" * 30_000, "**1" * 30_000, "a = " * 30_000,
    ):  # fmt: skip
        candidates(text)
        native_letter(text)


@pytest.mark.parametrize(("text", "letter"), [
    ("Answer: B", "B"), ("the answer is b", None), ("final answer is C. Answer: D", "C"), (r"\boxed{A}", None), ("none", None),
    ("it's A's", None), ("D. yes", "D"), ("The final answer is: (B). I hope", "B"), ("answer A, then answer (C)", "C"),
    ("x\n**D**", "D"), ("**A**, B", "A"), ("Answer:" + " " * 60 + "B", None), ("no\nA man", "A"), ("I choose B", None),
])  # fmt: skip
def test_a_worked_answer_chooses_a_letter(text: str, letter: str | None) -> None:
    assert native_letter(text) == letter


def test_letters_outside_the_question_are_none() -> None:
    assert choice("E") == ("E", False) and reasoned_choice("K") == ("", False)
    assert choice("The answer is E", "ABCDE") == ("E", True)


@pytest.mark.parametrize(("first", "second"), [(a, b) for a in range(7) for b in range(7)])
def test_the_exact_test_is_the_binomial_one(first: int, second: int) -> None:
    pairs = first + second
    tail = sum(math.comb(pairs, number) for number in range(min(first, second) + 1)) / 2**pairs
    assert exact_p(first, second) == pytest.approx(min(1.0, 2 * tail))


def test_many_pairs_have_a_p_value() -> None:
    assert exact_p(0, 5_000) == 0.0 and exact_p(5_000, 5_000) == 1.0
    assert exact_p(490, 510) == pytest.approx(0.548, abs=0.001)


def test_problems_that_one_run_graded_alone_are_counted_apart() -> None:
    first = {"a": True, "b": True, "c": False, "d": False, "e": True}
    second = {"a": True, "b": False, "c": True, "d": False, "f": True, "g": False}
    assert mcnemar(first, second) == PairedResult(1, 1, 1, 1, 1, 2, 1.0)


def test_graded_answers_of_a_phase_are_paired_by_problem_turn_and_repeat() -> None:
    columns = {
        "phase": [1, 1, 1, 1, 0], "turn": [0, 0, 0, 1, 0], "repeat": [0, 1, math.nan, 0, 0],
        "graded": [1, 1, 1, 0, 1], "correct": [1, 0, 1, math.nan, 1],
    }  # fmt: skip
    arrays = {name: np.array(values, dtype=np.float64) for name, values in columns.items()}
    texts = BatchTexts({"conversation_id": ["a", "a", "b", "c", "d"]})
    batch = RecordBatch(dict(arrays), np.ones(5, dtype=bool), texts)
    right = right_answers([batch], 1)
    assert right == {"a 0 0": True, "a 0 1": False, "b 0 0": True}
    assert mcnemar(right, {"a 0 0": False, "c 1 0": True}) == PairedResult(0, 0, 1, 0, 2, 1, 1.0)
