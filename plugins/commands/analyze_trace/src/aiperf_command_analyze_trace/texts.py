"""Lengths and blocks of prompts whose texts a trace has."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from hashlib import blake2b

from aiperf import AiperfError, Tokenizer
from aiperf.sdk.registry import InstalledPlugins
from aiperf.sdk.trace import TraceRow
from msgspec.structs import replace

_TOKENIZER = "builtin"
_BYTES = 8


def measured(rows: Iterable[TraceRow], block_tokens: int, registry: InstalledPlugins) -> Iterator[TraceRow]:
    """The rows; those with texts have the length of these, and an id for each whole block of their tokens.

    Equal ids are equal beginnings up to the end of the block.  Of a prompt the texts alone count, without what a server's chat
    template adds.

    Raises:
        AiperfError: A row has texts, and the tokenizer for them is not installed.
    """
    counted: _Counted | None = None
    for row in rows:
        if not row.texts:
            yield row
            continue
        counted = counted or _Counted(block_tokens, registry)
        yield counted.of(row)


class _Counted:
    def __init__(self, block_tokens: int, registry: InstalledPlugins) -> None:
        if registry.find("tokenizers", _TOKENIZER) is None:
            raise AiperfError(
                f"the trace has texts, and the tokenizer {_TOKENIZER!r} that counts them is not installed",
                "pip install aiperf-tokenizer-builtin",
            )
        self._tokenizer: Tokenizer = registry.load("tokenizers", _TOKENIZER)(None).open(_TOKENIZER)
        self._size = block_tokens
        self._known: dict[str, array[int]] = {}

    def of(self, row: TraceRow) -> TraceRow:
        tokens = array("q")
        for text in row.texts:
            tokens += self._tokens(text)
        blocks, before = array("q"), b""
        for start in range(0, len(tokens) - self._size + 1, self._size):
            before = blake2b(before + tokens[start : start + self._size].tobytes(), digest_size=_BYTES).digest()
            blocks.frombytes(before)
        return replace(row, input_tokens=len(tokens), blocks=blocks, texts=())

    def _tokens(self, text: str) -> array[int]:
        """The text's tokens; what conversations repeat is read once."""
        known = self._known.get(text)
        if known is None:
            known = self._known[text] = array("q", self._tokenizer.encode(text))
        return known


__all__ = ["measured"]
