"""A conversation that starts three others, and goes on when all have ended."""

from __future__ import annotations

from collections.abc import Iterator

from aiperf import Conversation, Dataset, Turn
from aiperf.sdk.trees import Branch, TreeBuilder

_PARTS = ("the front", "the middle", "the end")


class Clan(Dataset):
    def __iter__(self) -> Iterator[Conversation]:
        for number in range(self.context.entries):
            tree = TreeBuilder()
            name = f"clan-{number}"
            root = tree.stream(name, 2)
            tree.branch(root, Branch(tuple(tree.stream(f"{name}::{part}", 1) for part in _PARTS), after=0, joins=1))
            own = (Turn(("divide the work",), max_tokens=4), Turn(("put it together",), max_tokens=4))
            parts = tuple(Turn((f"write {part}",), max_tokens=4) for part in _PARTS)
            yield Conversation(name, (*own, *parts), streams=tree.streams())
