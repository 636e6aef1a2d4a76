"""What a trace recorded, for tools that look at it without making prompts: ``Dataset.recorded``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct


class TraceRow(Struct, frozen=True):
    """A recorded request.

    input_tokens: of its prompt, 0 where the row says none; of a later row of a session whose history accumulates, the new
    tokens alone.  output_tokens: of its answer, 0 where the row says none.
    blocks: ids of the blocks of its prompt, the first block first; equal ids are equal blocks.
    timestamp_ms: when it was sent; delay_ms: its pause behind the answer before; None where the row doesn't say.
    duration_ms: from its sending to the end of its answer; None where the row doesn't say.
    session: what rows of one conversation share; None for a row of its own.
    tree: of conversations that start others, which tree it is of, counted from 0; None elsewhere.
    stream: which conversation of the tree; 0 for the root.  depth: by how many starts the stream is below the root.
    scope: rows of different scopes share no block, whatever their ids.
    texts: of its prompt, in their order, where the trace has these in place of a length and blocks: a tool counts their tokens.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    blocks: Sequence[int] = ()
    timestamp_ms: float | None = None
    delay_ms: float | None = None
    duration_ms: float | None = None
    session: str | None = None
    tree: int | None = None
    stream: int = 0
    depth: int = 0
    scope: int = 0
    texts: Sequence[str] = ()


class Trace(Struct, frozen=True):
    """The rows of a file, in its order, lazily.

    block_tokens: length of a block, also of texts where prefixes are compared; None where the format has no blocks.
    """

    rows: Iterator[TraceRow]
    block_tokens: int | None = None


__all__ = ["Trace", "TraceRow"]
