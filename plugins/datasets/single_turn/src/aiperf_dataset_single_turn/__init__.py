"""single_turn: a file of rows that are sent without history."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from aiperf import Conversation, Dataset, DatasetContext
from aiperf.sdk.dataset import Promise
from aiperf_dataset_synthetic.file import FileDefaults

from aiperf_dataset_single_turn.lone import LoneRows, lone_rows
from aiperf_dataset_single_turn.options import SingleTurnOptions
from aiperf_dataset_single_turn.row import MODALITIES, Rows, shown
from aiperf_dataset_single_turn.sessions import Row, grouped, jsonl_files, typed
from aiperf_dataset_single_turn.verbatim import NO_HISTORY, texts_of, verbatim


class SingleTurn(Dataset[SingleTurnOptions]):
    """Rows of text and media; rows with the same ``session_id`` are one conversation without history."""

    def __init__(self, options: SingleTurnOptions, context: DatasetContext) -> None:
        super().__init__(options, context)
        self._defaults = FileDefaults(options, context)
        self._reader = Rows(self._defaults.path, anywhere=options.allow_paths)
        self._lone: LoneRows | None = None

    @classmethod
    def recognises(cls, path: Path, first_row: Any) -> bool:
        if not isinstance(first_row, dict) or "turns" in first_row:
            return False
        # A trace also has text_input, together with a timestamp or in sessions with history.
        trace = "timestamp" in first_row or "session_id" in first_row
        return any(key in first_row for key in MODALITIES if key != "text_input" or not trace)

    def promise(self) -> Promise | None:
        self._lone = lone = lone_rows(self._defaults.path)
        if lone is None:
            return None
        return Promise(lone.count, timestamp_ms=lone.timestamps() if self.context.replay else None, any_order=lone.any_order)

    def __iter__(self) -> Iterator[Conversation]:
        if self._lone is not None:
            yield from self._conversations(self._lone.rows())
            return
        for number, (identity, session) in enumerate(grouped(self._defaults.path, self._reader.session)):
            yield self._conversation(number, identity, session)

    def chosen(self, numbers: Iterable[int]) -> Iterator[Conversation]:
        assert self._lone is not None  # it promised any order
        return self._conversations(self._lone.rows(numbers))

    def _conversations(self, rows: Iterable[tuple[int, Row]]) -> Iterator[Conversation]:
        return (self._conversation(number, None, [row]) for number, row in rows)

    def _conversation(self, number: int, identity: str | None, session: list[Row]) -> Conversation:
        turns = tuple(self._reader.turn(row, line) for line, row in session)
        return self._defaults.conversation(number, identity, turns, alone=True)


__all__ = [
    "MODALITIES", "NO_HISTORY", "LoneRows", "Row", "Rows", "SingleTurn", "grouped", "jsonl_files", "lone_rows", "shown",
    "texts_of", "typed", "verbatim",
]  # fmt: skip
