"""grpc_messages: the messages of a call in each line, for the endpoint type ``dynamic_grpc``."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from aiperf import BadDataset, Conversation, Dataset, Turn
from aiperf_dataset_synthetic.text import conversation_id
from aiperf_rows.row_files import lines, row_of

from aiperf_dataset_grpc_messages.commands import command_of, messages_of
from aiperf_dataset_grpc_messages.options import GrpcMessagesOptions

PLACE = "place"
"""The extra field of a turn that names its line, for sentences of the endpoint."""
RAW = "raw_messages"
"""The extra field with messages that are serialized already, in base64."""
_KEYS = ("messages", "metadata", "waits_ms")


class GrpcMessages(Dataset[GrpcMessagesOptions]):
    """Lines of a file, each a call: its messages in the JSON of protocol buffers, metadata, and a wait before each message."""

    @classmethod
    def recognises(cls, path: Path, first_row: Any) -> bool:
        return isinstance(first_row, dict) and isinstance(first_row.get("messages"), list) and set(first_row) <= {*_KEYS}

    def __iter__(self) -> Iterator[Conversation]:
        path = self.context.source
        if path is None:
            raise BadDataset("this data set reads a file, and the run has none", "add --input-file")
        for at, (number, line) in enumerate(lines(path)):
            row, place = row_of(path, number, line), f"{path}:{number}"
            command = command_of(row)
            made = _call(place, row) if command is None else self._made(command, place)
            turn = Turn(extra={**made, PLACE: f"line {number}"})
            yield Conversation(conversation_id(self.context, at), (turn,), alone=True)


    def _made(self, command: str, place: str) -> dict[str, Any]:
        if not self.options.allow_commands:
            raise BadDataset(
                f"{place}: the row has a command that makes messages, and commands of a file are not run",
                'write its messages as JSON, {"messages": [{…}]}, or let it run with --grpc-allow-commands',
            )
        return {RAW: messages_of(command, place)}


def _call(place: str, row: dict[str, Any]) -> dict[str, Any]:
    """The row as the endpoint takes it.

    Raises:
        BadDataset: It is no call; the message gives path and line.
    """
    if unknown := sorted(set(row) - {*_KEYS}):
        raise BadDataset(f"{place}: {unknown[0]!r} is no field of a call", f"a row has {', '.join(_KEYS)}")
    messages, metadata, waits = row.get("messages"), row.get("metadata"), row.get("waits_ms")
    if not isinstance(messages, list) or not messages or not all(isinstance(each, dict) for each in messages):
        raise BadDataset(f"{place}: messages is no list of objects", 'write "messages": [{…}], an object for each message')
    if metadata is not None and not (isinstance(metadata, dict) and all(isinstance(each, str) for each in metadata.values())):
        raise BadDataset(f"{place}: metadata is no object of texts", 'write "metadata": {"name": "value"}')
    if waits is not None:
        numbers = isinstance(waits, list) and all(type(each) in (int, float) and 0 <= each < math.inf for each in waits)
        if not numbers or len(waits) != len(messages):
            raise BadDataset(
                f"{place}: waits_ms is no list of {len(messages)} numbers, a wait in ms before each message",
                f'write "waits_ms": [{", ".join("0" for _ in messages)}], or leave it away',
            )
    return {name: value for name, value in row.items() if value is not None}


__all__ = ["PLACE", "RAW", "GrpcMessages"]
