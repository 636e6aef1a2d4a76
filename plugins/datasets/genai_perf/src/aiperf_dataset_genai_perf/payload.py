"""genai_perf_payload: rows with fields of the body, which genai-perf read from ``payload:FILE``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

from aiperf import Conversation, Dataset, DatasetContext, Turn
from aiperf.sdk.dataset import Promise
from aiperf_dataset_single_turn.dataset import CountedRows, Row, Rows, counted_rows, grouped
from aiperf_dataset_synthetic.blocks import Prompts
from aiperf_dataset_synthetic.file import FileDefaults
from msgspec.structs import replace

from aiperf_dataset_genai_perf.options import PayloadOptions

_LENGTH = 550
"""Tokens of a prompt that has neither a text nor a length; genai-perf's default."""
_OWN = ("text", "text_input", "input_length", "hash_ids", "output_length", "timestamp", "delay", "session_id")


class Payload(Dataset[PayloadOptions]):
    """Rows of a file; rows with the same ``session_id`` are one conversation, whose turns follow the server's answers.

    A row's ``delay`` is waited after its answer.
    """

    trace = True

    def __init__(self, options: PayloadOptions, context: DatasetContext) -> None:
        super().__init__(options, context)
        self._defaults = FileDefaults(options, context)
        self._prompts: Prompts | None = None
        self._counted: CountedRows | None = None

    @cached_property
    def _reader(self) -> Rows:
        """One for all rows: it tells what is odd once."""
        return Rows(self._defaults.path)

    def promise(self) -> Promise | None:
        self._counted = counted = counted_rows(self._defaults.path)
        return None if counted is None else counted.promise(times=self.context.replay)

    def __iter__(self) -> Iterator[Conversation]:
        reader = self._reader
        if self._counted is not None:
            yield from self._conversations(reader, self._counted.conversations())
        else:
            sessions = grouped(reader.path, reader.session)
            yield from self._conversations(reader, ((number, *session) for number, session in enumerate(sessions)))
        if self._prompts is not None and self._defaults.writer is not None:
            self._defaults.writer.warn()

    def chosen(self, numbers: Iterable[int]) -> Iterator[Conversation]:
        assert self._counted is not None  # it promised any order
        return self._conversations(self._reader, self._counted.conversations(numbers))

    def _conversations(self, reader: Rows, sessions: Iterable[tuple[int, str | None, list[Row]]]) -> Iterator[Conversation]:
        for number, identity, session in sessions:
            turns, waits = [], None
            for index, (line, row) in enumerate(session):
                turns.append(replace(self._turn(reader, row, line, f"{number}.{index}"), delay_ms=waits))
                waits = reader.number(row, "delay", line)
            yield self._defaults.conversation(number, identity, tuple(turns))

    def _turn(self, reader: Rows, row: dict[str, Any], line: int, own: str) -> Turn:
        given = [key for key in ("text", "text_input") if row.get(key) is not None]
        if len(given) > 1:
            raise reader.wrong(line, "text and text_input exclude each other")
        tokens = None
        if given:
            text = reader.string(row, given[0], line) or ""
            if not text:
                raise reader.wrong(line, f"{given[0]} is empty")
        else:
            length = reader.whole(row, "input_length", line) or _LENGTH
            ids = reader.hash_ids(row, line)
            prompt = self._made(reader.path).prompt(length, ids, own, lambda why: reader.wrong(line, why))
            text, tokens = prompt.text, prompt.tokens
        extra = {key: value for key, value in row.items() if key not in _OWN}
        reader.tell_replacing(extra, line, "the row")
        return Turn(
            texts=(text,), max_tokens=reader.whole(row, "output_length", line), input_tokens=tokens,
            timestamp_ms=reader.number(row, "timestamp", line),
            extra=extra,
        )  # fmt: skip

    def _made(self, path: Path) -> Prompts:
        if self._prompts is None:
            writer, tokenizer = self._defaults.measured()
            self._prompts = Prompts(writer, tokenizer, path, self.options.block_size)
        return self._prompts


__all__ = ["Payload"]
