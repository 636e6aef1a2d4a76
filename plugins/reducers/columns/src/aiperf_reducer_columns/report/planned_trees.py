"""What the entries of the run's data set plan, for analyses of trees."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

from aiperf.parts.journal import Store
from aiperf.sdk.trees import PlannedTree, Stream


class PlannedTrees:
    """*journal*: the directory with the data set, which is opened when it is first asked for."""

    def __init__(self, journal: Path) -> None:
        self._journal = journal

    @cached_property
    def _store(self) -> Store:
        return Store(self._journal)

    def of(self, entry: int) -> PlannedTree:
        """The streams of an entry, and its think times; no streams for an entry that isn't there."""
        streams = self.streams(entry)
        turns = streams[-1].end if streams else 0
        return PlannedTree(streams, tuple(self._store.delay_ns(entry, turn) for turn in range(turns)))

    def streams(self, entry: int) -> tuple[Stream, ...]:
        """The streams of an entry, one for a conversation that starts no others; none for an entry that isn't there."""
        store = self._store
        if not store.known(entry):
            return ()
        return store.streams(entry) or (Stream(store.id(entry), 0, store.turns(entry)),)
