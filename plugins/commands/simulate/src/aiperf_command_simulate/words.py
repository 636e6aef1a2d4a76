"""The text of answers: common words, each one token of o200k_base when it follows a space."""

from __future__ import annotations

import re

_TEXT = """
the of and to in is that for it with as was on are be this by have from or had not but what all were when we there can
an your which their said if do will each about how up out them then she many some so these would other into has more her
two like him see time could no make than first been its who now people my made over did down only way find use may water
long little very after words called just where most know get through back much before go good new write our used me man
too any day same right look think also around another came come work three word must because does part even place well
such here take why things help put years different away again off went old number great tell men say small every found
still between name should home big give air line set own under read last never us left end along while might next sound
below saw something thought both few those always looked show large often together asked house world going want school
important until form food keep children feet land side without boy once animals life enough took four head above kind
began almost live page got earth need far hand high year mother light country father let night picture being study
second soon story since white ever paper hard near sentence better best across during today however sure knew try told
young sun thing whole hear example heard several change answer room sea against top turned learn point city play toward
"""

WORDS = tuple(" " + word for word in _TEXT.split())


_PIECES = re.compile(r"\s*\S+|\s+$")


class Wording:
    """An endless text, picked by number: the same number reads the same.

    *said*: a text that stands in its place behind the words of the reasoning, in pieces that are a token each; "" is none.
    """

    __slots__ = ("_at", "_stride", "pieces", "reasoning")

    def __init__(self, number: int, said: str = "") -> None:
        self.pieces: list[str] = _PIECES.findall(said) if said else []
        self.reasoning = 0
        """Words before the pieces."""
        # The number of words is a prime, so that every stride passes through all of them.
        self._at = number * 7919
        self._stride = 1 + number % (len(WORDS) - 1)

    def text(self, first: int, end: int) -> str:
        """Words *first* to *end* of it, each with a space before, or pieces."""
        if self.pieces and first >= self.reasoning:
            return "".join(self.pieces[first - self.reasoning : end - self.reasoning])
        at, stride, size = self._at, self._stride, len(WORDS)
        return "".join([WORDS[(at + stride * i) % size] for i in range(first, end)])
