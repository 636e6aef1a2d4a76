"""The final answer in a text: a box, a phrase, a number."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

_BOX = re.compile(r"\\boxed\s*\{")
_BRACE = re.compile(r"[{}]")
_PHRASE = re.compile(r"final answer|the answer is|answer\s*[:=]|answer is", re.IGNORECASE)
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:/\d+)?")
_TAIL = re.compile(r"(?:[^.\n]|\.(?=\d))*")
_LEAD = re.compile(r"\s*(?:is\b)?\s*[:=]?\s*", re.IGNORECASE)


class Extracted(NamedTuple):
    """A final answer.  clean: it stood in a box."""

    text: str
    clean: bool


def boxes(text: str) -> Iterator[str]:
    r"""The contents of ``\boxed{…}`` with balanced braces, the last one first; of boxes in a box the inner ones, too."""
    opened: list[int] = []
    ends: dict[int, int] = {}
    depth: list[int] = []
    starts = {found.end() - 1 for found in _BOX.finditer(text)}
    if not starts:
        return
    for found in _BRACE.finditer(text, min(starts)):
        at = found.start()
        if at and text[at - 1] == "\\" and at not in starts:
            continue  # a brace that is shown
        if found[0] == "{":
            depth.append(at)
            if at in starts:
                opened.append(at)
        elif depth:
            start = depth.pop()
            if start in starts:
                ends[start] = at
    for start in reversed(opened):
        if start in ends:
            yield text[start + 1 : ends[start]]


def tidied(content: str) -> str:
    """What a box says, without line breaks, a leading colon and a trailing full stop or slash."""
    return content.replace("\n", " ").strip().removeprefix(":").strip().rstrip("./").strip()


def last_number(text: str) -> str | None:
    """The last number, with its fraction ``1/2``; None where there is none."""
    found = None
    for found in _NUMBER.finditer(text):  # noqa: B007  # the last one is wanted
        pass
    return None if found is None else found[0]


def phrase_tail(text: str) -> str | None:
    """What follows the last phrase such as ``the answer is``, up to the sentence's or line's end; None without a phrase."""
    found = None
    for found in _PHRASE.finditer(text):  # noqa: B007
        pass
    if found is None:
        return None
    lead = _LEAD.match(text, found.end())
    tail = _TAIL.match(text, lead.end() if lead else found.end())
    return tail[0].strip() if tail else None


def final_answer(text: str) -> Extracted:
    """The final answer of a worked solution; "" of an empty text."""
    for content in boxes(text):
        return Extracted(tidied(content), True)
    if tail := phrase_tail(text):
        if any(mark in tail for mark in "\\{}"):
            return Extracted(tail, False)
        return Extracted(last_number(tail) or tail, False)
    return Extracted(last_number(text) or text.strip(), False)


__all__ = ["Extracted", "boxes", "final_answer", "last_number", "phrase_tail", "tidied"]
