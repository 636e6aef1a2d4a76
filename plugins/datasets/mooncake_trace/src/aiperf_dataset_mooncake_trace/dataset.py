"""mooncake_trace: recorded requests of a serving cluster, with times and ids of shared prompt blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from aiperf import Conversation, Dataset, DatasetContext, Turn
from aiperf.sdk.dataset import Promise
from aiperf.sdk.trace import Trace
from aiperf_dataset_single_turn.dataset import (
    NO_HISTORY,
    CountedRows,
    Row,
    Rows,
    counted_made,
    counted_rows,
    grouped,
    texts_of,
    verbatim,
)
from aiperf_dataset_synthetic.blocks import PrefixHits, Prompts
from aiperf_dataset_synthetic.file import FileDefaults

from aiperf_dataset_mooncake_trace.options import BLOCK_TOKENS, MooncakeTraceOptions
from aiperf_dataset_mooncake_trace.recorded import KINDS, checked, kind_of, prefixes, recorded
from aiperf_dataset_mooncake_trace.synthesis_options import synthesized

_VERBATIM = ("messages", "payload")
_PREFIX = "\0prefix"
"""Key under which a row has its number of blocks and of hits."""
_BODY_KEYS = ("model", "stream", "max_tokens")
"""Keys that mark a row with ``messages`` as a request's body instead of a row of a trace."""
_KNOWN = {
    *KINDS, _PREFIX, "hash_ids", "tools", "timestamp", "delay", "session_id", "output_length", "extra", "type", "group_id",
    "is_restart",
}  # fmt: skip


