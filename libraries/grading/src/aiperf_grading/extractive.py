r"""Candidates for the final answer, in the order in which extractive matching tries them.

First the last box; then ``final answer is …. I hope``; then what stands behind a phrase such as ``the answer is``; then the
last formula or number.  The first level that has something which can be read decides; the first text before it that can't is
also compared.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator
from itertools import islice
from typing import NamedTuple

from aiperf_grading.choices import first_line
from aiperf_grading.equality import Engine, elements, enclosed, equal, number_of
from aiperf_grading.evaluation import same_values
from aiperf_grading.extraction import boxes
from aiperf_grading.normal import normalized
from aiperf_grading.parsing import UnreadableError, tree_of

_MOST_BOXES = 8
"""Boxes of an answer that are tried, the last ones."""
_MOST_TRIED = 24
"""Phrases, formulas and numbers that are tried, the last ones."""
_FORMULA = re.compile(
    r"\$\$(?P<a>[^$]+)\$\$|\$(?P<b>[^$\n]+)\$|\\\[(?P<c>(?:[^\\]|\\(?!\]))+)\\\]|\\\((?P<d>(?:[^\\]|\\(?!\)))+)\\\)"
)
_NUMBER = re.compile(
    r"(?<![\w.,{])[-−]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:\s*/\s*\d+)?(?:\s*\^\s*\d+)?\s*%?(?![\w])|(?<![\w.])[-−]?\.\d+(?!\w)"
)
_HOPE = re.compile(r"final answer is:?\s*(?P<tail>[^\n]{1,400}?)\.?\s*I hope", re.IGNORECASE)
_ANCHOR = re.compile(r"(?:answer|result|solution)\s*(?:is|:|=|\*\*:?)+", re.IGNORECASE)
_SPAN = 200
"""How many characters behind a phrase its formula begins at the latest."""


class TextPlace(NamedTuple):
    """A formula or number in a text, and where it begins and ends."""

    begin: int
    end: int
    text: str


def places(text: str) -> list[TextPlace]:
    """The formulas between LaTeX's signs, and the numbers and fractions outside them, in their order."""
    found, at = [], 0
    for formula in _FORMULA.finditer(text):
        found += _numbers(text, at, formula.start())
        if formula.lastgroup:
            found.append(TextPlace(formula.start(), formula.end(), formula[formula.lastgroup]))
        at = formula.end()
    return found + _numbers(text, at, len(text))


def _numbers(text: str, begin: int, end: int) -> list[TextPlace]:
    return [TextPlace(found.start(), found.end(), found[0]) for found in _NUMBER.finditer(text, begin, end)]


def _anchored(text: str, found: list[TextPlace]) -> list[str]:
    """What follows each phrase such as ``the answer is``, in the same paragraph; the last one first."""
    begins, texts = [place.begin for place in found], []
    for anchor in [*_ANCHOR.finditer(text)][-_MOST_TRIED:]:
        number = bisect_left(begins, anchor.end())
        if number == len(found) or found[number].begin - anchor.end() > _SPAN:
            continue
        if "\n\n" not in text[anchor.end() : found[number].begin].strip():
            texts.append(found[number].text)
    return texts[::-1]


def _levels(text: str) -> Iterator[list[str]]:
    yield [*islice(boxes(text), _MOST_BOXES)]
    yield [found["tail"].strip("$ ") for found in [*_HOPE.finditer(text)][-1:]]
    found = places(text)
    yield _anchored(text, found)
    yield [place.text for place in found[: -_MOST_TRIED - 1 : -1]]


def is_readable(text: str) -> bool:
    """Whether a candidate is a number, an expression, or a list or equation of such."""
    plain = normalized(text)
    if number_of(plain) is not None:
        return True
    inner = enclosed(plain)
    for part in elements(plain if inner is None or "," not in inner else inner):
        for side in part.split("="):
            try:
                tree_of(side)
            except UnreadableError:
                return False
    return bool(plain)


def candidates(text: str) -> list[str]:
    """The texts that are compared, the best one first; [] where the answer has none."""
    unread: list[str] = []
    for level in _levels(text):
        for content in level:
            if is_readable(content):
                return [content, *_right_side(content), *(each for each in unread[:1] if each != content)]
            if content.strip():
                unread.append(content.strip())
    return unread[:1]


def _right_side(text: str) -> list[str]:
    """The result in an equation that holds, such as 2 + 4 = 6; [] of another text."""
    sides = normalized(text).split("=")
    return sides[-1:] if len(sides) > 1 and same_values(sides[0], sides[-1]) else []


def gold_candidates(text: str, *, latex: bool) -> list[str]:
    """The texts of an expected answer.  latex: it may be a worked solution; its last box counts, else its last formula."""
    if latex:
        return candidates(text) if boxes_or_formulas(text) else [text.strip()]
    return [text.strip()]


def boxes_or_formulas(text: str) -> bool:
    """Whether the text has a box, or a formula between LaTeX's signs."""
    return next(boxes(text), None) is not None or _FORMULA.search(text) is not None


def matches(gold: list[str], found: list[str], engine: Engine | None = None) -> str | None:
    """The first candidate of *found* that equals one of *gold*; None where none does."""
    judge: Callable[[str, str], bool] = lambda one, other: equal(one, other, engine)  # noqa: E731
    return next((each for each in found if any(judge(one, each) for one in gold)), None)


_LETTER_LEVELS = (
    re.compile(r"final answer is:?\W{0,6}(?:option\W{0,3})?([A-D])(?!\w)", re.IGNORECASE),
    re.compile(r"(?:answer|choice)\W{0,4}(?:is|:)\W{0,8}(?:option\W{0,3})?([A-D])(?!\w)", re.IGNORECASE),
    re.compile(r"\\boxed\s*\{\W{0,3}(?:\\text\s*\{\W{0,2})?([A-D])(?!\w)"),
)
_LINE_LETTER = re.compile(r"^\W{0,4}([A-D])(?:\*\*|[.):])", re.MULTILINE)
_LONE_LETTER = re.compile(r"(?<!\w)([A-D])(?![\w'’])")


def native_letter(text: str) -> str | None:
    """The letter A to D that an answer chooses; None where it has none.

    In this order: behind ``final answer is``; behind ``answer is`` or ``answer:``; in a box; alone in the first line; at the
    beginning of a line, as in ``B.``; the last lone one.  Of several of one kind the last.
    """
    for pattern in _LETTER_LEVELS:
        found = [match[1] for match in pattern.finditer(text) if match[1].isupper()]
        if found:
            return found[-1]
    if (line := first_line(text).strip("*().: ")) in ("A", "B", "C", "D"):
        return line
    found = _LINE_LETTER.findall(text) or _LONE_LETTER.findall(text)
    return found[-1] if found else None


__all__ = [
    "TextPlace", "boxes_or_formulas", "candidates", "gold_candidates", "is_readable", "matches", "native_letter", "places",
]  # fmt: skip
