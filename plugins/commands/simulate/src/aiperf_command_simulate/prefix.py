"""The prefix cache: which blocks of a prompt an engine has computed before."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

BYTES_PER_TOKEN = 4
"""A prompt token is taken to be four bytes of UTF-8: cheap, and near enough for a cost model."""


def token_count(prompt: bytes) -> int:
    """Tokens of a prompt: a quarter of its bytes, rounded up, at least one."""
    return max(1, -(-len(prompt) // BYTES_PER_TOKEN))


def block_keys(prompt: bytes, block_size: int, *, known: tuple[int, ...] = ()) -> tuple[int, ...]:
    """One key per full block of *block_size* tokens; a key stands for the block and everything before it.

    *known*: the keys of a beginning of *prompt*, which are not computed again.
    """
    width = block_size * BYTES_PER_TOKEN
    keys = list(known)
    key = known[-1] if known else 0
    for end in range((len(known) + 1) * width, len(prompt) + 1, width):
        key = hash((key, prompt[end - width : end]))
        keys.append(key)
    return tuple(keys)


class PrefixCache:
    """The blocks used last, at most *capacity* of them; 0 keeps none.  evicted: blocks that left for others."""

    def __init__(self, capacity: int) -> None:
        self.capacity, self.evicted = capacity, 0
        self._blocks: OrderedDict[int, None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._blocks)

    def hits(self, keys: Sequence[int]) -> int:
        """The number of leading blocks in the cache; they count as used now."""
        hits = 0
        for key in keys:
            if key not in self._blocks:
                break
            hits += 1
        self._touch(keys[:hits])
        return hits

    def add(self, keys: Sequence[int]) -> None:
        """These blocks have been computed."""
        if not self.capacity:
            return
        self._touch(keys)
        while len(self._blocks) > self.capacity:
            self._blocks.popitem(last=False)
            self.evicted += 1

    def clear(self) -> None:
        """Forget every block."""
        self._blocks.clear()

    def _touch(self, keys: Sequence[int]) -> None:
        # From the tail, so that a prefix never leaves before what continues it.
        for key in reversed(keys):
            self._blocks[key] = None
            self._blocks.move_to_end(key)
