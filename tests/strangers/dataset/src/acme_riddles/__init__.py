"""Riddles, told again and again in the order of a seed."""

from __future__ import annotations

import random
from collections.abc import Iterator

from aiperf import Conversation, Dataset, Turn

_RIDDLES = ("What has keys and opens no door?", "What gets wetter the more it dries?", "What has a neck and no head?")


class Riddles(Dataset):
    def __iter__(self) -> Iterator[Conversation]:
        for number in range(self.context.entries):
            riddle = random.Random(f"{self.context.seed}:{number}").choice(_RIDDLES)
            yield Conversation(f"riddle-{number}", (Turn(texts=(riddle,), max_tokens=8),))
