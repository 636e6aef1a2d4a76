"""single_turn: a file of rows that are sent without history."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from aiperf import Conversation
from aiperf.sdk.dataset import Promise

from aiperf_dataset_single_turn.counted import CountedRows, counted_made, counted_rows, in_order, noted, places
from aiperf_dataset_single_turn.lone import LoneRows, lone_rows
from aiperf_dataset_single_turn.options import SingleTurnOptions
from aiperf_dataset_single_turn.row import MODALITIES, Rows, shown
from aiperf_dataset_single_turn.rowfile import RowFile
from aiperf_dataset_single_turn.sessions import Row, grouped, jsonl_files, typed
from aiperf_dataset_single_turn.verbatim import NO_HISTORY, texts_of, verbatim


class SingleTurn(RowFile[SingleTurnOptions]):
    """Rows of text and media; rows with the same ``session_id`` are one conversation without history."""

    @classmethod
    def recognises(cls, path: Path, first_row: Any) -> bool:
        if not isinstance(first_row, dict) or "turns" in first_row:
            return False
        # A trace also has text_input, together with a timestamp or in sessions with history.
        trace = "timestamp" in first_row or "session_id" in first_row
        return any(key in first_row for key in MODALITIES if key != "text_input" or not trace)

    def promise(self) -> Promise | None:
        counted = self.counted()
        return None if counted is None else counted.promise(times=self.context.replay)

    def conversation(self, number: int, identity: str | None, session: list[Row]) -> Conversation:
        turns = tuple(self.reader.turn(row, line) for line, row in session)
        return self.defaults.conversation(number, identity, turns, alone=True)


__all__ = [
    "MODALITIES", "NO_HISTORY", "CountedRows", "LoneRows", "Row", "RowFile", "Rows", "SingleTurn", "counted_made",
    "counted_rows", "grouped", "in_order", "jsonl_files", "lone_rows", "noted", "places", "shown", "texts_of", "typed",
    "verbatim",
]  # fmt: skip
