"""The contract of graders: pure functions that accept any answer."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any, ClassVar

import aiperf.sdk.grader as sdk
import msgspec
from aiperf.sdk.grader import Grade, Grader, takes_case
from aiperf.sdk.model import Turn
from msgspec import Struct
from msgspec.structs import replace

from aiperf_testing.findings import shown, unlike
from aiperf_testing.manifests import check_row

ODD = (
    "", " ", "\n\n\n", "\0", "A" * 20_000, "\\boxed{", "{[(<", "```\n", "####", "the answer is", "1e999", "NaN", "٤٢", "²", "½",
    "🦜🇩🇪", "e\u0301", "\u202eabc", "\ud800",
)  # fmt: skip
"""Unusual answers of models."""


class GradedAnswer(Struct, frozen=True):
    """An answer with its expected grade.

    extracted: None skips the comparison.  case: what ``grade(case)`` gets; None makes one of *expected* and *response*, with
    neither task, reasoning, finish reason nor usage.
    """

    expected: str
    response: str
    correct: bool
    unparsed: bool = False
    extracted: str | None = None
    case: sdk.Case | None = None

    def grade(self, grader: Grader, response: str | None = None) -> Grade:
        """The grader's grade, in the form of ``grade`` that it defines.  *response*: None is the case's own."""
        text = self.response if response is None else response
        if not takes_case(grader):
            return grader.grade(self.expected, text)
        if self.case is None:
            turn = Turn(("What is it?",), expected=self.expected)
            return grader.grade(sdk.Case(expected=self.expected, turn=turn, text=text, conversation_id="case"))
        changes = {} if response is None else {"text": response, "reasoning": ""}
        return grader.grade(replace(self.case, **changes))


_ROUNDS = 8
"""How often each case is graded: its grade is the same."""
_MOST_ODD = 12
"""Expected answers beside which the unusual answers are graded."""


def _outcome(grader: Grader, case: GradedAnswer, response: str | None = None) -> Grade | str:
    """The grade of the case, or with another *response*; or the exception, which the contract judges elsewhere."""
    try:
        return case.grade(grader, response)
    except Exception as error:  # noqa: BLE001  # third-party code
        return f"{type(error).__name__}: {error}"


class GraderContract:
    """Subclass with a grader's class, and answers with at least one right and one wrong::

        class TestMineKeepsTheContract(GraderContract):
            grader = Mine
            cases = (GradedAnswer("B", "The answer is B.", correct=True), GradedAnswer("B", "C", correct=False))
    """

    grader: ClassVar[type[Grader]]
    cases: ClassVar[Sequence[GradedAnswer]]
    options: ClassVar[Any] = None

    def _made(self) -> Grader:
        return type(self).grader(type(self).options)

    def test_its_manifest_says_what_it_is(self) -> None:
        check_row("graders", self.grader)

    def test_every_case_gets_its_grade(self) -> None:
        grader = self._made()
        for case in self.cases:
            grade = case.grade(grader)
            assert (grade.correct, grade.unparsed) == (case.correct, case.unparsed), (
                f"{shown(case)} got {shown(grade)}: correct the grader, or the case"
            )
            if case.extracted is not None:
                assert grade.extracted == case.extracted, (
                    unlike(grade.extracted, case.extracted, "correct the grader, or the case")
                )

    def test_what_is_expected_of_right_answers_fits(self) -> None:
        grader = self._made()
        for case in self.cases:
            reason = grader.unfit(case.expected)
            assert reason is None or (isinstance(reason, str) and not case.correct), (
                f"{shown(case)} is right, and unfit says {shown(reason)} of what is expected: give None, or a reason as text"
            )

    def test_the_cases_tell_right_from_wrong(self) -> None:
        assert {case.correct for case in self.cases} == {True, False}, (
            "the cases are all right, or all wrong: give at least one of each"
        )

    def test_grades_are_whole(self) -> None:
        grader = self._made()
        for case in self.cases:
            grade = case.grade(grader)
            assert type(grade) is Grade, unlike(type(grade), Grade, "grade must return a Grade")
            assert type(grade.correct) is bool and type(grade.unparsed) is bool, (
                unlike((grade.correct, grade.unparsed), "two of bool", "give True or False")
            )
            assert grade.extracted is None or isinstance(grade.extracted, str), (
                unlike(grade.extracted, "a text or None", "it is what was found in the answer")
            )
            assert grade.score is None or 0.0 <= grade.score <= 1.0, (
                unlike(grade.score, "None, or a number from 0 to 1", "scale it")
            )
            assert isinstance(grade.explanation, str), unlike(grade.explanation, "a text", "'' where there is nothing to say")
            # A slow grader's grade comes from another process.
            assert msgspec.json.decode(msgspec.json.encode(grade), type=Grade) == grade, (
                f"{shown(grade)} is another when it went through JSON: give it texts, numbers and bools alone"
            )

    def test_it_is_pure(self) -> None:
        first, second = self._made(), self._made()
        forth = [case.grade(first) for case in self.cases]
        back = [case.grade(first) for case in reversed(self.cases)]
        assert forth == back[::-1], "a repeated answer got another grade"
        assert forth == [case.grade(second) for case in self.cases], (
            "another object of the class grades otherwise: a grade depends on case and options alone, not on clock or chance"
        )

    def test_the_same_answer_gets_the_same_grade_every_time(self) -> None:
        # What only the author has is not asked for: these answers need no right grade, but always the same one.
        own = inspect.getattr_static(type(self), "cases")
        odd = [GradedAnswer(expected, text, False) for expected in ("B", "42") for text in ODD]
        cases = own if isinstance(own, Sequence) else odd
        grader = self._made()
        first = [_outcome(grader, case) for case in cases]
        for _ in range(_ROUNDS if cases is not own else 2):  # own cases may take long
            grader = self._made()
            again = [_outcome(grader, case) for case in cases]
            for case, before, now in zip(cases, first, again, strict=True):
                assert now == before, (
                    f"the answer {shown(case.response)} got {shown(before)}, then {shown(now)}:"
                    " a grade depends on the case alone, not on chance, clock or earlier answers"
                )

    def test_no_answer_is_too_odd_to_grade(self) -> None:
        grader = self._made()
        some = self.cases[:: 1 + len(self.cases) // _MOST_ODD]  # many expected answers times many odd ones take long
        for response in ODD:
            for case in some:
                outcome = _outcome(grader, case, response)
                assert type(outcome) is Grade, (
                    f"the odd answer {ascii(response)[:40]} gave {shown(outcome)} and no Grade: give Grade(correct=False,"
                    " unparsed=True) for what can't be read"
                )

    def test_silence_is_not_right(self) -> None:
        grader = self._made()
        for case in self.cases:
            if case.expected.strip():
                assert not case.grade(grader, "").correct, (
                    f"an empty answer is right for {shown(case.expected)}: give Grade(correct=False, unparsed=True)"
                )
