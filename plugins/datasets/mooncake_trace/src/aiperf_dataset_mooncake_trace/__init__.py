"""mooncake_trace: what a serving cluster was asked, when, and which prompts began alike."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from aiperf import BadDataset, Conversation, Dataset, DatasetContext, Turn
from aiperf_dataset_single_turn import Rows, grouped
from aiperf_dataset_synthetic.file import FileDefaults

from aiperf_dataset_mooncake_trace.prompts import Prompts

KINDS = ("input_length", "text_input", "messages", "payload")
"""What a row asks: a prompt of so many tokens, a prompt, a chat, or a whole body."""
_VERBATIM = ("messages", "payload")
_BESIDE = {"hash_ids": "input_length", "tools": "messages"}
"""Keys that say more of a row of one kind, and mean nothing in others."""
_A_BODY = ("model", "stream", "max_tokens")
"""Keys beside ``messages`` that make the row a request's body rather than a trace's."""


class MooncakeTrace(Dataset):
    """Rows of a trace; those that share a ``session_id`` are one conversation.

    Chats and bodies are sent as they are, with nothing before them.  In other conversations the server's answers come before
    the later turns, whose ``input_length`` counts new tokens alone.
    """

    trace = True

    def __init__(self, options: Any, context: DatasetContext) -> None:
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
            return not any(key in first_row for key in _A_BODY)
        return "text_input" not in first_row or "timestamp" in first_row

    def __iter__(self) -> Iterator[Conversation]:
        reader = Rows(self._defaults.path)
        for number, (identity, found) in enumerate(grouped(reader.path, reader.session)):
            kinds = {_kind(reader, row, line) for line, row in found}
            alone = len(kinds) == 1 and kinds <= set(_VERBATIM)
            if not alone and kinds & set(_VERBATIM):
                mixed = " and ".join(sorted(kinds))
                raise reader.wrong(found[-1][0], f"the session {identity!r} mixes {mixed}, which are sent differently")
            if alone and self._defaults.stands_before:
                raise reader.wrong(
                    found[0][0], f"{kinds.pop()} is sent as it is: the {self._defaults.stands_before} has no place before it"
                )
            turns = tuple(self._turn(reader, row, line, number, index) for index, (line, row) in enumerate(found))
            yield self._defaults.conversation(number, identity, turns, alone=alone)
        if self._defaults.writer is not None:
            self._defaults.writer.warn()

    def _turn(self, reader: Rows, row: dict[str, Any], line: int, number: int, index: int) -> Turn:
        timestamp, delay = reader.number(row, "timestamp", line), reader.number(row, "delay", line)
        texts, extra, payload, tokens = self._asked(reader, row, line, number, index)
        return Turn(
            texts=texts,
            max_tokens=reader.whole(row, "output_length", line),
            delay_ms=None if timestamp is not None else delay,
            timestamp_ms=timestamp,
            input_tokens=tokens,
            extra=extra | (reader.mapping(row, "extra", line) or {}),
            payload=payload,
        )

    def _asked(
        self, reader: Rows, row: dict[str, Any], line: int, number: int, index: int
    ) -> tuple[tuple[str, ...], dict[str, Any], dict[str, Any] | None, int | None]:
        """Texts, extra fields, payload, and how many tokens the texts are, if that is known."""
        kind = _kind(reader, row, line)
        if kind == "text_input":
            return (reader.string(row, kind, line) or "",), {}, None, None
        if kind == "messages":
            if not self.context.capabilities.multi_turn:
                raise reader.wrong(line, "messages is a chat, and this endpoint type sends no history; chat does")
            messages = row["messages"]
            if not isinstance(messages, list) or not messages or not all(isinstance(m, dict) and "role" in m for m in messages):
                raise reader.wrong(line, "messages is a list of objects with a role, of at least one")
            tools = {"tools": row["tools"]} if row.get("tools") is not None else {}
            return tuple(_texts(messages)), {"messages": messages, **tools}, None, None
        if kind == "payload":
            payload = reader.mapping(row, kind, line)
            if not payload:
                raise reader.wrong(line, "payload is empty; it is the request's body")
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


def _kind(reader: Rows, row: dict[str, Any], line: int) -> str:
    found = [key for key in KINDS if row.get(key) is not None]
    if len(found) != 1:
        raise reader.wrong(line, f"a row has exactly one of {', '.join(KINDS)}; this one has {' and '.join(found) or 'none'}")
    for key, kind in _BESIDE.items():
        if row.get(key) is not None and found[0] != kind:
            raise reader.wrong(line, f"{key} belongs to {kind}, and the row has {found[0]}")
    return found[0]


def _hash_ids(reader: Rows, row: dict[str, Any], line: int) -> list[int]:
    ids = row.get("hash_ids")
    if ids is None:
        return []
    if not isinstance(ids, list) or not all(isinstance(each, int) and not isinstance(each, bool) for each in ids):
        raise reader.wrong(line, "hash_ids is a list of whole numbers")
    return ids


def _texts(value: Any) -> Iterator[str]:
    """What a person would read of a chat or a body: contents, prompts and inputs."""
    if isinstance(value, list):
        for each in value:
            yield from _texts(each)
    elif isinstance(value, dict):
        for key, each in value.items():
            if isinstance(each, str) and key in ("content", "text", "prompt", "input"):
                yield each
            elif isinstance(each, list | dict) and key in ("content", "messages", "prompt", "input"):
                yield from _texts(each)


__all__ = ["MooncakeTrace"]
