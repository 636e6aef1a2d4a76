r"""Candidates for the final answer, in the order in which extractive matching tries them.

First the last box, and ``final answer is …. I hope``; then what stands behind ``final answer … is``, behind ``answer:``, and
behind ``answer``; then the last formula, expression or number.  Of one kind the one that ends last comes first.  The first
candidate that can be read decides; the first one before it that can't is also compared.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from itertools import islice

from aiperf_grading.equality import Engine, elements, enclosed, equal, number_of
from aiperf_grading.evaluation import same_values
from aiperf_grading.extraction import boxes
from aiperf_grading.normal import normalized
from aiperf_grading.parsing import UnreadableError, tree_of
from aiperf_grading.places import TextPlace, formulas, values

_MOST_BOXES = 8
"""Boxes of an answer that are tried, the last ones."""
_MOST_TRIED = 24
"""Phrases, formulas and numbers that are tried, the last ones."""
_HOPE = re.compile(r"final answer is:?\s*(?P<tail>[^\n]{1,400}?)\.?\s?I hope", re.IGNORECASE)
_ANCHORS = (
    re.compile(r"final answer[^\n]{0,100}?\s{1,9}is:?", re.IGNORECASE), re.compile(r"answer\s?:", re.IGNORECASE),
    re.compile(r"answer", re.IGNORECASE),
)  # fmt: skip
"""Phrases behind which an answer stands, the most telling one first."""
_SPAN, _EQUATION = 50, 100
"""How many characters behind a phrase its answer begins at the latest, and the equals sign before it."""
_EQUALS = re.compile(r"\s*=")


def _behind(text: str, anchor: re.Pattern[str], formula: list[TextPlace], value: list[TextPlace]) -> Iterator[TextPlace]:
    """What stands behind each phrase: the first formula; the number behind the line's last equals sign, else the first one."""
    begins, first = [place.begin for place in formula], [place.begin for place in value]
    for found in [*anchor.finditer(text)][-_MOST_TRIED:]:
        at = found.end()
        number = bisect_left(begins, at)
        if number < len(formula) and begins[number] <= at + _SPAN:
            yield formula[number]
        line_end = text.find("\n", at)
        line_end = len(text) if line_end < 0 else line_end
        for equals in range(min(at + _EQUATION, line_end - 1), at - 1, -1):
            if text[equals] == "=" and (there := _at(value, first, equals, text)) is not None:
                yield there
                break
        else:
            number = bisect_left(first, at)
            near = value[number : bisect_left(first, min(at + _SPAN, line_end) + 2)]
            yield from islice((place for place in near if not _EQUALS.match(text, place.end)), 1)


def _at(value: list[TextPlace], first: list[int], equals: int, text: str) -> TextPlace | None:
    """What stands right behind an equals sign and a space; None where another equals sign follows it."""
    number = bisect_left(first, equals + 1)
    if number == len(value) or text[equals + 1 : first[number]].strip() or _EQUALS.match(text, value[number].end):
        return None
    return value[number]


def _last_first(found: Iterable[TextPlace]) -> list[str]:
    return [place.text for place in sorted(found, key=lambda place: (-place.end, place.begin))[:_MOST_TRIED]]


def _levels(text: str) -> Iterator[list[str]]:
    hope = [found["tail"].strip("$ ") for found in [*_HOPE.finditer(text)][-1:]]
    yield [*islice(boxes(text), _MOST_BOXES), *hope]
    formula, value = formulas(text), values(text)
    for anchor in _ANCHORS:
        yield _last_first(_behind(text, anchor, formula, value))
    yield _last_first([*formula, *value])


_RELATION = re.compile(r"=|<|>|\\(?:le|ge|ne|cup|cap)(?![A-Za-z])\s?")
_INTERVAL = re.compile(r"[(\[][^,]+,[^,]+[)\]]")
_ENDLESS = ("\\infty", "-\\infty", "+\\infty")


def is_readable(text: str) -> bool:
    """Whether a candidate is a number, an expression, or a list, interval, equation or inequality of such."""
    plain = normalized(text)
    if number_of(plain) is not None:
        return True
    for side in _RELATION.split(plain):
        inner = side[1:-1] if _INTERVAL.fullmatch(side) else enclosed(side)
        for part in elements(side if inner is None or "," not in inner else inner):
            try:
                if part not in _ENDLESS:
                    tree_of(part)
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
    """The text of an expected answer.  latex: it may be a worked solution; its last box counts, else its last formula."""
    if latex and (box := next(boxes(text), None)) is not None:
        return [box, *_right_side(box)]
    if latex and (found := formulas(text)):
        return [found[-1].text, *_right_side(found[-1].text)]
    return [text.strip()]


def matches(gold: list[str], found: list[str], engine: Engine | None = None) -> str | None:
    """The first candidate of *found* that equals one of *gold*; None where none does."""
    judge: Callable[[str, str], bool] = lambda one, other: equal(one, other, engine)  # noqa: E731
    return next((each for each in found if any(judge(one, each) for one in gold)), None)


_LETTER = r"(?:([A-D])|\(([A-D])\))"
_LONE = rf"(?:\A|(?<= )|(?<=\A\*\*)|(?<= \*\*)){_LETTER}(?:\*\*)?(?=[., ]|\s?:|\n?\Z)"
"""A letter alone, behind a space; a full stop, comma, colon, space or the end follows."""
_LETTER_LEVELS = tuple(map(re.compile, (
    rf"(?i:final answer is):?\s*{_LETTER}\.?\s?I hope", rf"(?i:final answer[^\n]{{0,100}}?)\s+is:?\s*{_LETTER}(?!\w)",
    rf"(?i:answer)\s?:[^\n]{{0,50}}?{_LONE}", rf"(?i:answer)[^\n]{{0,50}}?{_LONE}",
    rf"\A(?:\*\*)?{_LETTER}(?:\*\*)?(?=[., ]|\s?:|\n?\Z)", rf"\n(?:\*\*)?{_LETTER}(?:\*\*)?(?=[., ]|\s?:|\n?\Z)",
)))  # fmt: skip


def native_letter(text: str) -> str | None:
    """The letter A to D that an answer chooses; None where it has none.

    In this order: in ``final answer is X. I hope``; behind ``final answer … is``; behind ``answer:``; behind ``answer``; at the
    beginning; at the beginning of a line.  Of several of one kind the last.  A letter anywhere else is none: A is a word, too.
    """
    for pattern in _LETTER_LEVELS:
        found = None
        for found in pattern.finditer(text):  # noqa: B007  # the last one is wanted
            pass
        if found is not None:
            return found[1] or found[2]
    return None


__all__ = ["candidates", "gold_candidates", "is_readable", "matches", "native_letter"]
