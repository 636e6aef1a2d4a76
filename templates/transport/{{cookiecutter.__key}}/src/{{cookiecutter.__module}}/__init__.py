"""The {{ cookiecutter.name }} transport: the kernel's, behind a longer wire.

One of a protocol of its own doesn't derive from the kernel's: it has the methods of ``aiperf.Transport``.  Where exchanges
share a connection, ``abort`` ends the exchange and not the connection.  Where it can send several messages in a request
(``Shape.parts``) its class says ``sends_parts = True``.  Options that its manifest declares come as ``settings.options``.
"""

from __future__ import annotations

from asyncio import AbstractEventLoop, TimerHandle

from aiperf import ErrorDetails, Exchange, Sink, TransportSettings
from aiperf_transport_sockets import KernelTransport

WIRE_S = 0.02


class {{ cookiecutter.__class }}(KernelTransport):
    """Holds every request back for WIRE_S.  Nothing is stamped here: the request's start is the engine's, and what it waits is
    in its latency, as the wire's would be."""

    def __init__(self, settings: TransportSettings, sink: Sink, loop: AbstractEventLoop) -> None:
        super().__init__(settings, sink, loop)
        self._held: dict[int, TimerHandle] = {}

    def send(self, exchange: Exchange) -> None:
        self._held[exchange.request] = self.loop.call_later(WIRE_S, self._sent, exchange)

    def _sent(self, exchange: Exchange) -> None:
        del self._held[exchange.request]
        super().send(exchange)

    def abort(self, exchange: Exchange, error: ErrorDetails | None) -> None:
        held = self._held.pop(exchange.request, None)
        if held is None:
            super().abort(exchange, error)
        else:
            held.cancel()
            self.sink.done(exchange, error)

    async def close(self) -> None:
        for held in self._held.values():
            held.cancel()
        self._held.clear()
        await super().close()
