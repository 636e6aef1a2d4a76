"""Requests that servers have in work or waiting, by the samples of their targets; asked between two plans."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from aiperf.parts.loading import isolated, load
from aiperf.sdk.descriptor import PluginRef
from aiperf.sdk.telemetry import Point

from aiperf_companion_telemetry.messages import Queue
from aiperf_companion_telemetry.targets import Ask, Taken, TargetLoop


class Queued:
    """The latest points of each target, and a question that waits for new ones."""

    def __init__(self, reply: Callable[[Queue], None]) -> None:
        self._reply = reply
        self._points: dict[int, Sequence[Point]] = {}
        self._waiting: dict[int, int] = {}
        """Targets that are asked, and the number of the sample."""

    def note(self, taken: Taken, tables: Iterable[PluginRef]) -> None:
        """A target gave a sample, or failed to."""
        if taken.points is None:
            self._points.pop(taken.target, None)
        else:
            self._points[taken.target] = taken.points
        if self._waiting.get(taken.target, taken.asked + 1) <= taken.asked:
            del self._waiting[taken.target]
            if not self._waiting:
                self._answer(tables)

    def ask(self, tables: Iterable[PluginRef], loops: Sequence[TargetLoop], number: int | None) -> None:
        """Answer by the latest samples, or with *number* by new ones."""
        if number is None or not loops:
            self._answer(tables)
            return
        self._waiting = {loop.number: number for loop in loops}
        for loop in loops:
            loop.ask(Ask(number, -1), runs=False)

    def _answer(self, tables: Iterable[PluginRef]) -> None:
        points = [point for each in self._points.values() for point in each]
        known: list[float] = []
        for ref in tables:
            with isolated(ref, lambda sentence: None):
                if (queued := load(ref).queued(points)) is not None:
                    known.append(float(queued))
        self._reply(Queue(max(known, default=None)))
