"""The wait between two runs of a study for the servers' queue."""

from __future__ import annotations

from collections.abc import Callable

from aiperf.run.fleet import CROWDED_S, QUEUE_S, Fleet, Settled


class ServersQueue:
    """How long a run waits for it: a minute, and seconds once it did not get empty, as others use the servers then."""

    def __init__(self) -> None:
        self._crowded = False

    def settle(self, fleet: Fleet, cooldown_s: float, pause: Callable[[float], bool]) -> Settled:
        """Wait as :meth:`Fleet.settle` does."""
        settled = fleet.settle(cooldown_s, pause, CROWDED_S if self._crowded else QUEUE_S)
        self._crowded = self._crowded or bool(settled.queued)
        return settled


__all__ = ["ServersQueue"]
