"""The default transport: HTTP/1.1 on non-blocking sockets, every read of TCP stamped by the operating system's kernel."""

from __future__ import annotations

import asyncio
import weakref
from collections import deque
from functools import partial
from time import monotonic_ns

from aiperf.sdk.model import ErrorDetails
from aiperf.sdk.transport import RECONNECTED, REUSED, Exchange, Shape, Sink, TransportSettings

from aiperf_transport_sockets.connection import EVENT_MARK, Connection
from aiperf_transport_sockets.local import LocalConnection
from aiperf_transport_sockets.origins import Origin, Origins
from aiperf_transport_sockets.poller import Poller, ReaderPoller, chosen_reader
from aiperf_transport_sockets.stamping import Stamping
from aiperf_transport_sockets.tls import TlsConnection

_REPORT_NS = 200_000
"""For so long answers with a turn behind them are reported before the loop continues: the turn is encoded and sent."""
_WARM_AT_ONCE = 128
"""Connections that are opened together ahead of the load."""
_WARM_S = 2.0


class RequestHead:
    """The head of all requests of one shape, as a template."""

    shape: weakref.ref[Shape]

    def __init__(self, shape: Shape, origin: Origin) -> None:
        names = {name.lower() for name in shape.headers}
        lines = [f"{shape.method} {origin.target(shape.url)} HTTP/1.1"]
        if "host" not in names:
            lines.append(f"Host: {origin.host_header}")
        lines += [f"{name}: {value}" for name, value in shape.headers.items()]
        if "accept-encoding" not in names:
            lines.append("Accept-Encoding: identity")
        fixed = "\r\n".join(lines).replace("%", "%%")
        ids = "".join(f"\r\n{name}: %s" for name in ("X-Request-ID", *shape.session_headers))
        self._template = f"{fixed}\r\nContent-Length: %d{ids}\r\n\r\n"
        self._session_headers = len(shape.session_headers)
        self.method, self.origin = shape.method, origin

    def encode(self, exchange: Exchange) -> bytes:
        """The head of one request."""
        session_ids = (exchange.session_id,) * self._session_headers
        return (self._template % (len(exchange.body), exchange.request_id, *session_ids)).encode("latin-1")


