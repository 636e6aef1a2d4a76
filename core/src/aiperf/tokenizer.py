"""The tokenizer contract."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class Tokenizer(Protocol):
    """Text to token ids and back.  Special tokens are neither added nor recognised in text."""

    name: str

    @property
    def size(self) -> int:
        """Number of ordinary token ids; ids are 0 to size - 1."""
        ...

    def encode(self, text: str) -> list[int]: ...

    def decode(self, ids: Sequence[int]) -> str:
        """Text of the ids; a broken character at either end becomes U+FFFD."""
        ...

    def count(self, text: str) -> int:
        """``len(encode(text))``, perhaps cheaper."""
        ...


class TokenizerSource(Protocol):
    """What a tokenizer package registers: it opens tokenizers by name.

    ``recognises`` must be cheap and touch no network; ``open`` may raise BadTokenizer, which names what to do.
    """

    def __init__(self, options: object = None) -> None: ...

    def recognises(self, name: str) -> bool: ...

    def open(self, name: str) -> Tokenizer: ...
