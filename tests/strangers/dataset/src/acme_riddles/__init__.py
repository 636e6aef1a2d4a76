"""Riddles, told again and again in the order of a seed."""

from __future__ import annotations

import random
from collections.abc import Iterator

from aiperf import Conversation, Dataset, Turn

_RIDDLES = (("What has keys and opens no door?", "piano"), ("What gets wetter the more it dries?", "towel"))


class Riddles(Dataset):
    def __iter__(self) -> Iterator[Conversation]:
        for number in range(self.context.entries):
            riddle, answer = random.Random(f"{self.context.seed}:{number}").choice(_RIDDLES)
            yield Conversation(f"riddle-{number}", (Turn(texts=(riddle,), max_tokens=8, expected=answer),))
