"""Texts of exactly as many tokens as asked for."""

from __future__ import annotations

from collections.abc import Iterable

from aiperf import Tokenizer

from aiperf_dataset_synthetic.corpus import Window

_ROUNDS = 10
_MOST_FILLED = 32
"""Tokens; a cut may lie inside an indentation, whose spaces don't count at the end of a text."""
_FILLERS = (" a", " so", " the", " and", ".", ",", "!", " 1", "x", "\n.")
"""Tried where no cut gives the length: one of them is one more token in about any tokenizer."""


def fitted(
    tokenizer: Tokenizer, windows: Iterable[Window], length: int, head: str = "", head_length: int = 0
) -> tuple[str, int]:
    """A text that makes ``head + text`` *head_length* + *length* tokens, and how many it is off (normally 0).

    It is from the first of *windows*, at least one, that has such a text, else from the one that comes nearest.
    *length* >= 1.
    """
    best: tuple[str, int] | None = None
    for window in windows:
        found = _cut(tokenizer, window, length, head, head_length + length)
        if best is None or abs(found[1]) < abs(best[1]):
            best = found
        if best[1] == 0:
            break
    assert best is not None
    return best


def _cut(tokenizer: Tokenizer, window: Window, length: int, head: str, target: int) -> tuple[str, int]:
    """Tokens don't survive the way through text unchanged (a cut inside a word, a lone space), so the text is tokenized
    again and the cut moved by the difference until it is right."""
    want, tried = length, dict[int, tuple[int, str]]()
    for _ in range(_ROUNDS):
        text = tokenizer.decode(window.first(want)).strip()
        off = tokenizer.count(head + text) - target
        tried[want] = off, text
        if off == 0:
            return text, 0
        want = max(1, want - off)
        if want in tried:
            break
    # No cut is right: the nearest that is too short, and a word or two.
    cut = max((want for want, (off, _) in tried.items() if off < 0), default=min(tried) - 1)
    for shorter in range(cut, max(-1, cut - _ROUNDS), -1):
        filled = _filled(tokenizer, tokenizer.decode(window.first(shorter)).strip(), head, target)
        if filled is not None:
            return filled, 0
    off, text = min(tried.values(), key=lambda one: abs(one[0]))
    return text, off


def _filled(tokenizer: Tokenizer, text: str, head: str, target: int) -> str | None:
    """*text* with a few fillers after it; None where that doesn't give the length."""
    have = tokenizer.count(head + text)
    if not 0 < target - have <= _MOST_FILLED:
        return text if have == target else None
    while have < target:
        for filler in _FILLERS:
            longer = (text + filler).strip()
            count = tokenizer.count(head + longer)
            if have < count <= target:
                text, have = longer, count
                break
        else:
            return None
    return text
