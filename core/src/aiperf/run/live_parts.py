"""What reducers tell the first one for the live figures of a run, kept for one in its place, which has none of it."""

from __future__ import annotations

from collections.abc import Collection


class LiveParts:
    """The latest part of each reducer, and of those whose sites were lost, whose counts stay."""

    def __init__(self) -> None:
        self._latest: dict[int, bytes] = {}
        self._lost: list[bytes] = []

    def take(self, reducer: int, part: bytes) -> None:
        self._latest[reducer] = part

    def lose(self, reducers: Collection[int]) -> None:
        """These are gone with their site; others begin in their places."""
        self._lost += [self._latest.pop(reducer) for reducer in sorted(reducers) if reducer in self._latest]

    def all(self) -> list[bytes]:
        """What a first reducer is to take that has just begun."""
        return [*self._lost, *self._latest.values()]
