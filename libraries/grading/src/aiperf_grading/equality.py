"""Whether two mathematical answers are equal, without an optional package."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import TypeAlias

from aiperf_grading.choices import last_lone
from aiperf_grading.evaluation import TOLERANCE, same_values
from aiperf_grading.normal import LONGEST, carries_percent, normalized, ungrouped
from aiperf_grading.parsing import UnreadableError, tree_of

Engine: TypeAlias = Callable[[str, str], bool]
"""Another judge of two texts, which is asked where our own core can't tell; it only adds equalities."""

_DEEPEST = 5
"""Levels of rules that lead to the comparison of other texts."""
_MOST_COMPARED = 200_000
"""Characters that one comparison normalizes, those of list elements included."""
_MOST_ELEMENTS = 64
"""Elements of a list that are compared in any order; those of a longer one as sorted texts."""
_NUMBER = re.compile(r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d{1,3})?")
_MOST_DIGITS = 400
_PREFIX = re.compile(r"\s*(?:\*\*\(?[A-E]\)?[.:]?\*\*|\([A-E]\)|[A-E][.):])\s*")
_PROSE = re.compile(r"[A-Za-z'’,.;:!?]{4,}|[^A-Za-z0-9]*")
"""Words without their spaces, or signs alone: nothing that an engine could compute."""
_LETTERS = "ABCDE"
_BRACKETS = str.maketrans("", "", "(){}")
_PAIRS = {"(": ")", "[": "]", "{": "}"}


def number_of(text: str) -> Fraction | None:
    """The number that the text is, with or without separators of thousands; None where it is none, or has over 400 digits."""
    plain = ungrouped(text)
    if len(plain) > _MOST_DIGITS or not _NUMBER.fullmatch(plain):
        return None
    return Fraction(plain)


def _numbers(expected: str, answer: str, tolerance: float, *, percent: bool) -> bool | None:
    """Whether two numbers are *tolerance* apart at most; None where one is none.  percent: only one was a percentage."""
    gold, found = number_of(expected), number_of(answer)
    if gold is None or found is None:
        return None
    pairs = [(gold, found), (gold * 100, found), (gold, found * 100)] if percent else [(gold, found)]
    return any(abs(one - other) <= tolerance for one, other in pairs)


def elements(text: str, *, mark: str = ",") -> list[str]:
    """The parts between commas that stand in no bracket."""
    depth, parts, begin = 0, [], 0
    for at, sign in enumerate(text):
        depth += (sign in "([{") - (sign in ")]}")
        if sign == mark and depth <= 0:
            parts.append(text[begin:at])
            begin = at + 1
    return [*parts, text[begin:]]


def enclosed(text: str) -> str | None:
    """What stands between two brackets around the whole text; None where there are none."""
    if len(text) < 2 or text[0] not in _PAIRS or text[-1] not in ")]}":
        return None
    depth = 0
    for at, sign in enumerate(text):
        depth += (sign in "([{") - (sign in ")]}")
        if depth == 0:
            return text[1:-1] if at == len(text) - 1 else None
    return None


def _paired(expected: list[str], answer: list[str], equal: Callable[[str, str], bool]) -> bool:
    """Whether each has a partner of its own in the other list."""
    left, same = list(answer), []
    for gold in expected:
        if gold in left:  # equal texts need no comparison
            left.remove(gold)
            same.append(gold)
    for gold in expected:
        if gold in same:
            same.remove(gold)
            continue
        partner = next((found for found in left if equal(gold, found)), None)
        if partner is None:
            return False
        left.remove(partner)
    return not left


def _equation(text: str) -> tuple[str, str] | None:
    sides = text.split("=")
    return (sides[0], sides[1]) if len(sides) == 2 and all(sides) and not re.search(r"[<>!]$", sides[0]) else None


def _rewritten(expected: str, answer: str) -> Iterator[tuple[str, str]]:
    """The equations of two texts as pairs to compare."""
    gold, found = _equation(expected), _equation(answer)
    if gold and found:
        yield f"{gold[0]}-({gold[1]})", f"{found[0]}-({found[1]})"
        yield f"{gold[0]}-({gold[1]})", f"{found[1]}-({found[0]})"
    elif gold and len(gold[0]) <= 2 and not found:
        yield gold[1], answer
    elif found and len(found[0]) <= 2 and not gold:
        yield expected, found[1]


