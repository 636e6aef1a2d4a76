"""Answers whose bytes nobody keeps: counted and stamped (``HttpRequest.drain``)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from aiperf.rundir.journal import DRAINED
from aiperf.sdk.driver import Driver
from aiperf.sdk.exchanges import DRAINED_START
from aiperf.sdk.model import ErrorDetails
from aiperf.sdk.plan import PhasePlan
from aiperf.sdk.transport import Exchange
from aiperf.worker.request_sink import RequestSink


class Drain:
    """Where the bytes of one answer go.  bytes: received.  kernel_ns, read_ns: stamps of the last read.

    behind: whether there were reads that gave nothing to keep.
    """

    __slots__ = ("behind", "bytes", "kernel_ns", "read_ns")

    def __init__(self) -> None:
        self.bytes = self.kernel_ns = self.read_ns = 0
        self.behind = False

    def take(self, body: bytes, kernel_ns: int, read_ns: int) -> bytes:
        """What is to be kept of a read: bytes of the answer's start, or none."""
        room = DRAINED_START - self.bytes
        self.bytes += len(body)
        self.kernel_ns, self.read_ns = kernel_ns, read_ns
        self.behind = room <= 0
        return body[:room] if room > 0 else b""


class DrainingSink(RequestSink):
    """The sink of endpoints that define ``drained``; requests that take several exchanges have drains of their own."""

    _drains: dict[int, Drain]

    def begin(self, phase: PhasePlan, driver: Driver[Any], on_idle: Callable[[], None]) -> None:
        self._drains = {}
        super().begin(phase, driver, on_idle)

    def chunk(self, exchange: Exchange, body: bytes, kernel_ns: int, read_ns: int, hidden: int) -> None:
        if not exchange.shape.drains(exchange.status):
            super().chunk(exchange, body, kernel_ns, read_ns, hidden)
            return
        drain = self._drains.get(exchange.request)
        if drain is None:
            drain = self._drains[exchange.request] = Drain()
            self._logbook.text(exchange.request, DRAINED, None)  # where nothing tells the end
        if kept := drain.take(body, kernel_ns, read_ns):
            super().chunk(exchange, kept, kernel_ns, read_ns, 0)

    def done(self, exchange: Exchange, error: ErrorDetails | None) -> None:
        drain = self._drains.pop(exchange.request, None)
        if drain is not None:
            if drain.behind:
                super().chunk(exchange, b"", drain.kernel_ns, drain.read_ns, 0)
            self._logbook.text(exchange.request, DRAINED, drain.bytes)
        super().done(exchange, error)
