"""Plain ASCII text to ids without loading the vocabulary.

Loading the whole of it costs a process 0.2 s, and a short run has a few hundred different words.  ``o200k_base.ascii`` holds
the tokens of ASCII characters by the hash of their text, so that a word is found without reading the others.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence
from itertools import chain

from aiperf_tokenizer_builtin.vocabulary import ASCII_PATTERN, read

_BUCKETS = 1 << 16
"""Buckets of the table of tokens."""
_OFFSET, _RANK = 4, 3
"""Bytes of a bucket's end in the file, and of a token's rank."""
_INVERTED = bytes(reversed(range(256)))
"""Of a token's text in the file: no search for words takes the file for text."""
_LONGEST = 48
"""Characters of a piece that is merged here: the time grows with their square."""
_MOST_MERGED = 15_000
"""Characters merged here before loading the vocabulary takes less time."""

_pieces = re.compile(ASCII_PATTERN, re.ASCII).findall


class TooMuch(Exception):  # noqa: N818  # no error: the whole vocabulary can do it
    """The text is not plain, or has so many unusual words that loading the vocabulary is worth it."""


def pack(tokens: Sequence[bytes]) -> bytes:
    """The file: the ends of all buckets, then the buckets' tokens, each as rank, length and text."""
    buckets = [bytearray() for _ in range(_BUCKETS)]
    for rank, token in enumerate(tokens):
        if token.isascii():
            buckets[_bucket(token)] += rank.to_bytes(_RANK, "little") + bytes([len(token)]) + token.translate(_INVERTED)
    ends, end = bytearray(), _OFFSET * _BUCKETS
    for bucket in buckets:
        end += len(bucket)
        ends += end.to_bytes(_OFFSET, "little")
    return bytes(ends) + b"".join(buckets)


def _bucket(token: bytes) -> int:
    return zlib.crc32(token) % _BUCKETS


class Ranks(dict[str, int | None]):
    """The ranks of tokens of ASCII characters, None where a text is no token; read from the packed file when they are used."""

    def __init__(self, packed: bytes) -> None:
        super().__init__()
        self._packed = packed

    def __missing__(self, text: str) -> int | None:
        token = text.encode()
        place, token = _OFFSET * _bucket(token), token.translate(_INVERTED)
        start = int.from_bytes(self._packed[place - _OFFSET : place], "little") if place else _OFFSET * _BUCKETS
        end = int.from_bytes(self._packed[place : place + _OFFSET], "little")
        rank = None
        while start < end:
            length = self._packed[start + _RANK]
            at = start + _RANK + 1
            if self._packed[at : at + length] == token:
                rank = int.from_bytes(self._packed[start : start + _RANK], "little")
                break
            start = at + length
        self[text] = rank
        return rank


class Ids(dict[str, tuple[int, ...]]):
    """The ids of pieces of text; those that are no token are merged from their characters, as byte pair encoding does."""

    def __init__(self, ranks: Ranks) -> None:
        super().__init__()
        self.texts: dict[int, str] = {}
        """The text of each id that has been used."""
        self._ranks, self._merged = ranks, 0

    def __missing__(self, piece: str) -> tuple[int, ...]:
        rank = self._ranks[piece]
        parts = [piece] if rank is not None else self._merge(piece)
        ids = self[piece] = tuple(self._ranks[part] for part in parts)  # type: ignore[misc]  # each part is a token
        self.texts.update(zip(ids, parts, strict=True))
        return ids

    def _merge(self, piece: str) -> list[str]:
        self._merged += len(piece)
        if len(piece) > _LONGEST or self._merged > _MOST_MERGED:
            raise TooMuch
        ranks, parts = self._ranks, list(piece)
        while True:
            merged = [(rank, at) for at in range(len(parts) - 1) if (rank := ranks[parts[at] + parts[at + 1]]) is not None]
            if not merged:
                return parts
            at = min(merged)[1]
            parts[at : at + 2] = [parts[at] + parts[at + 1]]


class Plain:
    """Encodes, decodes and counts plain text.  Every method raises TooMuch where it can't."""

    def __init__(self) -> None:
        self._ids = Ids(Ranks(read("o200k_base.ascii")))

    def encode(self, text: str) -> list[int]:
        return list(chain.from_iterable(self._encoded(text)))

    def count(self, text: str) -> int:
        return sum(map(len, self._encoded(text)))

    def decode(self, ids: Sequence[int]) -> str:
        try:
            return "".join(map(self._ids.texts.__getitem__, ids))
        except KeyError:
            raise TooMuch from None

    def _encoded(self, text: str) -> list[tuple[int, ...]]:
        if not text.isascii():
            raise TooMuch
        return list(map(self._ids.__getitem__, _pieces(text)))
