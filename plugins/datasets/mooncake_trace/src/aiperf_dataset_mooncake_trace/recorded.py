"""Rows of a trace for tools that make no prompts: read fast, and refused by the same rules as in a run."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
from aiperf.sdk.trace import TraceRow
from aiperf_dataset_single_turn.dataset import Rows
from aiperf_dataset_single_turn.sessions import typed
from aiperf_dataset_synthetic.blocks import PrefixHits
from aiperf_rows.row_files import MOST_TIME, is_table, lines, row_of
from msgspec import UNSET, Raw, Struct, UnsetType

KINDS = ("input_length", "text_input", "messages", "payload")
"""Kinds of rows: the length of a prompt, a prompt, a chat, or a whole body."""
_RELATED = {"hash_ids": "input_length", "tools": "messages"}
"""Keys that only one kind of row may have."""


class _Usual(Struct):
    """A row with the length of a prompt.  Other keys that decide about a row are only seen to be there."""

    input_length: int
    output_length: int | None = None
    hash_ids: list[int] = []
    timestamp: float | None = None
    delay: float | None = None
    session_id: str | int | None = None
    text_input: Raw | UnsetType = UNSET
    messages: Raw | UnsetType = UNSET
    payload: Raw | UnsetType = UNSET
    tools: Raw | UnsetType = UNSET


class _Blocks(Struct):
    hash_ids: list[int] | None = None


_decode = msgspec.json.Decoder(_Usual).decode
_decode_blocks = msgspec.json.Decoder(_Blocks).decode


def kind_of(reader: Rows, row: dict[str, Any], line: int) -> str:
    """Which of KINDS the row is.

    Raises:
        BadDataset: It is none or several, or has a key that belongs to another.
    """
    kinds = [key for key in KINDS if row.get(key) is not None]
    if len(kinds) != 1:
        raise reader.wrong(line, f"a row has exactly one of {', '.join(KINDS)}; this one has {' and '.join(kinds) or 'none'}")
    for key, kind in _RELATED.items():
        if row.get(key) is not None and kinds[0] != kind:
            raise reader.wrong(line, f"{key} belongs to {kind}, and the row has {kinds[0]}")
    return kinds[0]


def recorded(path: Path) -> Iterator[TraceRow]:
    """The rows of the file, in its order.

    Raises:
        BadDataset: A row breaks a rule; the message gives path and line.
    """
    reader = Rows(path)
    if is_table(path):
        yield from (_row(reader, cells, number) for number, cells in typed(path))
        return
    for number, line in lines(path):
        try:
            row = _decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            yield _row(reader, row_of(path, number, line), number)
            continue
        other = row.text_input is not UNSET or row.messages is not UNSET or row.payload is not UNSET or row.tools is not UNSET
        if other or row.input_length < 1 or (row.output_length is not None and row.output_length < 1) or not _times(row):
            yield _row(reader, row_of(path, number, line), number)
            continue
        session = row.session_id if row.session_id is None else str(row.session_id)
        delay = None if row.timestamp is not None else row.delay
        yield TraceRow(row.input_length, row.output_length or 0, row.hash_ids, row.timestamp, delay, None, session)


def _times(row: _Usual) -> bool:
    return all(time is None or 0 <= time <= MOST_TIME for time in (row.timestamp, row.delay))


def _row(reader: Rows, row: dict[str, Any], line: int) -> TraceRow:
    """A row that is not of the usual form; its prompt's length is known only where the row says it."""
    kind = kind_of(reader, row, line)
    timestamp, delay = reader.number(row, "timestamp", line), reader.number(row, "delay", line)
    return TraceRow(
        input_tokens=(reader.whole(row, kind, line) or 0) if kind == "input_length" else 0,
        output_tokens=reader.whole(row, "output_length", line) or 0,
        blocks=reader.hash_ids(row, line),
        timestamp_ms=timestamp,
        delay_ms=None if timestamp is not None else delay,
        session=reader.session(row, line),
    )


def checked(reader: Rows) -> Iterator[tuple[int, dict[str, Any]]]:
    """Line numbers and rows as they stand in the file, each of which :func:`recorded` would take.

    Raises:
        BadDataset: A row breaks a rule; the message gives path and line.
    """
    for line, row in typed(reader.path):
        _row(reader, row, line)
        yield line, row


def prefixes(path: Path) -> array[int]:
    """At twice the number of a row's line its number of blocks, and behind that how many lead it and stood in an earlier row.

    Raises:
        BadDataset: The blocks of a row are none; the message gives path and line.
    """
    reader, hits, known = Rows(path), PrefixHits(), array("q")
    for number, line in lines(path):
        try:
            ids = _decode_blocks(line).hash_ids or []
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            ids = reader.hash_ids(row_of(path, number, line), number)
        known.frombytes(bytes(16 * number - 8 * len(known)))
        known.extend(hits.of(ids))
    return known
