"""The {{ cookiecutter.name }} data set: sums to work out, each a function of the seed and its number."""

from __future__ import annotations

import random
from collections.abc import Iterator

from aiperf import Conversation, Dataset, Turn

_LARGEST = 1000
"""The largest number that is asked for."""


class {{ cookiecutter.__class }}(Dataset):
    """As many conversations as the run asks for; the second turn checks the first."""

    def __iter__(self) -> Iterator[Conversation]:
        for number in range(self.context.entries):
            yield self.entry(number)

    def entry(self, number: int) -> Conversation:
        """Conversation *number*, from 0.  Of endpoints without a history only the first turn is asked.

        ``settings`` yield to what the user gives with ``--extra-inputs``, ``extra`` does not.  A turn may also have media,
        tools, verbatim messages (``items``) or a whole body (``payload``); see ``aiperf.Turn``.
        """
        draw = random.Random(f"{self.context.seed}:{number}")
        left, right = draw.randint(2, _LARGEST), draw.randint(2, _LARGEST)
        question, settings = f"What is {left} + {right}?", {"temperature": 0.0}
        turns = [Turn(texts=(question,), max_tokens=32, expected=str(left + right), settings=settings)]
        if self.context.capabilities.multi_turn:
            turns.append(Turn(texts=("Are you sure?",), max_tokens=64))
        return Conversation(f"{{ cookiecutter.__key }}-{number}", tuple(turns))
