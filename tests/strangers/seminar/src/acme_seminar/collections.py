"""Riddles on one subject: the manifest has a row of data for each name."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from aiperf import Conversation, Dataset, Turn
from aiperf_rows.row_files import tables

from acme_seminar.options import CollectionsOptions


class Collections(Dataset[CollectionsOptions]):
    def __iter__(self) -> Iterator[Conversation]:
        table = tables(Path(__file__).with_name("riddles.csv"), columns=("riddle", "answer"))
        for number, row in table:
            if row["answer"] in self.context.row["answers"]:
                turn = Turn(texts=(row["riddle"],), max_tokens=self.options.osl or 8, expected=row["answer"])
                yield Conversation(f"riddle-{number}", (turn,))