def _readable(text: str) -> bool:
    try:
        tree_of(text)
    except UnreadableError:
        return False
    return True


def _is_list(text: str) -> bool:
    """Whether the text is a list in brackets whose elements the core can read."""
    inner = enclosed(text)
    if inner is None or number_of(inner) is not None:
        return False
    return len(parts := elements(inner)) > 1 and all(map(_readable, parts))


class _Comparison:
    def __init__(self, engine: Engine | None, tolerance: float) -> None:
        self._engine, self._tolerance, self._left = engine, tolerance, _MOST_COMPARED

    def equal(self, expected: str, answer: str, depth: int = 0) -> bool:
        """The rules in their order; the first that decides."""
        self._left -= len(expected) + len(answer) + 100
        if self._left < 0:
            return False
        gold, found = normalized(expected), normalized(answer)
        if not gold or not found or depth > _DEEPEST:
            return False
        if gold.lower() == found.lower():
            return True
        if gold in _LETTERS and last_lone(answer, _LETTERS) == gold:
            return True
        prefix = _PREFIX.match(answer)
        if prefix and self.equal(expected, answer[prefix.end() :], depth + 1):
            return True
        if max(len(gold), len(found)) > LONGEST:
            return False
        listed = self._lists(gold, found, depth)
        if listed is not None:
            return listed
        percent = carries_percent(expected) != carries_percent(answer)
        numeric = _numbers(gold, found, self._tolerance, percent=percent)
        if numeric is not None:
            return numeric
        if gold.translate(_BRACKETS).lower() == found.translate(_BRACKETS).lower() and gold.translate(_BRACKETS):
            return True
        if any(self.equal(one, other, depth + 1) for one, other in _rewritten(gold, found)):
            return True
        return self._same(gold, found, percent=percent)

    def _lists(self, gold: str, found: str, depth: int) -> bool | None:
        """Whether lists are equal, in any order, and tuples, in theirs; None where they are none, or not both."""
        one, other = enclosed(gold), enclosed(found)
        if one is not None and other is not None and gold[0] == found[0] and gold[-1] == found[-1]:
            left, right = elements(one), elements(other)
            if len(left) == len(right) > 1:
                if gold[0] == "{":
                    return self._set(left, right, depth)
                return all(self.equal(*pair, depth + 1) for pair in zip(left, right, strict=True))
            return None
        left, right = elements(gold), elements(found)
        if min(len(left), len(right)) < 2:
            return None
        return len(left) == len(right) and self._set(left, right, depth)

    def _set(self, left: list[str], right: list[str], depth: int) -> bool:
        if len(left) > _MOST_ELEMENTS:
            return sorted(left) == sorted(right)
        return _paired(left, right, lambda gold, found: self.equal(gold, found, depth + 1))

    def _same(self, gold: str, found: str, *, percent: bool) -> bool:
        same = same_values(gold, found, self._tolerance)
        if same is False and percent:
            pairs = (gold, f"({found})/100"), (f"({gold})/100", found)
            same = any(same_values(*pair, self._tolerance) for pair in pairs)
        if same is None and self._engine is not None and not _settled(gold, found):
            return self._engine(gold, found)
        return bool(same)


def _settled(gold: str, found: str) -> bool:
    """Whether the core needs nobody else: it reads both, which may be too large for anyone; one is a list and one a value; or
    one is no more than words, which are equal as texts or not at all.
    """
    if _PROSE.fullmatch(gold) or _PROSE.fullmatch(found):
        return True
    read, also = _readable(gold), _readable(found)
    return (read and also) or (read and _is_list(found)) or (also and _is_list(gold))


def equal(expected: str, answer: str, engine: Engine | None = None, tolerance: float = TOLERANCE) -> bool:
    """Whether the answer is the expected one.

    In this order, after :func:`aiperf_grading.normal.normalized`: same text; a letter A to E; without the letter of an option;
    lists element by element; numbers, *tolerance* apart at most, a percentage also as its hundredth; same text without
    brackets; equations; same values of expressions.  An empty text equals nothing.  *engine*: asked where the core can't read
    an expression.
    """
    if len(expected) > LONGEST or len(answer) > LONGEST:
        return bool(expected.strip()) and expected.strip() == answer.strip()
    return _Comparison(engine, tolerance).equal(expected, answer)


__all__ = ["Engine", "elements", "enclosed", "equal", "number_of"]
