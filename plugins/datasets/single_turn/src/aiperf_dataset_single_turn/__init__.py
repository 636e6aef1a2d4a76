"""single_turn: a file of rows that are sent without history."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from aiperf import Conversation, Dataset, DatasetContext
from aiperf.sdk.dataset import Promise
from aiperf_dataset_synthetic.file import FileDefaults

from aiperf_dataset_single_turn.options import SingleTurnOptions
from aiperf_dataset_single_turn.row import MODALITIES, Rows, shown
from aiperf_dataset_single_turn.sessions import alone, grouped, jsonl_files, lone_rows, typed
from aiperf_dataset_single_turn.verbatim import NO_HISTORY, texts_of, verbatim


class SingleTurn(Dataset[SingleTurnOptions]):
    """Rows of text and media; rows with the same ``session_id`` are one conversation without history."""

    def __init__(self, options: SingleTurnOptions, context: DatasetContext) -> None:
        super().__init__(options, context)
        self._defaults = FileDefaults(options, context)
        self._alone = False

    @classmethod
    def recognises(cls, path: Path, first_row: Any) -> bool:
        if not isinstance(first_row, dict) or "turns" in first_row:
            return False
        # A trace also has text_input, together with a timestamp or in sessions with history.
        trace = "timestamp" in first_row or "session_id" in first_row
        return any(key in first_row for key in MODALITIES if key != "text_input" or not trace)

    def promise(self) -> Promise | None:
        lines = lone_rows(self._defaults.path)
        self._alone = lines is not None
        return None if lines is None else Promise(lines)

    def __iter__(self) -> Iterator[Conversation]:
        path = self._defaults.path
        reader = Rows(path, anywhere=self.options.allow_paths)
        for number, (identity, session) in enumerate((alone if self._alone else grouped)(path, reader.session)):
            turns = tuple(reader.turn(row, line) for line, row in session)
            yield self._defaults.conversation(number, identity, turns, alone=True)


__all__ = ["MODALITIES", "NO_HISTORY", "Rows", "SingleTurn", "grouped", "jsonl_files", "shown", "texts_of", "typed", "verbatim"]
