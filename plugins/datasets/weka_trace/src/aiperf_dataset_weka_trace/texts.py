"""Texts of blocks: the same block of a trace has the same text in every prompt, other blocks have others.

A text is made of three short pieces of the corpus, so that a trace's many blocks cost joining alone.  Pieces have the same
length with and without a space before them: lengths of texts add up.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Sequence

from aiperf import Tokenizer
from aiperf_dataset_synthetic.text import Writer

log = logging.getLogger("aiperf.datasets.weka_trace")
_BITS = 10
"""Bits of the number of a piece; a block has three."""
_MASK = (1 << _BITS) - 1
"""The greatest number of a piece."""
_SPACE = 1 << 3 * _BITS
"""Numbers of blocks; those of a trace that are below it have texts of their own."""
_ODD = 0x2545_F491
"""What numbers are multiplied by, so that those of neighbours share no pieces."""
_LEAST = 24
"""The shortest block of three pieces; shorter pieces would be alike."""
_TAILS = 512
"""Different tails of one length below that."""
_TRIES = 4
"""Pieces that are tried for one of the exact length."""


class BlockTexts:
    """Makes texts of blocks and of tails.  seed: of the run.  missed: pieces that have not their length."""

    def __init__(self, writer: Writer, tokenizer: Tokenizer, seed: int) -> None:
        self._writer, self._count, self._seed = writer, tokenizer.count, seed
        self._pieces: dict[tuple[int, int], str] = {}
        self._small: dict[tuple[str, int], str] = {}
        self._scopes: dict[str, int] = {}
        self.missed = 0

    def text(self, scope: str, ids: Sequence[int], block_tokens: int, tail: int = 0, of: str = "") -> str:
        """The blocks of a trace, and *tail* tokens behind them, which are those of the place *of*."""
        parts = [self._block(scope, identity, block_tokens) for identity in ids]
        if tail:
            own = _number(f"{self._seed}:{scope}:{of}")
            whole, rest = divmod(tail, _LEAST)
            parts += [self._made(scope, own + at, _LEAST) for at in range(whole)]
            if rest:
                parts.append(self._piece(rest, own % _TAILS))
        return " ".join(parts)

    def _block(self, scope: str, identity: int, tokens: int) -> str:
        if tokens >= _LEAST:
            return self._made(scope, identity, tokens)
        key = (f"{scope}.{tokens}", identity)
        text = self._small.get(key)
        if text is None:
            number = identity if 0 <= identity < 1 << 40 else _number(str(identity)) % (1 << 40)
            text = self._small[key] = self._writer.joinable(f"weka.{key[0]}", number, tokens)
        return text

    def _made(self, scope: str, number: int, tokens: int) -> str:
        """A text of three pieces.  Its number is spread over them one to one."""
        if not 0 <= number < _SPACE:
            number = _number(str(number))
        number = (number * _ODD + self._offset(scope)) % _SPACE
        first = tokens // 3
        second = (tokens - first) // 2
        pieces, third = self._pieces, tokens - first - second
        one, other, last = number & _MASK, number >> _BITS & _MASK, number >> 2 * _BITS
        return " ".join((
            pieces.get((first, one)) or self._piece(first, one),
            pieces.get((second, _MASK + 1 + other)) or self._piece(second, _MASK + 1 + other),
            pieces.get((third, 2 * _MASK + 2 + last)) or self._piece(third, 2 * _MASK + 2 + last),
        ))  # fmt: skip

    def _offset(self, scope: str) -> int:
        offset = self._scopes.get(scope)
        if offset is None:
            offset = self._scopes[scope] = _number(f"{self._seed}:{scope}") % _SPACE
        return offset

    def _piece(self, tokens: int, number: int) -> str:
        text = self._pieces.get((tokens, number))
        if text is None:
            for again in range(_TRIES):
                text = self._writer.joinable(f"weka.{tokens}.{again}", number, tokens)
                if self._count(text) == self._count(f" {text}") == tokens:
                    break
            else:
                self.missed += 1
            self._pieces[tokens, number] = text or ""
        return self._pieces[tokens, number]

    def warn(self) -> None:
        """Log how many pieces have not their length."""
        if self.missed:
            log.warning("%d pieces of prompts don't have their length in this tokenizer: prompts may miss theirs", self.missed)


def _number(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=7).digest())


__all__ = ["BlockTexts"]
