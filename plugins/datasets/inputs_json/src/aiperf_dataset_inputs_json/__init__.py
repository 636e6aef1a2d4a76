"""inputs_json: the bodies that a run wrote, sent again."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any

import msgspec
from aiperf import BadDataset, Conversation, Dataset, Turn
from aiperf.sdk.dataset import Promise
from aiperf_dataset_single_turn.dataset import texts_of
from aiperf_rows.row_files import lines

_HEAD_LINES = 50
_HEAD = re.compile(rb'\s*\{\s*"data"\s*:\s*\[\s*\{.*"payloads"\s*:\s*\[', re.DOTALL)
_EXPECTED = 'the file is {"data": [{"session_id": "…", "payloads": [{…}, …]}, …]}'


class _Session(msgspec.Struct):
    session_id: str
    payloads: Annotated[list[dict[str, Any]], msgspec.Meta(min_length=1)]


class _Inputs(msgspec.Struct):
    data: list[_Session]


_decode = msgspec.json.Decoder(_Inputs).decode


class InputsJson(Dataset[None]):
    """Sessions of a file; their payloads are sent as they are."""

    _read: list[_Session] | None = None

    @classmethod
    def recognises(cls, path: Path, first_row: Any) -> bool:
        try:
            head = b"".join(line for (_, line), _ in zip(lines(path), range(_HEAD_LINES), strict=False))
        except BadDataset:
            return False
        return _HEAD.match(head) is not None

    def promise(self) -> Promise:
        self._read = sessions = self._sessions()
        return Promise(len(sessions), lambda number: len(sessions[number].payloads), any_order=True)

    def chosen(self, numbers: Iterable[int]) -> Iterator[Conversation]:
        sessions = self._read or self._sessions()
        for number in numbers:
            session = sessions[number]
            turns = tuple(Turn(texts=tuple(texts_of(payload)), payload=payload) for payload in session.payloads)
            yield Conversation(session.session_id, turns, alone=True)

    def __iter__(self) -> Iterator[Conversation]:
        sessions = self._read = self._read or self._sessions()
        return self.chosen(range(len(sessions)))

    def _sessions(self) -> list[_Session]:
        """All of them: the file is one JSON object."""
        path = self.context.source
        if path is None:
            raise BadDataset("this data set reads a file, and the run has none", "add --input-file")
        try:
            sessions = _decode(b"".join(line for _, line in lines(path))).data
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise BadDataset(f"{path}: {error}", _EXPECTED) from error
        seen: set[str] = set()
        for index, session in enumerate(sessions):
            if session.session_id in seen:
                raise BadDataset(f"{path}: data[{index}]: the session id {session.session_id!r} occurs twice", "ids are unique")
            seen.add(session.session_id)
            if not all(session.payloads):
                raise BadDataset(f"{path}: data[{index}]: a payload is empty; it must be the body of a request")
        return sessions


__all__ = ["InputsJson"]
