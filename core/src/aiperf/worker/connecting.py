"""How far a worker's requests get towards their servers: failed connections, and the pauses behind them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from aiperf.sdk.model import ErrorDetails
from aiperf.sdk.transport import EXHAUSTED, NO_TLS, REFUSED, Exchange
from aiperf.worker.clock import NS_PER_S

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.01, 1.0


class Connecting:
    """Counts requests that found no connection, and says how long a slot waits behind one.

    in_flight: requests by number.  clock: seconds, of the loop.  pauses: by URL, the pause and its end on that clock; empty
    while connections can be opened.
    """

    def __init__(self, in_flight: Mapping[int, Exchange], clock: Callable[[], float]) -> None:
        self._in_flight, self._clock = in_flight, clock
        self._why: str | None = None
        self._failed = self._refusals = 0
        self.pauses: dict[int, tuple[float, float]] = {}

    def begin(self) -> None:
        """Count from 0."""
        self._failed = self._refusals = 0

    @property
    def refused(self) -> str | None:
        """Why the latest connection could not be opened; None once one could, and while a request is on its way."""
        if self._on_way:
            return None
        oldest = next(iter(self._in_flight.values()), None)
        # A server that takes the connection and is silent is not one that can't be reached: most often it speaks plain http.
        shaking = oldest is not None and oldest.connect_ns > 0 and not oldest.connected_ns
        return f"{NO_TLS}: the server may speak plain http" if shaking else self._why

    @property
    def _on_way(self) -> bool:
        return any(exchange.sent_ns for exchange in self._in_flight.values())

    def reach(self, ended: int, now_ns: int) -> tuple[int, int, bool, float]:
        """The fields of Counters on connections: refusals, reached, on_way, waiting_s.  *ended*: requests of the phase."""
        on_way, oldest = self._on_way, next(iter(self._in_flight.values()), None)
        waiting_s = 0.0 if on_way or oldest is None else (now_ns - oldest.started_ns) / NS_PER_S
        return self._refusals, ended - self._failed, on_way, waiting_s

    def pause_s(self, url: int, error: ErrorDetails) -> float:
        """How long a slot waits that found no connection to *url*: twice as long with every wave of attempts, at most 1 s.

        0 where the error is another one.
        """
        if error.cause not in (REFUSED, EXHAUSTED):
            return 0.0
        now, (pause_s, until) = self._clock(), self.pauses.get(url, (_FIRST_PAUSE_S / 2, 0.0))
        if now >= until:
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
            until = now + pause_s
            self.pauses[url] = pause_s, until
        self._failed += 1
        self._refusals += error.cause == REFUSED
        self._why = error.message if error.cause == REFUSED else None
        return until - now

    def opened(self, url: int) -> None:
        """A request to *url* had an answer."""
        self.pauses.pop(url, None)
        self._why = None
