"""The number behind four hashes, else the last number of the answer, is the expected one."""

from __future__ import annotations

import re
from fractions import Fraction

from aiperf.sdk.grader import Case, Grade, Grader

_MARKED = re.compile(r"#### (-?[0-9.,]+)")
_NUMBER = re.compile(r"-?[0-9][0-9,]*(?:\.[0-9]+)?")
_PLAIN = re.compile(r"-?(?:[0-9]+\.?[0-9]*|\.[0-9]+)")
_TOLERANCE = Fraction(1, 1_000_000)
_MOST_DIGITS = 4_000


def marked(text: str) -> str | None:
    """The first number behind ``#### ``, without commas; None where there is none."""
    found = _MARKED.search(text)
    return None if found is None else found[1].replace(",", "")


def _last(text: str) -> str | None:
    found = None
    for found in _NUMBER.finditer(text):  # noqa: B007  # the last one is wanted
        pass
    return None if found is None else found[0].replace(",", "")


def same(expected: str, answer: str) -> bool:
    """Whether two numbers are 0.000001 apart at most; texts that are no numbers, or very long, must be the same text."""
    if all(len(each) <= _MOST_DIGITS and _PLAIN.fullmatch(each) for each in (expected, answer)):
        return abs(Fraction(expected.rstrip(".")) - Fraction(answer.rstrip("."))) <= _TOLERANCE
    return expected == answer


class LightevalGsm8k(Grader):
    """Compares the number behind ``#### `` with the one in the expected worked solution; the last number is unparsed."""

    def unfit(self, expected: str) -> str | None:
        return None if marked(expected) else "it has no number behind ####"

    def grade(self, case: Case) -> Grade:
        gold, found = marked(case.expected), marked(case.response)
        clean = found is not None
        number = found if clean else _last(case.response)
        if number is None:
            return Grade(correct=False, unparsed=True, explanation="the answer has no number")
        if gold is None:
            said = "the expected answer has no number behind ####"
            return Grade(correct=False, unparsed=not clean, extracted=number, explanation=said)
        said = "the number behind ####" if clean else "the last number"
        return Grade(correct=same(gold, number), unparsed=not clean, extracted=number, explanation=f"{said} was compared")
