r"""Formulas, expressions and numbers in a text, as extractive matching finds them.

A formula stands between LaTeX's signs, or is a fraction of two numbers; several with ``and``, ``or`` or a comma between them
are a list.  An expression begins with a digit and has an operator.  Expressions and numbers stand at the beginning of the text,
behind a space or an equals sign, so that no part of a word is one.  Every search here takes linear time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

_BEFORE = r"(?:\A|(?<=[\s=])|(?<=\A\*\*)|(?<=[\s=]\*\*))"
_SIGNS = r"+\-−*×/÷^()"
_PLAIN_FRACTION = r"-?\\frac\{-?\d+(?:[.,]\d+)?\}\{-?\d+(?:[.,]\d+)?\}"
_FORMULA = re.compile(
    r"(?<!\\)\$\$(?P<a>[^$]+)\$\$|(?<![\\\d])\$(?P<b>(?:\\\$|[^\n$])+)(?<!\\)\$"
    r"|(?<!\\)\\\[(?P<c>(?:[^\\]|\\\\|\\(?![\[\]]))+)\\\]|(?<!\\)\\\((?P<d>(?:[^\\\n]|\\\\|\\(?![()]))+)\\\)|(?<=\s)\[(?P<e>[^\n\[\]]+)\](?=\s)"
    rf"|(?P<f>{_PLAIN_FRACTION})"
)
_PERCENT = re.compile(r"\s*(?:\\?%|[Pp]ercent|[Pp]ct)")
_BETWEEN = re.compile(r"\s*(?:and|or|,)\s*")
_RUN = re.compile(rf"{_BEFORE}[-−]?\(?[-−]?(?P<digit>\d)[\d.\s{_SIGNS}]*")
_BEHIND_RUN = re.compile(r"\s?:|[,$]|\Z")
_OPERATOR = re.compile(rf"[{_SIGNS}].", re.DOTALL)
_UNFINISHED = re.compile(r"(?:\)|\d\.\d+)\.\s*$")
"""The full stop of a sentence behind an expression, which is then none."""
_NUMBER = re.compile(
    rf"{_BEFORE}[$€£¥₹₽₪₩₫฿]?(?P<number>[-−]?\d{{1,3}}(?:[ ,]\d{{3}})+(?:\.\d+)?|[-−]?\d+[.,]\d+|\.\d+|[-−]?\d+)"
    r"(?P<percent>\s*(?:%|[Pp]ercent|[Pp]ct))?"
)
_GROUPS = re.compile(r"[-−]?\d{1,3}(?:[ ,]\d{3})+(?:\.\d+)?")
_MOST_JOINED = 6
"""Formulas of a list."""


class TextPlace(NamedTuple):
    """A formula, expression or number, and where it begins and ends.  formula: it is the first of these."""

    begin: int
    end: int
    text: str
    formula: bool


def formulas(text: str) -> list[TextPlace]:
    """The formulas, in their order."""
    found: list[TextPlace] = []
    joined = 1
    for match in _FORMULA.finditer(text):
        content, end = match[match.lastgroup or 0], match.end()
        if percent := _PERCENT.match(text, end):
            content, end = f"{content}\\%", percent.end()
        if found and joined < _MOST_JOINED and _BETWEEN.fullmatch(text, found[-1].end, match.start()):
            found[-1] = TextPlace(found[-1].begin, end, f"{found[-1].text},{content}", formula=True)
            joined += 1
        else:
            found.append(TextPlace(match.start(), end, content, formula=True))
            joined = 1
    return found


def _expressions(text: str) -> Iterator[TextPlace]:
    for run in _RUN.finditer(text):
        begin, end = run.span()
        if not _BEHIND_RUN.match(text, end):  # something else follows: it ends before a space, a full stop or a bracket
            while end > begin and text[end - 1] not in " \t\n.)":
                end -= 1
            end -= 1
        if end > begin and _OPERATOR.search(text, run.end("digit"), end) and not _UNFINISHED.search(text, begin, end):
            yield TextPlace(begin, end + 1, text[begin:end].strip(), formula=False)


def _numbers(text: str) -> Iterator[TextPlace]:
    for found in _NUMBER.finditer(text):
        number = found["number"]
        plain = re.sub("[ ,]", "", number) if _GROUPS.fullmatch(number) else number.replace(",", ".")
        yield TextPlace(found.start(), found.end(), f"{plain}%" if found["percent"] else plain, formula=False)


def values(text: str) -> list[TextPlace]:
    """The expressions and numbers, in their order; of two that begin at the same place the expression is the first."""
    return sorted([*_expressions(text), *_numbers(text)], key=lambda place: (place.begin, -place.end))


__all__ = ["TextPlace", "formulas", "values"]
