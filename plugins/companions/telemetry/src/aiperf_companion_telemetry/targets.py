"""One target of a source, sampled in a thread of its own: at once where that is asked, and at its interval in a phase."""

from __future__ import annotations

import threading
from collections.abc import Callable
from itertools import islice

from aiperf.parts.loading import isolated
from aiperf.sdk.series import Moment
from aiperf.sdk.telemetry import MOST_POINTS, Absent, Point, Reading, TelemetryTarget
from msgspec import Struct

NS = 1_000_000_000
MIN_INTERVAL_S = 0.01


class Ask(Struct, frozen=True):
    """A sample that is wanted at once.  number: greater for later ones.  edge: None for the first sample of all."""

    number: int
    phase: int
    edge: str | None = None


class Taken(Struct, frozen=True):
    """What a target gave, or why it did not.

    asked: the number of the :class:`Ask`; 0 for one at the interval.  began_ns: monotonic, when it was asked.
    points: None where the sample failed.  absent: there is no such target, and the thread ends.
    """

    target: int
    asked: int
    began_ns: int
    moment: Moment
    points: list[Point] | None = None
    failure: str = ""
    absent: bool = False


class TargetLoop:
    """Samples *target*, number *number* of its source *who*, and hands each sample to *give*.

    clocks: reads the monotonic and the wall clock in ns.
    """

    def __init__(
        self, number: int, target: TelemetryTarget, who: object, clocks: Callable[[], tuple[int, int]],
        give: Callable[[Taken], None],
    ) -> None:  # fmt: skip
        self.number, self.interval_ns = number, round(max(MIN_INTERVAL_S, float(target.interval_s)) * NS)
        self._target, self._who, self._clocks, self._give = target, who, clocks, give
        self._changed = threading.Condition()
        self._ask: Ask | None = None
        self._phase: int | None = None
        self._due_ns = self._missed = 0
        self._over = False

    def ask(self, ask: Ask, *, runs: bool) -> None:
        """Take a sample as soon as the one at hand has ended.  *runs*: others follow at the interval, of that phase."""
        with self._changed:
            self._ask = ask
            self._phase, self._due_ns = ask.phase if runs else None, self._clocks()[0] + self.interval_ns
            self._changed.notify()

    def end(self) -> None:
        """Take no further sample."""
        with self._changed:
            self._over = True
            self._changed.notify()

    def rest_s(self) -> float | None:
        """Time until the next sample; None while none is wanted."""
        if self._ask is not None:
            return 0.0
        return None if self._phase is None else max(0.0, (self._due_ns - self._clocks()[0]) / NS)

    def work(self) -> None:
        """The thread, until :meth:`end`."""
        while True:
            with self._changed:
                while not self._over and (rest_s := self.rest_s()) != 0.0:
                    self._changed.wait(rest_s)
                if self._over:
                    return
            if not self.step():
                return

    def step(self) -> bool:
        """Take a sample if one is wanted; False once the target is absent."""
        with self._changed:
            if self.rest_s() != 0.0:
                return True
            ask, self._ask = self._ask, None
            if ask is None:
                late = (self._clocks()[0] - self._due_ns) // self.interval_ns
                self._missed += late
                self._due_ns += (late + 1) * self.interval_ns
                phase, missed = -1 if self._phase is None else self._phase, self._missed
            else:
                phase, missed = ask.phase, self._missed
            self._missed = 0
        taken = self._take(0 if ask is None else ask.number, phase, None if ask is None else ask.edge, missed)
        self._give(taken)
        if taken.points is None:
            with self._changed:
                self._missed += missed  # nothing told of them
        return not taken.absent

    def _take(self, asked: int, phase: int, edge: str | None, missed: int) -> Taken:
        began_ns, wall_ns = self._clocks()
        points: list[Point] | None = None
        failures: list[str] = []
        sent_ns: int | None = None
        first_byte_ns: int | None = None
        absent = ""
        try:
            with isolated(self._who, failures.append, passing=Absent):
                given = self._target.sample()
                if isinstance(given, Reading):
                    sent_ns, first_byte_ns = given.sent_ns, given.first_byte_ns
                    given = given.points
                points = bounded(given)
        except Absent as error:
            absent = error.message
        took_ns = self._clocks()[0] - began_ns
        offset_ns = took_ns // 2
        if first_byte_ns is not None:  # within the call, whatever the target says
            offset_ns = min(max(0, first_byte_ns - wall_ns), took_ns)
        times = began_ns + offset_ns, wall_ns + offset_ns, took_ns, phase, edge, missed, sent_ns, first_byte_ns
        why = absent or (failures[0] if failures else "")
        return Taken(self.number, asked, began_ns, Moment(*times), None if why else points, why, bool(absent))


def bounded(given: object) -> list[Point]:
    """The points of a sample.

    Raises:
        TypeError, ValueError: There is something else among them, or there are too many.
    """
    points: list[Point] = list(islice(given, MOST_POINTS + 1))  # type: ignore[call-overload]
    if len(points) > MOST_POINTS:
        raise ValueError(f"sample() gave more than {MOST_POINTS:,} points: it must end with those of the moment")
    for point in points:
        if not isinstance(point, Point):
            raise TypeError(f"it gives {type(point).__name__}, not Point")
    return points
