"""mooncake_trace: recorded requests of a serving cluster, with times and ids of shared prompt blocks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from aiperf import BadDataset, Conversation, Dataset, DatasetContext, Message, Turn
from aiperf_dataset_single_turn import Rows, grouped
from aiperf_dataset_synthetic.file import FileDefaults
from msgspec.structs import replace

from aiperf_dataset_mooncake_trace.options import MooncakeTraceOptions
from aiperf_dataset_mooncake_trace.prompts import Prompts

KINDS = ("input_length", "text_input", "messages", "payload")
"""Kinds of rows: the length of a prompt, a prompt, a chat, or a whole body."""
_VERBATIM = ("messages", "payload")
_RELATED = {"hash_ids": "input_length", "tools": "messages"}
"""Keys that only one kind of row may have."""
_BODY_KEYS = ("model", "stream", "max_tokens")
"""Keys that mark a row with ``messages`` as a request's body instead of a row of a trace."""


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

    @classmethod
    def recognises(cls, path: Path, first_row: Any) -> bool:
        if not isinstance(first_row, dict) or "text" in first_row or "texts" in first_row:
            return False
        if "chat_id" in first_row or sum(key in first_row for key in KINDS) != 1:
            return False
        if "messages" in first_row:
            return not any(key in first_row for key in _BODY_KEYS)
        return "text_input" not in first_row or "timestamp" in first_row

    def __iter__(self) -> Iterator[Conversation]:
        reader = Rows(self._defaults.path)
        for number, (identity, session) in enumerate(grouped(reader.path, reader.session)):
            kinds = {_kind(reader, row, line) for line, row in session}
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

    def _turn(self, reader: Rows, row: dict[str, Any], line: int, number: int, index: int) -> Turn:
        timestamp, delay = reader.number(row, "timestamp", line), reader.number(row, "delay", line)
        texts, extra, payload, tokens = self._content(reader, row, line, number, index)
        turn = Turn(
            texts=texts,
            max_tokens=reader.whole(row, "output_length", line),
            delay_ms=None if timestamp is not None else delay,
            timestamp_ms=timestamp,
            input_tokens=tokens,
            extra=extra | (reader.mapping(row, "extra", line) or {}),
            payload=payload,
        )
        chat = "messages" in extra and turn.extra["messages"] is extra["messages"]
        return _as_items(turn) if chat and self.context.capabilities.verbatim else turn

    def _content(
        self, reader: Rows, row: dict[str, Any], line: int, number: int, index: int
    ) -> tuple[tuple[str, ...], dict[str, Any], dict[str, Any] | None, int | None]:
        """Texts, extra fields, payload, and the number of tokens of the texts, None where unknown."""
        kind = _kind(reader, row, line)
        if kind == "text_input":
            return (reader.string(row, kind, line) or "",), {}, None, None
        if kind == "messages":
            if not self.context.capabilities.multi_turn:
                raise reader.wrong(line, "messages is a chat; this endpoint type sends no history, --endpoint-type chat does")
            messages = row["messages"]
            if not isinstance(messages, list) or not messages or not all(isinstance(m, dict) and "role" in m for m in messages):
                raise reader.wrong(line, "messages must be a non-empty list of objects with a role")
            tools = {"tools": row["tools"]} if row.get("tools") is not None else {}
            return tuple(_texts(messages)), {"messages": messages, **tools}, None, None
        if kind == "payload":
            payload = reader.mapping(row, kind, line)
            if not payload:
                raise reader.wrong(line, "payload is empty; it must be the request's body")
            return tuple(_texts(payload)), {}, payload, None
        length = reader.whole(row, kind, line) or 1
        prompts = self._made_prompts(reader.path)
        prompt = prompts.prompt(length, _hash_ids(reader, row, line), f"{number}.{index}", lambda why: reader.wrong(line, why))
        return (prompt.text,), {}, None, prompt.tokens

    def _made_prompts(self, path: Path) -> Prompts:
        if self._prompts is None:
            if self._defaults.writer is None or self.context.tokenizer is None:
                raise BadDataset(
                    f"the prompts of {path} are measured in tokens, and this endpoint type has no use for a tokenizer",
                    "choose an endpoint type whose input is text",
                )
            self._prompts = Prompts(self._defaults.writer, self.context.tokenizer, path, self.options.block_size)
        return self._prompts


def _as_items(turn: Turn) -> Turn:
    """A turn whose *extra* is a chat, with verbatim messages and tools instead; their tokens then count as they are sent."""
    extra = {**turn.extra}
    items, tools = tuple(map(Message.of, extra.pop("messages"))), extra.get("tools")
    if isinstance(tools, list) and tools and all(isinstance(tool, dict) for tool in tools):  # others are sent, too
        return replace(turn, items=items, tools=tuple(extra.pop("tools")), extra=extra)
    return replace(turn, items=items, extra=extra)


def _kind(reader: Rows, row: dict[str, Any], line: int) -> str:
    kinds = [key for key in KINDS if row.get(key) is not None]
    if len(kinds) != 1:
        raise reader.wrong(line, f"a row has exactly one of {', '.join(KINDS)}; this one has {' and '.join(kinds) or 'none'}")
    for key, kind in _RELATED.items():
        if row.get(key) is not None and kinds[0] != kind:
            raise reader.wrong(line, f"{key} belongs to {kind}, and the row has {kinds[0]}")
    return kinds[0]


def _hash_ids(reader: Rows, row: dict[str, Any], line: int) -> list[int]:
    ids = row.get("hash_ids")
    if ids is None:
        return []
    if not isinstance(ids, list) or not all(isinstance(number, int) and not isinstance(number, bool) for number in ids):
        raise reader.wrong(line, "hash_ids must be a list of whole numbers")
    return ids


def _texts(value: Any) -> Iterator[str]:
    """The texts of a chat or a body: contents, prompts and inputs."""
    if isinstance(value, list):
        for element in value:
            yield from _texts(element)
    elif isinstance(value, dict):
        for key, element in value.items():
            if isinstance(element, str) and key in ("content", "text", "prompt", "input"):
                yield element
            elif isinstance(element, list | dict) and key in ("content", "messages", "prompt", "input"):
                yield from _texts(element)


__all__ = ["MooncakeTrace"]
