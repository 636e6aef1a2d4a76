"""The letter of an answer to a question with choices."""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple


class Choice(NamedTuple):
    """A letter that an answer gives, or what stands for it.  clean: the answer says plainly that this is its choice."""

    letter: str
    clean: bool


class _Patterns(NamedTuple):
    phrase: re.Pattern[str]
    label: re.Pattern[str]
    lone: re.Pattern[str]


@cache
def _patterns(letters: str) -> _Patterns:
    # The label's pattern searches forward for each place: `.*` in front of it would take quadratic time.
    return _Patterns(
        re.compile(rf"answer is \(?([{letters}])\)?"),
        re.compile(rf"[aA]nswer:\s*([{letters}])"),
        re.compile(rf"(?<!\w)([{letters}])(?!\w)"),
    )


def first_line(text: str) -> str:
    """The first line that is not blank, without spaces around it; "" where there is none."""
    return text.strip().partition("\n")[0].strip()


def _last(pattern: re.Pattern[str], text: str) -> str | None:
    found = None
    for found in pattern.finditer(text):  # noqa: B007  # the last one is wanted
        pass
    return None if found is None else found[1]


def bare(text: str, letters: str) -> str | None:
    """The first line where it is one of *letters* and nothing else."""
    line = first_line(text)
    return line if len(line) == 1 and line in letters else None


def said(text: str, letters: str) -> str | None:
    """The letter behind the last ``answer is``, in brackets or not."""
    return _last(_patterns(letters).phrase, text)


def labelled(text: str, letters: str) -> str | None:
    """The letter behind the last ``Answer:`` or ``answer:``."""
    return _last(_patterns(letters).label, text)


def last_lone(text: str, letters: str) -> str | None:
    """The last of *letters* that is no part of a word."""
    return _last(_patterns(letters).lone, text)


def first_lone(text: str, letters: str) -> str | None:
    """The first of *letters* that is no part of a word."""
    found = _patterns(letters).lone.search(text)
    return None if found is None else found[1]


def choice(text: str, letters: str = "ABCD") -> Choice:
    """The letter of a short answer; its first line where it has none."""
    if clean := bare(text, letters) or said(text, letters):
        return Choice(clean, True)
    line = first_line(text)
    return Choice(labelled(text, letters) or first_lone(line, letters) or last_lone(text, letters) or line, False)


def reasoned_choice(text: str, letters: str = "ABCDEFGHIJ") -> Choice:
    """The letter of an answer with reasoning in front; "" where it has none."""
    if clean := bare(text, letters) or said(text, letters):
        return Choice(clean, True)
    return Choice(labelled(text, letters) or last_lone(text, letters) or "", False)


__all__ = ["Choice", "bare", "choice", "first_line", "first_lone", "labelled", "last_lone", "reasoned_choice", "said"]
