"""Samples at an edge of a phase: one at its begin; at its end two, the later one with what the server counted meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from aiperf_companion_telemetry.messages import END, Edge
from aiperf_companion_telemetry.targets import NS, Ask, TargetLoop

AGAIN_NS, SOON_NS = NS // 10, NS // 100
"""Time between two samples that are to agree, and where the first one is known to have all."""
_PATIENCE_NS = {False: 80_000_000, True: 180_000_000}
"""How long targets are waited for at a begin and at an end; the run waits a little longer."""


class Edges:
    """Asks targets for their samples at edges, one edge at a time.

    flush_ns: longest time behind the last phase until two samples of a target agree.  number: of the latest sample that was
    asked for in a plan before.
    """

    def __init__(self, clock: Callable[[], int], flush_ns: int, number: int = 0) -> None:
        self._clock, self._flush_ns = clock, flush_ns
        self._first = self._until_ns = 0
        self.number = number
        self._edge: Edge | None = None
        self._waiting: set[int] = set()
        self._again_ns: dict[int, int] = {}
        self._samples: dict[int, int] = {}
        self._asked: dict[int, tuple[int, int]] = {}
        """By target that owes a sample: the number of the last that was asked for, and since when it owes one."""
        self._late: set[int] = set()
        """Targets that did not answer in time, and are not waited for until they answer."""

    def first(self, loops: Iterable[TargetLoop], phase: int, *, runs: bool) -> None:
        """Ask for the first samples of all."""
        self._ask(loops, Ask(self.next(), phase), runs=runs)

    def reach(self, edge: Edge, loops: list[TargetLoop]) -> None:
        self._edge, self._first, self._samples = edge, self.next(), {}
        self._again_ns.clear()
        self._until_ns = self._clock() + max(_PATIENCE_NS[edge.edge == END], self._flush_ns if edge.last else 0)
        self._waiting = {loop.number for loop in loops} - self._late
        self._ask(loops, Ask(self._first, edge.phase, edge.edge), runs=edge.edge != END)

    def answered(
        self, target: int, asked: int, began_ns: int, *, agrees: bool, counts: bool, counted: bool = False
    ) -> None:  # fmt: skip
        """A target gave a sample, or failed to.  counts: it has counters of requests; agrees: they are those of the sample
        before; counted: they have all requests of the phase, and the sample that is to agree may come soon."""
        if asked:
            self._late.discard(target)
            last, _ = self._asked.pop(target, (asked, 0))
            if last > asked:
                self._asked[target] = last, self._clock()
        edge = self._edge
        if edge is None or asked < self._first:
            return
        samples = self._samples[target] = self._samples.get(target, 0) + 1
        if edge.edge == END and counts and (samples == 1 or (edge.last and not agrees)):
            self._again_ns[target] = began_ns + (SOON_NS if counted else AGAIN_NS)
        else:
            self._waiting.discard(target)

    def gone(self, target: int) -> None:
        """There is no such target."""
        self._waiting.discard(target)
        self._again_ns.pop(target, None)

    def rest_s(self) -> float | None:
        """Time until :meth:`passed` is to be called; None while no edge is waited for."""
        if self._edge is None:
            return None
        if not self._waiting:
            return 0.0
        return max(0.0, (min([self._until_ns, *self._again_ns.values()]) - self._clock()) / NS)

    def passed(self, loops: Iterable[TargetLoop], *, now: bool = False) -> Edge | None:
        """Ask again where that is due; the edge once all have answered or it is too late.  now: the next edge is here."""
        edge, at_ns = self._edge, self._clock()
        if edge is None:
            return None
        if not now and self._waiting and at_ns < self._until_ns:
            due = {target for target, again_ns in self._again_ns.items() if again_ns <= at_ns}
            for target in due:
                del self._again_ns[target]
            if due:
                again = Ask(self.next(), edge.phase, edge.edge)
                self._ask((loop for loop in loops if loop.number in due), again, runs=False)
            return None
        self._late |= {target for target in self._waiting if self._owes_ns(target, at_ns) >= _PATIENCE_NS[False]}
        self._edge = None
        return edge

    def next(self) -> int:
        """The number of the next sample that is asked for."""
        self.number += 1
        return self.number

    def _owes_ns(self, target: int, at_ns: int) -> int:
        """How long the target has given none of the samples of the edge; a short phase is no time to be late."""
        return 0 if target in self._samples or target not in self._asked else at_ns - self._asked[target][1]

    def _ask(self, loops: Iterable[TargetLoop], ask: Ask, *, runs: bool) -> None:
        for loop in loops:
            _, since_ns = self._asked.get(loop.number, (0, self._clock()))
            self._asked[loop.number] = ask.number, since_ns
            loop.ask(ask, runs=runs)
