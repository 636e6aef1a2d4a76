"""Calls at instants of the monotonic clock, with one timer."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count
from time import monotonic_ns

from aiperf.sdk.driver import Timer


class Alarms:
    """*make*: makes a timer for a callback."""

    def __init__(self, make: Callable[[Callable[[], None]], Timer]) -> None:
        self._timer = make(self._ring)
        self._heap: list[tuple[int, int, Callable[[], None]]] = []
        self._order = count()
        self._closed = False

    def at(self, at_ns: int, call: Callable[[], None]) -> None:
        """Call at *at_ns*, later than this call even where that has passed; never behind :meth:`close`."""
        if self._closed:
            return
        heappush(self._heap, (at_ns, next(self._order), call))
        if self._heap[0][2] is call:
            self._timer.set(at_ns)

    def close(self) -> None:
        """Call nobody any more."""
        self._closed = True
        self._heap.clear()
        self._timer.close()

    def _ring(self) -> None:
        heap = self._heap
        while heap and heap[0][0] <= monotonic_ns():
            heappop(heap)[2]()
        if heap and not self._closed:
            self._timer.set(heap[0][0])
