"""A benchmark of two riddles, each asked twice, with settings that yield to the user's."""

from __future__ import annotations

from collections.abc import Iterator

from aiperf import Conversation, Dataset, Turn

RIDDLES = (("What has keys and opens no door?", "piano"), ("What gets wetter the more it dries?", "towel"))
REPEATS = 2


class Quiz(Dataset):
    def __iter__(self) -> Iterator[Conversation]:
        for number in range(min(self.context.entries, REPEATS * len(RIDDLES))):
            repeat, place = divmod(number, len(RIDDLES))
            riddle, answer = RIDDLES[place]
            settings = {"temperature": 0.0, "stop": ["\n"], "seed": 7}
            turn = Turn(texts=(riddle,), max_tokens=8, expected=answer, task=answer, settings=settings, repeat=repeat)
            yield Conversation(f"riddle-{place}", (turn,))
