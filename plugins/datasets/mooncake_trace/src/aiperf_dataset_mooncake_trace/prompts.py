"""Prompts from hash ids: where two requests share leading ids, their prompts share the same leading text."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

from aiperf import AiperfError, Tokenizer
from aiperf_dataset_synthetic.text import Text, Writer

_BLOCKS_KEPT = 8192


class Prompts:
    """Each id stands for the same *block_size* tokens wherever it occurs in the file; a shorter use is their beginning."""

    def __init__(self, writer: Writer, tokenizer: Tokenizer, path: Path, block_size: int) -> None:
        self._writer, self._tokenizer, self._size = writer, tokenizer, block_size
        # Ids of another trace are other blocks.
        with path.open("rb") as file:
            self._scope = hashlib.file_digest(file, "sha256").hexdigest()[:16]
        self._block = lru_cache(_BLOCKS_KEPT)(self._made_block)

    def prompt(self, length: int, ids: list[int], own: str, wrong: Callable[[str], AiperfError]) -> Text:
        """*length* tokens that begin with the blocks of *ids*; what is over is the prompt's own.

        Raises:
            AiperfError: As *wrong* makes it: there are more ids than tokens for them.
        """
        size = self._size
        if not ids:
            return self._writer.text(f"{self._scope}.{own}", 0, length)
        if length <= (len(ids) - 1) * size:
            raise wrong(
                f"input_length {length} is too short for {len(ids)} hash_ids of {size} tokens each"
                " (--isl-block-size says how many tokens an id stands for)"
            )
        *whole, last = ids
        rest = length - len(whole) * size
        pieces = [*map(self._block, whole)]
        # Pieces are as long behind a space as they are alone, so that their lengths add up.
        if rest >= size:
            pieces.append(self._block(last))
        else:
            pieces.append(self._writer.beginning(self._block(last), rest, alone=not whole))
        if rest > size:
            pieces.append(self._writer.joinable(f"{self._scope}.{own}", 0, rest - size))
        text = " ".join(pieces)
        tokens = self._tokenizer.count(text)
        self._writer.missed(tokens - length)
        return Text(text, tokens)

    def _made_block(self, identity: int) -> str:
        return self._writer.joinable(f"{self._scope}.block", identity, self._size)
