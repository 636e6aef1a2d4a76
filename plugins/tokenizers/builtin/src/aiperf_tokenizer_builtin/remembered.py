"""What comes again in many texts: counts of pieces of the pattern, and texts of ids."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from aiperf_tokenizer_builtin.vocabulary import ASCII_PATTERN

MOST = 32_768
"""Pieces, and ids, that are remembered: 3 to 5 MB each."""
_LONGEST = 48
"""Characters of a remembered piece."""

_pieces = re.compile(ASCII_PATTERN, re.ASCII).findall


class NoGain(Exception):  # noqa: N818  # no error: the whole text can be encoded
    """Too few pieces come again."""


class _Pieces(dict[str, int]):
    """Tokens of texts by those of the pattern's pieces, each encoded once."""

    def __init__(self, encode: Callable[[str], Sequence[int]]) -> None:
        super().__init__()
        self._encode = encode

    def __missing__(self, piece: str) -> int:
        if len(self) >= MOST:
            raise NoGain
        count = len(self._encode(piece))
        if len(piece) <= _LONGEST:
            self[piece] = count
        return count

    def of(self, text: str) -> int:
        return sum(map(self.__getitem__, _pieces(text)))


class Counts(dict[str, int]):
    """Tokens of ASCII texts by those of their words, each with the space before it: no piece has a space behind another
    character.  *encode*: a piece to its ids."""

    def __init__(self, encode: Callable[[str], Sequence[int]]) -> None:
        super().__init__()
        self._pieces = _Pieces(encode)

    def __missing__(self, word: str) -> int:
        if _ends_blank(word):
            raise KeyError(word)
        count = self._pieces.of(f" {word}")
        if len(self) < MOST and len(word) <= _LONGEST:
            self[word] = count
        return count

    def of(self, text: str) -> int:
        """The tokens of a text of ASCII characters.

        Raises:
            NoGain: More than MOST different pieces came.
        """
        first, *words = text.split(" ")
        if not _ends_blank(first):
            try:
                return self._pieces.of(first) + sum(map(self.__getitem__, words))
            except KeyError:  # a space follows a blank
                pass
        return self._pieces.of(text)


def _ends_blank(word: str) -> bool:
    return not word or word[-1].isspace()


class Texts(dict[int, str]):
    """The texts of ids that stand for whole characters.  *read*: the bytes of an id."""

    def __init__(self, read: Callable[[int], bytes]) -> None:
        super().__init__()
        self._read = read

    def learn(self, ids: Sequence[int]) -> None:
        """Remember those of the ids that are not remembered yet.

        Raises:
            KeyError: One is no id.
        """
        for number in ids if len(self) < MOST else ():
            if number not in self:
                text = self._read(number).decode(errors="replace")
                if "\ufffd" not in text:
                    self[number] = text
