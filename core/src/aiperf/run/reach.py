"""Whether the server is reached: what a run says while no connection can be opened, and when that ends it."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from aiperf.processes.control import Counters
from aiperf.sdk.plan import PhasePlan

FIRST_S = 10.0
"""Without a typed limit, a run ends that has never reached the server for so long, unless time ends it anyway."""
LATER_S = 60.0
"""The same of a run that had reached it."""
TELL_S, _AGAIN_S = 3.0, 10.0
"""Without a connection, until there is a line; then from one line to the next."""
_MOST_IN_REPORT = 5
"""Gaps that the report names, of a server that comes and goes; the log has all."""


class Reach:
    """Follows the counters of all workers, over all phases of a run.

    A gap begins with the first attempt that found no connection.  It lasts as long as attempts show: where nobody tries,
    nothing is known.  gap_s: of the gap under way, 0 for none.  why: the last attempt's reason.  ever: the server was reached.
    """

    def __init__(self) -> None:
        self.ever, self.why = False, ""
        self._since_s: float | None = None
        self._tried_s = self._told_s = 0.0
        self._reached = self._failed = self._failed_before = self._gaps = 0
        self._waiting_s = 0.0

    def begin(self) -> None:
        """A phase begins, and with it the workers count from 0; a gap goes on."""
        self._failed_before -= self._failed
        self._reached = self._failed = 0

    @property
    def gap_s(self) -> float:
        return 0.0 if self._since_s is None else self._tried_s - self._since_s

    def follow(self, counters: Collection[Counters], now_s: float) -> tuple[str, bool] | None:
        """Take note of the latest *counters*; a sentence that is due, and whether the report has it, too."""
        reached, failed = sum(each.reached for each in counters), sum(each.refusals for each in counters)
        waiting_s = max((each.waiting_s for each in counters), default=0.0)
        # A worker in the place of one that died counts from 0 again.
        more, self._failed, before, self._reached = failed - self._failed, failed, self._reached, reached
        waits, self._waiting_s = waiting_s not in (0.0, self._waiting_s), waiting_s
        on_way, why = any(each.on_way for each in counters), next((each.refused for each in counters if each.refused), None)
        said = None
        if reached > before or on_way:
            self.ever = True
            said = self._back(now_s)
            if on_way or why is None:  # else the last attempt failed, behind those that did not
                return said
        if more > 0 or waits:
            if self._since_s is None:
                self._since_s, self._told_s, self._failed_before = now_s - waiting_s, 0.0, failed - more
            self._tried_s, self.why = now_s, why or "no attempt to connect has an answer"
            return said or self._away()
        return said

    def _away(self) -> tuple[str, bool] | None:
        if self.gap_s < (self._told_s + _AGAIN_S if self._told_s else TELL_S):
            return None
        self._told_s = self.gap_s
        return f"no connection to the server for {self.gap_s:.0f} s, {self._lost()}: {self.why}", False

    def _back(self, now_s: float) -> tuple[str, bool] | None:
        since_s, self._since_s = self._since_s, None
        if since_s is None or not self._told_s:
            return None
        self._told_s = 0.0
        self._gaps += 1
        return f"the server is reached again, after {now_s - since_s:.1f} s without a connection, {self._lost()}", (
            self._gaps <= _MOST_IN_REPORT
        )

    def _lost(self) -> str:
        lost = self._failed - self._failed_before
        return f"{lost:,} {'request' if lost == 1 else 'requests'} failed meanwhile"

    def limit_s(self, typed_s: float | None, *, timed: bool) -> float | None:
        """How long a gap may last; None for ever.

        *typed_s*: the limit that was given, 0 for none at all; None where none was.  *timed*: durations end the run.
        """
        if typed_s is not None:
            return typed_s or None
        if timed:
            return None
        return LATER_S if self.ever else FIRST_S


def ends_by_time(phases: Iterable[PhasePlan]) -> bool:
    """Whether each of the *phases*, those that a run still has before it, ends with its duration.

    A warmup without a duration could wait for ever, also before a profiling phase that has one.
    """
    return all(phase.duration_ns is not None for phase in phases)
