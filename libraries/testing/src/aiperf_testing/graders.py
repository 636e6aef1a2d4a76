"""The contract of graders: pure functions that accept any answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import aiperf.sdk.grader as sdk
import msgspec
import pytest
from aiperf.sdk.grader import Grade, Grader, takes_case
from aiperf.sdk.model import Turn
from msgspec import Struct
from msgspec.structs import replace

from aiperf_testing.manifests import check_row

ODD = (
    "", " ", "\n\n\n", "\0", "A" * 20_000, "\\boxed{", "{[(<", "```\n", "####", "the answer is", "1e999", "NaN", "٤٢", "²", "½",
    "🦜🇩🇪", "e\u0301", "\u202eabc", "\ud800",
)  # fmt: skip
"""Unusual answers of models."""


class Case(Struct, frozen=True):
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


class GraderContract:
    """Subclass with a grader's class, and answers with at least one right and one wrong::

        class TestMineKeepsTheContract(GraderContract):
            grader = Mine
            cases = (Case("B", "The answer is B.", correct=True), Case("B", "C", correct=False))
    """

    grader: ClassVar[type[Grader]]
    cases: ClassVar[Sequence[Case]]
    options: ClassVar[Any] = None

    def _made(self) -> Grader:
        return type(self).grader(type(self).options)

    def test_its_manifest_says_what_it_is(self) -> None:
        check_row("graders", self.grader)

    def test_every_case_gets_its_grade(self) -> None:
        grader = self._made()
        for case in self.cases:
            grade = case.grade(grader)
            assert (grade.correct, grade.unparsed) == (case.correct, case.unparsed), case
            if case.extracted is not None:
                assert grade.extracted == case.extracted, case

    def test_the_cases_tell_right_from_wrong(self) -> None:
        assert {case.correct for case in self.cases} == {True, False}

    def test_grades_are_whole(self) -> None:
        grader = self._made()
        for case in self.cases:
            grade = case.grade(grader)
            assert type(grade) is Grade
            assert type(grade.correct) is bool and type(grade.unparsed) is bool
            assert grade.extracted is None or isinstance(grade.extracted, str)
            assert grade.score is None or 0.0 <= grade.score <= 1.0
            assert isinstance(grade.explanation, str)
            # A slow grader's grade comes from another process.
            assert msgspec.json.decode(msgspec.json.encode(grade), type=Grade) == grade

    def test_it_is_pure(self) -> None:
        first, second = self._made(), self._made()
        forth = [case.grade(first) for case in self.cases]
        back = [case.grade(first) for case in reversed(self.cases)]
        assert forth == back[::-1], "a repeated answer got another grade"
        assert forth == [case.grade(second) for case in self.cases]

    @pytest.mark.parametrize("response", ODD, ids=lambda text: ascii(text)[:20])
    def test_no_answer_is_too_odd_to_grade(self, response: str) -> None:
        grader = self._made()
        for case in self.cases:
            assert type(case.grade(grader, response)) is Grade

    def test_silence_is_not_right(self) -> None:
        grader = self._made()
        for case in self.cases:
            if case.expected.strip():
                assert not case.grade(grader, "").correct, case
