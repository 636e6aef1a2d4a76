"""What is known of turns from which streams fork off, until each of these has begun."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Generic, TypeVar

from aiperf.rundir.store import Store
from aiperf.sdk.trees import Stream, fork_of

ValueT = TypeVar("ValueT")
_MOST_TREES = 1024
"""Trees whose forks are kept: each request asks."""


def forks_of(streams: Sequence[Stream]) -> dict[int, int]:
    """By the first turn of each stream that forks off, the place of the turn from which it goes on."""
    known = ((stream.first, fork_of(streams, number)) for number, stream in enumerate(streams) if stream.turns)
    return {first: place for first, place in known if place is not None}


class ForkedTurns(Generic[ValueT]):
    """Keeps a value of each such turn; the requests of a tree come in the order of their ends."""

    def __init__(self) -> None:
        self._kept: dict[tuple[int, int, int], tuple[int, ValueT, int]] = {}  # by phase, session, place: request, value, left
        self._forks: dict[int, tuple[dict[int, int], Counter[int]]] = {}

    def keep(self, store: Store, phase: int, session: int, entry: int, turn: int, request: int, value: ValueT) -> None:
        """Keep the value of a request, if streams fork off behind its turn."""
        if store.trees and (children := self._of(store, entry)[1][turn]):
            self._kept[phase, session, turn] = request, value, children

    def take(self, store: Store, phase: int, session: int, entry: int, turn: int) -> tuple[int, ValueT] | None:
        """Request and value of the turn from which the stream goes on that begins with *turn*; None for other turns."""
        if not store.trees or (place := self._of(store, entry)[0].get(turn)) is None:
            return None
        found = self._kept.pop((phase, session, place), None)
        if found is None:
            return None
        request, value, left = found
        if left > 1:
            self._kept[phase, session, place] = request, value, left - 1
        return request, value

    def _of(self, store: Store, entry: int) -> tuple[dict[int, int], Counter[int]]:
        """The forks of a tree, and how many there are from each turn."""
        if entry not in self._forks:
            if len(self._forks) >= _MOST_TREES:
                self._forks.clear()
            forks = forks_of(store.streams(entry))
            self._forks[entry] = forks, Counter(forks.values())
        return self._forks[entry]
