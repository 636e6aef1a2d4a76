"""Riddles, told again and again in the order of a seed."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

from aiperf import Conversation, Dataset, Turn
from aiperf.sdk.rowfile import tables


class Riddles(Dataset):
    def riddles(self) -> Iterator[dict[str, str]]:
        return (row for _, row in tables(Path(__file__).with_name("riddles.csv"), columns=("riddle", "answer")))

    def __iter__(self) -> Iterator[Conversation]:
        riddles = list(self.riddles())
        for number in range(self.context.entries):
            told = random.Random(f"{self.context.seed}:{number}").choice(riddles)
            yield Conversation(f"riddle-{number}", (Turn(texts=(told["riddle"],), max_tokens=8, expected=told["answer"]),))


class Collections(Riddles):
    """Chosen by name: the manifest has a row of data for each."""

    def riddles(self) -> Iterator[dict[str, str]]:
        return (riddle for riddle in super().riddles() if riddle["answer"] in self.context.row["answers"])
