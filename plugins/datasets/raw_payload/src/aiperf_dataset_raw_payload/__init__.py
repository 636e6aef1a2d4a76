"""raw_payload: bodies of requests, sent byte for byte."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from aiperf import BadDataset, Conversation, Dataset, Turn
from aiperf.sdk.dataset import Promise
from aiperf_dataset_single_turn.dataset import LoneRows, jsonl_files, lone_rows, texts_of, typed
from aiperf_dataset_synthetic.text import conversation_id
from aiperf_rows.row_files import is_table, lines, row_of

_BODY_KEYS = ("model", "stream", "max_tokens", "max_completion_tokens")
"""Keys that mark a row with ``messages`` as a request's body instead of a row of a trace."""


class RawPayload(Dataset[None]):
    """Lines of a file, each a conversation; or files of a directory, whose lines are turns."""

    _lone: LoneRows | None = None

    @classmethod
    def recognises(cls, path: Path, first_row: Any) -> bool:
        if not isinstance(first_row, dict) or not isinstance(first_row.get("messages"), list):
            return False
        if "conversation_id" in first_row or isinstance(first_row.get("data"), list):
            return False
        return path.is_dir() or any(key in first_row for key in _BODY_KEYS)

    def promise(self) -> Promise | None:
        path = self._path
        self._lone = lone = lone_rows(path, anything=True)
        return None if lone is None else Promise(lone.count, any_order=lone.any_order)

    def chosen(self, numbers: Iterable[int]) -> Iterator[Conversation]:
        assert self._lone is not None  # it promised any order
        for number, line, text in self._lone.lines(numbers):
            yield Conversation(conversation_id(self.context, number), (_turn(self._path, line, text),), alone=True)

    @property
    def _path(self) -> Path:
        if self.context.source is None:
            raise BadDataset("this data set reads a file or a directory, and the run has none", "add --input-file")
        return self.context.source

    def __iter__(self) -> Iterator[Conversation]:
        path = self._path
        if not path.is_dir():
            for number, turn in enumerate(_turns(path)):
                yield Conversation(conversation_id(self.context, number), (turn,), alone=True)
            return
        files = jsonl_files(path)
        if not files:
            raise BadDataset(f"{path} has no .jsonl files", "each file is a conversation, and each of its lines a body")
        for name, file in files:
            turns = tuple(_turns(file))
            if not turns:
                raise BadDataset(f"{file} has no lines", "each line is the body of a request")
            yield Conversation(name, turns, alone=True)


def _turns(path: Path) -> Iterator[Turn]:
    if is_table(path):
        yield from (Turn(texts=tuple(texts_of(row)), payload=row) for _, row in typed(path) if row)
        return
    yield from (_turn(path, number, line) for number, line in lines(path))


def _turn(path: Path, number: int, line: bytes) -> Turn:
    row = row_of(path, number, line)
    if not row:
        raise BadDataset(f"{path}:{number}: the body is empty", "each line is the body of a request, a JSON object")
    return Turn(texts=tuple(texts_of(row)), payload=line.strip())


__all__ = ["RawPayload"]