class KernelTransport:
    """The default transport, registered as ``kernel`` under ``aiperf.transports``."""

    stamps = "kernel"
    changing_bodies = True

    def __init__(self, settings: TransportSettings, sink: Sink, loop: asyncio.AbstractEventLoop) -> None:
        self.settings, self.sink, self.loop = settings, sink, loop
        self.stamping = Stamping(wanted=settings.stamps)
        self.open_connections: set[Connection] = set()
        self.just_read: Connection | None = None
        self.stamps_missing = self.coalesced_reads = self.opened = 0
        self._origins = Origins(settings)
        self._heads: dict[int, RequestHead] = {}
        self.finished: deque[tuple[Exchange, Connection]] = deque()
        self._reporting = False
        self._by_session: dict[str, Connection] | None = {} if settings.sticky else None
        mark = EVENT_MARK if settings.event_mark is None else settings.event_mark
        # Nobody sees events in what is encrypted.
        self.reader = chosen_reader(mark=b"" if any(url.startswith("https:") for url in settings.urls) else mark)
        self.poller = Poller(loop, self.settle) if self.reader is None else ReaderPoller(loop, self.settle, self.reader)
        self._checking: asyncio.TimerHandle | None = None

    @property
    def statistics(self) -> dict[str, int]:
        pauses, paused_ns = (0, 0) if self.reader is None else self.reader.pauses
        return {
            "stamps_missing": self.stamps_missing, "coalesced_reads": self.coalesced_reads, "opened": self.opened,
            "readers": 1, "compiled_readers": int(self.reader is not None), "reader_pauses": pauses,
            "reader_paused_ns": paused_ns, "wakeups": self.poller.wakeups,
        }  # fmt: skip

    async def open(self) -> None:
        self.stamping.open()
        await self._origins.resolve(self.loop)
        self._check()

    async def warm(self, connections: int) -> None:
        if not self.settings.reuse or self.settings.sticky:
            return
        for origin in self._origins:
            if origin.error is not None:
                continue
            for _ in range(0, connections, _WARM_AT_ONCE):
                count = min(_WARM_AT_ONCE, connections - len(origin.idle))
                wanted = len(origin.idle) + count
                for _ in range(count):
                    self._new_connection(origin).connect(None, None)
                until = self.loop.time() + _WARM_S
                while len(origin.idle) < wanted and self.loop.time() < until and origin.failed < count:
                    await asyncio.sleep(0.001)
                if len(origin.idle) < wanted:
                    break

    def _new_connection(self, origin: Origin) -> Connection:
        if origin.base:
            return LocalConnection(self, origin)
        return Connection(self, origin) if origin.tls is None else TlsConnection(self, origin, origin.tls)

    async def close(self) -> None:
        if self._checking is not None:
            self._checking.cancel()
        for connection in list(self.open_connections):
            connection.close()
        self.poller.close()
        self.stamping.close()

    def _check(self) -> None:
        """Look after connections without news, about once a second."""
        now_ns, wait_s = monotonic_ns(), min(1.0, self.settings.end_s, self.settings.connect_s)
        for connection in list(self.open_connections):
            if connection.read_ns < now_ns - wait_s * 1e9:
                connection.check(now_ns)
        self.settle()
        self._checking = self.loop.call_later(wait_s, self._check)

    def settle(self) -> None:
        """Report the answers that the last reads completed.

        Behind the reads, not among them: a report is followed by a send, and a socket that waits for its read meanwhile may
        find the next chunk merged into the one it holds.  For the same reason reports of many conversations take several turns
        of the loop.
        """
        if self.finished and not self._reporting:
            self._report(fresh=True)

    def _report(self, *, fresh: bool = False) -> None:
        """Report for a while.  *fresh*: the answers have just been read."""
        finished, until_ns = self.finished, monotonic_ns() + _REPORT_NS
        while finished:
            exchange, connection = finished.popleft()
            if connection.fd >= 0:
                if self._by_session is None:
                    connection.origin.idle.append(connection)
                else:
                    self._by_session[exchange.session_id] = connection
                # Empty: the send that follows at once need not peek, which takes 1 µs.  A close that has come since, or crosses
                # the request, shows when it is written or read for its answer, and does no harm then.
                self.just_read = connection if fresh else None
            self.sink.done(exchange, None)
            self.just_read = None
            if finished and not exchange.final and monotonic_ns() > until_ns:
                self._reporting = True
                self.loop.call_soon(self._report)
                return
        self._reporting = False

    def send(self, exchange: Exchange) -> None:
        head = self._heads.get(id(exchange.shape)) or self._new_request_head(exchange.shape)
        origin = head.origin
        idle, keeps = origin.idle, origin.keeps
        if self._by_session is not None and (connection := self._by_session.pop(exchange.session_id, None)) is not None:
            idle, keeps = [connection], True
        while idle and (keeps or not idle[-1].streamed_ns or origin.rested()):
            connection = idle.pop()
            if connection is self.just_read or (connection.fd >= 0 and self.poller.is_quiet(connection.sock)):
                exchange.flags |= REUSED
                connection.begin(exchange, head)
                return
            origin.parted(connection.streamed_ns)
            connection.close()
            exchange.flags |= RECONNECTED
        self.connect(exchange, head)

    def request_headers(self, exchange: Exchange) -> list[tuple[str, str]]:
        """The headers of the request as they would be written."""
        head = RequestHead(exchange.shape, self._origins.of(exchange.shape.url)).encode(exchange)
        lines = head.decode("latin-1").split("\r\n")
        return [(name, value) for name, _, value in (line.partition(": ") for line in lines[1:-2])]

    def _new_request_head(self, shape: Shape) -> RequestHead:
        """The head of a shape not seen before; it is dropped with the shape, because a hook may give every request its own."""
        head = self._heads[id(shape)] = RequestHead(shape, self._origins.of(shape.url))
        head.shape = weakref.ref(shape, partial(self._heads.pop, id(shape)))
        return head

    def connect(self, exchange: Exchange, head: RequestHead) -> None:
        """Send on a new connection."""
        if head.origin.error is not None:
            self.loop.call_soon(self.sink.done, exchange, head.origin.error)
        else:
            self._new_connection(head.origin).connect(exchange, head)

    def abort(self, exchange: Exchange, error: ErrorDetails | None) -> None:
        connection = exchange.connection
        if isinstance(connection, Connection):
            connection.close()
        exchange.connection = None
        self.sink.done(exchange, error)

    def part(self, session_id: str) -> None:
        """Close the idle connection of a session of its own."""
        connection = None if self._by_session is None else self._by_session.pop(session_id, None)
        if connection is not None:
            connection.close()


__all__ = ["KernelTransport", "Origin"]
