"""sagemaker_data_capture: chats that an endpoint captured, with the times of their requests."""

from __future__ import annotations

import base64
import binascii
from array import array
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
from aiperf import BadDataset, Conversation, Dataset, DatasetContext, Turn
from aiperf.sdk.dataset import Promise
from aiperf_dataset_single_turn.dataset import NO_HISTORY, Rows, jsonl_files, shown, texts_of, verbatim
from aiperf_dataset_synthetic.file import FileDefaults
from aiperf_rows.row_files import rows

from aiperf_dataset_sagemaker_data_capture.options import SagemakerDataCaptureOptions

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_decode = msgspec.json.Decoder().decode


class SagemakerDataCapture(Dataset[SagemakerDataCaptureOptions]):
    """Requests in the order of their times, each a conversation."""

    trace = True

    def __init__(self, options: SagemakerDataCaptureOptions, context: DatasetContext) -> None:
        super().__init__(options, context)
        self._defaults = FileDefaults(options, context)
        self._times = array("d")

    @classmethod
    def recognises(cls, path: Path, first_row: Any) -> bool:
        return isinstance(first_row, dict) and "captureData" in first_row and "eventMetadata" in first_row

    def promise(self) -> Promise:
        self._times = times = self._read_times()
        ordered = array("d", sorted(times))
        return Promise(len(times), timestamp_ms=lambda number: ordered[number] - ordered[0])

    def _read_times(self) -> array[float]:
        times = array("d", (_time_ms(reader, row, line) for reader, line, row in self._rows()))
        if not times:
            raise BadDataset(f"{self._defaults.path} has no .jsonl files with rows", "give the folder of a capture")
        return times

    def __iter__(self) -> Iterator[Conversation]:
        times = self._times or self._read_times()
        order = sorted(range(len(times)), key=times.__getitem__)
        places = {index: place for place, index in enumerate(order)}
        first, place = times[order[0]], 0
        # Files are nearly in order: memory holds the turns that still wait for an earlier one.
        waiting: dict[int, Turn] = {}
        for index, (reader, line, row) in enumerate(self._rows()):
            waiting[places[index]] = self._turn(reader, row, line, times[index] - first)
            while place in waiting:
                yield self._defaults.conversation(place, None, (waiting.pop(place),), alone=True)
                place += 1

    def _rows(self) -> Iterator[tuple[Rows, int, dict[str, Any]]]:
        path = self._defaults.path
        for file in [file for _, file in jsonl_files(path, deep=True)] if path.is_dir() else [path]:
            reader = Rows(file)
            for line, row in rows(file):
                yield reader, line, row

    def _turn(self, reader: Rows, row: dict[str, Any], line: int, timestamp_ms: float) -> Turn:
        if self._defaults.stands_before:
            raise reader.wrong(line, f"messages are sent unchanged: the {self._defaults.stands_before} can't come before them")
        if not self.context.capabilities.multi_turn:
            raise reader.wrong(line, NO_HISTORY)
        body = _body(reader, row, line)
        messages = reader.messages(body, line)
        tokens = reader.whole(body, "max_tokens", line) or reader.whole(body, "max_completion_tokens", line)
        turn = Turn(
            texts=tuple(texts_of(messages)), max_tokens=tokens, timestamp_ms=timestamp_ms, extra={"messages": messages}
        )
        return verbatim(turn) if self.context.capabilities.verbatim else turn


def _object(reader: Rows, row: dict[str, Any], key: str, line: int) -> dict[str, Any]:
    value = reader.mapping(row, key, line)
    if value is None:
        raise reader.wrong(line, f"the row has no {key}")
    return value


def _body(reader: Rows, row: dict[str, Any], line: int) -> dict[str, Any]:
    """The captured body of the request."""
    given = _object(reader, _object(reader, row, "captureData", line), "endpointInput", line)
    data, encoding = given.get("data"), given.get("encoding", "BASE64")
    if not isinstance(data, str):
        raise reader.wrong(line, f"data is {shown(data)}; it must be the text of a body, plain or in base64")
    if encoding not in ("JSON", "BASE64"):
        raise reader.wrong(line, f"encoding is {shown(encoding)}; it must be JSON or BASE64")
    try:
        body = _decode(data if encoding == "JSON" else base64.b64decode(data, validate=True))
    except binascii.Error as error:
        raise reader.wrong(line, f"data is {shown(data)}; it is no base64: {error}") from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise reader.wrong(line, f"data is {shown(data)}; it is no JSON: {error}") from error
    if not isinstance(body, dict):
        raise reader.wrong(line, f"data is {shown(body)}; it must be the body of a chat, an object")
    return body


def _time_ms(reader: Rows, row: dict[str, Any], line: int) -> float:
    """The instant of the request, ms since 1970."""
    given = _object(reader, row, "eventMetadata", line).get("inferenceTime")
    try:
        instant = datetime.fromisoformat(given)  # type: ignore[arg-type]  # another type is an error of the row
    except (TypeError, ValueError) as error:
        raise reader.wrong(line, f"inferenceTime is {shown(given)}; it must be a time such as 2025-01-01T00:00:00Z") from error
    since = (instant if instant.tzinfo is not None else instant.replace(tzinfo=UTC)) - _EPOCH
    return since.days * 86_400_000.0 + since.seconds * 1000.0 + since.microseconds / 1000


__all__ = ["SagemakerDataCapture"]