class MooncakeTrace(Dataset[MooncakeTraceOptions]):
    """Rows of a trace; rows with the same ``session_id`` are one conversation.

    Chats and bodies are sent unchanged, without earlier messages.  In other conversations later turns follow the server's
    answers, and ``input_length`` counts only new tokens.
    """

    trace = True

    def __init__(self, options: MooncakeTraceOptions, context: DatasetContext) -> None:
        super().__init__(options, context)
        self._defaults = FileDefaults(options, context)
        self._prompts: Prompts | None = None
        self._counted: CountedRows | None = None
        self._read: Callable[[], Iterator[Row]] | None = None

    @classmethod
    def recognises(cls, path: Path, first_row: Any) -> bool:
        if not isinstance(first_row, dict) or "text" in first_row or "texts" in first_row:
            return False
        if "chat_id" in first_row or sum(key in first_row for key in KINDS) != 1:
            return False
        if "messages" in first_row:
            return not any(key in first_row for key in _BODY_KEYS)
        return "text_input" not in first_row or "timestamp" in first_row or "session_id" in first_row

    @classmethod
    def recorded(cls, path: Path) -> Trace:
        return Trace(recorded(path), BLOCK_TOKENS)

    def promise(self) -> Promise | None:
        scaling, path, times = self.options.scaling, self._defaults.path, self.context.replay
        if scaling is not None and scaling.max_isl is not None and path.is_file():  # it decides which rows there are
            self._read = read = self._synthesized(Rows(path))
            assert read is not None  # it scales
            self._counted = counted_made(path, read())
            return self._counted.promise(times=times, any_order=False)
        self._counted = counted = counted_rows(path)
        if counted is None:
            return None
        scaled = None if scaling is None else scaling.time
        return counted.promise(times=times, any_order=scaling is None, scaled=scaled)

    def __iter__(self) -> Iterator[Conversation]:
        reader, hits = Rows(self._defaults.path), PrefixHits()

        def note(row: dict[str, Any], line: int) -> None:
            row[_PREFIX] = hits.of(reader.hash_ids(row, line))

        read = self._read or self._synthesized(reader)
        if self._counted is None:
            sessions = grouped(reader.path, reader.session, read, note)
            return self._made(reader, ((number, *session) for number, session in enumerate(sessions)))
        return self._made(reader, self._counted.conversations(note=note, read=read))

    def chosen(self, numbers: Iterable[int]) -> Iterator[Conversation]:
        assert self._counted is not None  # it promised any order
        reader, known = Rows(self._defaults.path), prefixes(self._defaults.path)

        def note(row: dict[str, Any], line: int) -> None:
            row[_PREFIX] = known[2 * line], known[2 * line + 1]

        return self._made(reader, self._counted.conversations(numbers, note))

    def _made(self, reader: Rows, sessions: Iterable[tuple[int, str | None, list[Row]]]) -> Iterator[Conversation]:
        for number, identity, session in sessions:
            kinds = {kind_of(reader, row, line) for line, row in session}
            alone = len(kinds) == 1 and kinds <= set(_VERBATIM)
            if not alone and kinds & set(_VERBATIM):
                mixed = " and ".join(sorted(kinds))
                raise reader.wrong(session[-1][0], f"the session {identity!r} mixes {mixed}, which are sent differently")
            if alone and self._defaults.stands_before:
                raise reader.wrong(
                    session[0][0], f"{kinds.pop()} is sent unchanged: the {self._defaults.stands_before} can't come before it"
                )
            turns = tuple(self._turn(reader, row, line, number, index) for index, (line, row) in enumerate(session))
            yield self._defaults.conversation(number, identity, turns, alone=alone)
        if self._defaults.writer is not None:
            self._defaults.writer.warn()

    def _synthesized(self, reader: Rows) -> Callable[[], Iterator[Row]] | None:
        """Reads the rows that the options make of the file's; None where they leave them as they are."""
        rows, size = partial(checked, reader), self.options.block_size
        return synthesized(self.options, self.context, rows, reader.session, size, reader.wrong)

    def _turn(self, reader: Rows, row: dict[str, Any], line: int, number: int, index: int) -> Turn:
        reader.tell_unknown(row, _KNOWN, line)
        timestamp, delay = reader.number(row, "timestamp", line), reader.number(row, "delay", line)
        texts, extra, payload, tokens = self._content(reader, row, line, number, index)
        turn = Turn(
            texts=texts,
            max_tokens=reader.whole(row, "output_length", line),
            delay_ms=None if timestamp is not None else delay,
            timestamp_ms=timestamp,
            input_tokens=tokens,
            prefix_blocks=row[_PREFIX][0],
            prefix_hits=row[_PREFIX][1],
            extra=extra | reader.extra(row, line),
            payload=payload,
        )
        chat = "messages" in extra and turn.extra["messages"] is extra["messages"]
        return verbatim(turn) if chat and self.context.capabilities.verbatim else turn

    def _content(
        self, reader: Rows, row: dict[str, Any], line: int, number: int, index: int
    ) -> tuple[tuple[str, ...], dict[str, Any], dict[str, Any] | None, int | None]:
        """Texts, extra fields, payload, and the number of tokens of the texts, None where unknown."""
        kind = kind_of(reader, row, line)
        if kind == "text_input":
            return (reader.string(row, kind, line) or "",), {}, None, None
        if kind == "messages":
            if not self.context.capabilities.multi_turn:
                raise reader.wrong(line, NO_HISTORY)
            messages = reader.messages(row, line)
            tools = {"tools": row["tools"]} if row.get("tools") is not None else {}
            return tuple(texts_of(messages)), {"messages": messages, **tools}, None, None
        if kind == "payload":
            payload = reader.mapping(row, kind, line)
            if not payload:
                raise reader.wrong(line, "payload is empty; it must be the request's body")
            return tuple(texts_of(payload)), {}, payload, None
        length = reader.whole(row, kind, line) or 1
        prompts = self._made_prompts(reader.path)
        prompt = prompts.prompt(length, reader.hash_ids(row, line), f"{number}.{index}", lambda why: reader.wrong(line, why))
        return (prompt.text,), {}, None, prompt.tokens

    def _made_prompts(self, path: Path) -> Prompts:
        if self._prompts is None:
            writer, tokenizer = self._defaults.measured()
            self._prompts = Prompts(writer, tokenizer, path, self.options.block_size)
        return self._prompts


__all__ = ["MooncakeTrace"]
