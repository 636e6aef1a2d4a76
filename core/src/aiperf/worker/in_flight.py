"""What a worker has under way, and the counts of its phase."""

from __future__ import annotations

from collections.abc import Callable

from aiperf.sdk.transport import Exchange
from aiperf.worker.connecting import Connecting


class InFlight:
    """The requests in flight, shared by what starts, hears and ends them.

    open: by number, in order of deadlines.  by_url: how many go to each URL; None where there is one URL.  connecting: how far
    they get to their servers.  sent, completed, errors: of the phase.  ended: the request of whose end the driver is told just
    now, -1 otherwise: what the driver sends meanwhile takes its slot.  last_answer_ns: monotonic, 0 before the first.
    """

    def __init__(self, by_url: list[int] | None, clock: Callable[[], float]) -> None:
        self.open: dict[int, Exchange] = {}
        self.by_url, self.connecting = by_url, Connecting(self.open, clock)
        self.sent = self.completed = self.errors = self.last_answer_ns = 0
        self.ended = -1

    def begin(self) -> None:
        """Count from 0."""
        self.connecting.begin()
        self.sent = self.completed = self.errors = 0

    def counters(self, now_ns: int) -> tuple[int, int, int, int, str | None, int, int, bool, float]:
        """The fields of Counters, from *sent* on."""
        connecting, reach = self.connecting, self.connecting.reach(self.completed + self.errors, now_ns)
        return self.sent, self.completed, self.errors, len(self.open), connecting.refused, *reach
