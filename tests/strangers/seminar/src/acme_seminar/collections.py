"""Riddles on one subject: the manifest has a row of data for each name."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

from aiperf import Conversation, Dataset, Turn
from aiperf.sdk.rowfile import tables


class Collections(Dataset):
    def __iter__(self) -> Iterator[Conversation]:
        table = tables(Path(__file__).with_name("riddles.csv"), columns=("riddle", "answer"))
        riddles = [row for _, row in table if row["answer"] in self.context.row["answers"]]
        for number in range(self.context.entries):
            told = random.Random(f"{self.context.seed}:{number}").choice(riddles)
            yield Conversation(f"riddle-{number}", (Turn(texts=(told["riddle"],), max_tokens=8, expected=told["answer"]),))
