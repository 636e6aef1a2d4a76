"""Riddles, told again and again in the order of a seed."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

from aiperf import Conversation, Dataset, Turn
from aiperf.sdk.rowfile import tables


class Riddles(Dataset):
    def __iter__(self) -> Iterator[Conversation]:
        riddles = [row for _, row in tables(Path(__file__).with_name("riddles.csv"), columns=("riddle", "answer"))]
        for number in range(self.context.entries):
            told = random.Random(f"{self.context.seed}:{number}").choice(riddles)
            yield Conversation(f"riddle-{number}", (Turn(texts=(told["riddle"],), max_tokens=8, expected=told["answer"]),))
