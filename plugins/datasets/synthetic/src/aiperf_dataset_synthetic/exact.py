"""Texts of an exact number of tokens."""

from __future__ import annotations

from collections.abc import Iterable

from aiperf import Tokenizer

from aiperf_dataset_synthetic.corpus import CorpusWindow

_ROUNDS = 10
"""Attempts to meet a count of tokens."""
_MAX_FILLED = 32
"""Limit of filled tokens.  A cut may lie in an indentation, whose spaces are stripped at the end of a text."""
_FILLERS = (" a", " so", " the", " and", ".", ",", "!", " 1", "x", "\n.")
"""Endings for texts that no cut gives the exact length: in nearly every tokenizer one of them adds one token."""


def fitted(
    tokenizer: Tokenizer, windows: Iterable[CorpusWindow], length: int, head: str = "", head_length: int = 0
) -> tuple[str, int]:
    """A text for which ``head + text`` has *head_length* + *length* tokens, and its error in tokens (normally 0).

    It comes from the first of *windows* (at least one) with such a text, else from the window with the smallest error.
    *length* >= 1.
    """
    best: tuple[str, int] | None = None
    for window in windows:
        candidate = _cut(tokenizer, window, length, head, head_length)
        if best is None or abs(candidate[1]) < abs(best[1]):
            best = candidate
        if best[1] == 0:
            break
    assert best is not None
    return best


def measured(tokenizer: Tokenizer, window: CorpusWindow, cut: int, head: str = "", head_length: int = 0) -> tuple[str, int]:
    """The text of the first *cut* ids of a window, and the tokens of ``head + text``, where *head* has *head_length*."""
    if not head or (head_length and head[-1] == " "):
        known = window.cut(tokenizer, cut, behind=head != "")
        if known is not None:
            return known[0], head_length + known[1]
    text = tokenizer.decode(window.first(cut)).strip()
    return text, tokenizer.count(head + text)


def _cut(tokenizer: Tokenizer, window: CorpusWindow, length: int, head: str, head_length: int) -> tuple[str, int]:
    """Move the cut by the error until the tokenized text has the length: tokens may change on the way through text (a cut
    inside a word, a lone space)."""
    cut, target, tried = length, head_length + length, dict[int, tuple[int, str]]()
    for _ in range(_ROUNDS):
        text, tokens = measured(tokenizer, window, cut, head, head_length)
        off = tokens - target
        tried[cut] = off, text
        if off == 0:
            return text, 0
        cut = max(1, cut - off)
        if cut in tried:
            break
    # No cut fits: take the longest that is too short, and add fillers.
    cut = max((cut for cut, (off, _) in tried.items() if off < 0), default=min(tried) - 1)
    for shorter in range(cut, max(-1, cut - _ROUNDS), -1):
        filled = _filled(tokenizer, tokenizer.decode(window.first(shorter)).strip(), head, target)
        if filled is not None:
            return filled, 0
    off, text = min(tried.values(), key=lambda attempt: abs(attempt[0]))
    return text, off


def _filled(tokenizer: Tokenizer, text: str, head: str, target: int) -> str | None:
    """*text* with fillers up to *target* tokens; None where they don't give that length."""
    length = tokenizer.count(head + text)
    if not 0 < target - length <= _MAX_FILLED:
        return text if length == target else None
    while length < target:
        for filler in _FILLERS:
            longer = (text + filler).strip()
            count = tokenizer.count(head + longer)
            if length < count <= target:
                text, length = longer, count
                break
        else:
            return None
    return text
