"""Prompts from hash ids: requests with the same leading ids get prompts with the same leading text."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path

from aiperf import AiperfError, Tokenizer

from aiperf_dataset_synthetic.text import Text, Writer

_CACHED_BLOCKS = 8192
"""Blocks that are remembered."""


_SMALL = 1 << 26
"""Ids below this are kept in a byte each, as those of published traces, which are numbered."""


class PrefixHits:
    """What a prefix cache without end would have of each prompt of a trace, in the order in which they are asked for."""

    def __init__(self) -> None:
        self._small, self._other = bytearray(1 << 16), set[int]()

    def of(self, ids: Sequence[int]) -> tuple[int, int]:
        """The number of *ids*, and how many of them lead and stood in an earlier prompt."""
        hits = 0
        while hits < len(ids) and self._seen(ids[hits]):
            hits += 1
        for identity in ids[hits:]:
            self._see(identity)
        return len(ids), hits

    def _seen(self, identity: int) -> bool:
        if 0 <= identity < _SMALL:
            return identity < len(self._small) and bool(self._small[identity])
        return identity in self._other

    def _see(self, identity: int) -> None:
        if not 0 <= identity < _SMALL:
            self._other.add(identity)
            return
        if identity >= len(self._small):
            self._small.extend(bytes(max(identity + 1, 2 * len(self._small)) - len(self._small)))
        self._small[identity] = 1


class Prompts:
    """Makes prompts of blocks: an id stands for the same *block_size* tokens throughout the file, or for their beginning."""

    def __init__(self, writer: Writer, tokenizer: Tokenizer, path: Path, block_size: int) -> None:
        self._writer, self._tokenizer, self._size = writer, tokenizer, block_size
        # The same id in another trace stands for another block.
        with path.open("rb") as file:
            self._scope = hashlib.file_digest(file, "sha256").hexdigest()[:16]
        self._block = lru_cache(_CACHED_BLOCKS)(self._made_block)

    def prompt(self, length: int, ids: list[int], own: str, wrong: Callable[[str], AiperfError]) -> Text:
        """*length* tokens that begin with the blocks of *ids*; tokens after the blocks are unique to the prompt.

        Raises:
            AiperfError: The error of *wrong*: *length* is too short for the ids.
        """
        size = self._size
        if not ids:
            return self._writer.text(f"{self._scope}.{own}", 0, length)
        if length <= (len(ids) - 1) * size:
            raise wrong(
                f"input_length {length} is too short for {len(ids)} hash_ids of {size} tokens each"
                " (--isl-block-size sets the number of tokens per id)"
            )
        *whole, last = ids
        rest = length - len(whole) * size
        pieces = [*map(self._block, whole)]
        # Pieces have the same length with and without a space before them, so their lengths add up.
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
