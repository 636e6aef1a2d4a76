"""HTTP/2 and gRPC on non-blocking sockets: many streams on a connection, every read stamped by the operating system."""

from __future__ import annotations

import asyncio
import weakref
from collections import deque
from functools import partial
from time import monotonic_ns

from aiperf.sdk.model import ErrorDetails
from aiperf.sdk.transport import RECONNECTED, Exchange, Shape, Sink, TransportSettings
from aiperf_http2.grpc import MOST_MESSAGE_BYTES
from aiperf_transport_sockets.origins import Origin, Origins
from aiperf_transport_sockets.poller import Poller, ReaderPoller, chosen_reader
from aiperf_transport_sockets.stamping import Stamping

from aiperf_transport_http2.calls import Call
from aiperf_transport_http2.link import Link
from aiperf_transport_http2.options import STREAMS, Http2Options
from aiperf_transport_http2.requests import Http2Head

_REPORT_NS = 200_000
"""For so long answers are reported before what follows them is written, and the loop continues."""
_WARM_AT_ONCE = 128
"""Connections that are opened together ahead of the load."""
_WARM_S = 2.0


class Http2Transport:
    """HTTP/2 with prior knowledge, or as ALPN agrees; registered as ``http2`` under ``aiperf.transports``.

    A request is a gRPC call where its content type is ``application/grpc``: body and answer are messages, which are framed
    here, and the status is read in the trailers.

    most_streams: on a connection, as the option says.  limits: the servers'.  links: open connections.  finished: exchanges
    that are over and not yet reported.
    """

    # More than 20 attributes: the settings, counters and connections of one transport.

    stamps = "kernel"
    sends_parts = True

    def __init__(self, settings: TransportSettings, sink: Sink, loop: asyncio.AbstractEventLoop) -> None:
        self.settings, self.sink, self.loop = settings, sink, loop
        options = settings.options
        self.most_streams: int = options.streams_per_connection if isinstance(options, Http2Options) else STREAMS
        if not settings.reuse:
            self.most_streams = 1
        self.limits: dict[Origin, int] = {}
        self.lends = settings.sticky or not settings.reuse  # connections belong to a session, or to a request
        self.most_message_bytes = min(MOST_MESSAGE_BYTES, settings.most_bytes)
        self.stamping = Stamping(wanted=settings.stamps)
        self.links: set[Link] = set()
        self.finished: deque[tuple[Exchange, ErrorDetails | None]] = deque()
        self.stamps_missing = self.coalesced_reads = self.opened = self.stalled_ns = 0
        self._stalls = 0
        self._room: dict[Origin, dict[Link, None]] = {}
        self._first: dict[Origin, Link] = {}  # the one that was used last
        self._origins = Origins(settings)
        self._heads: dict[int, Http2Head] = {}
        self._by_session: dict[str, Link] | None = {} if settings.sticky else None
        self._reporting = self._soon = False
        self._unwritten: dict[Link, None] = {}
        self.reader = chosen_reader(shared=self.most_streams > 1)
        self.poller = Poller(loop, self.settle) if self.reader is None else ReaderPoller(loop, self.settle, self.reader)
        self._checking: asyncio.TimerHandle | None = None

    @property
    def streams_in_force(self) -> int:
        """Requests at once on a connection: the option's, or the lowest limit of a server."""
        return min([self.most_streams, *self.limits.values()])

    @property
    def statistics(self) -> dict[str, int]:
        pauses, paused_ns = (0, 0) if self.reader is None else self.reader.pauses
        stalls = self._stalls + sum(link.http.outbox.stalls for link in self.links)
        return {
            "stamps_missing": self.stamps_missing, "coalesced_reads": self.coalesced_reads, "opened": self.opened,
            "readers": 1, "compiled_readers": int(self.reader is not None), "reader_pauses": pauses,
            "reader_paused_ns": paused_ns, "multiplexers": 1, "streams_per_connection": self.streams_in_force,
            "window_stalls": stalls, "window_stalled_ns": self.stalled_ns,
        }  # fmt: skip

    # Opening and closing

    async def open(self) -> None:
        self.stamping.open()
        await self._origins.resolve(self.loop, ("h2",))
        self._check()

    async def warm(self, connections: int) -> None:
        """Open so many connections that *connections* requests have room on them."""
        if not self.settings.reuse or self.settings.sticky:
            return
        for origin in self._origins:
            until = self.loop.time() + _WARM_S
            while origin.error is None and not origin.failed and self.loop.time() < until:
                links = [link for link in self.links if link.origin is origin]
                missing = connections - sum(max(0, link.room) for link in links)
                if missing > 0:
                    for _ in range(min(_WARM_AT_ONCE, -(-missing // max(1, self.streams_in_force)))):
                        self._new_link(origin)
                elif all(link.ready for link in links):
                    break
                await asyncio.sleep(0.001)

    async def close(self) -> None:
        if self._checking is not None:
            self._checking.cancel()
        for link in list(self.links):
            link.close()
        self.poller.close()
        self.stamping.close()

    def _check(self) -> None:
        """Look after connections without news, about once a second."""
        now_ns, wait_s = monotonic_ns(), min(1.0, self.settings.end_s, self.settings.connect_s)
        for link in list(self.links):
            link.check(now_ns)
        self.settle()
        self._checking = self.loop.call_later(wait_s, self._check)

    # Sending

    def send(self, exchange: Exchange) -> None:
        head = self._heads.get(id(exchange.shape)) or self._new_head(exchange.shape)
        error = head.origin.error or (ErrorDetails(head.fault, type="InvalidMetadata") if head.fault else None)
        if error is not None:
            self.finished.append((exchange, error))
            self.settle_soon()
            return
        self.place(Call(exchange, head))

    def place(self, call: Call) -> None:
        """Have a connection carry a call: one with room, or a new one."""
        origin, link = call.head.origin, None
        if self._by_session is not None:
            link = self._by_session.pop(call.exchange.session_id, None)
            if link is not None and link.room <= 0:  # closed since, or going away
                call.exchange.flags |= RECONNECTED
                link = None
        elif self.settings.reuse:
            link = self._first.get(origin)
            if link is None or link.full:
                link = self._first[origin] = next(iter(self._room.get(origin, ())), None) or self._new_link(origin)
        link = link or self._new_link(origin)
        link.take(call)
        if len(link.http.streams) + len(link.waiting) >= link.most:
            self.is_full(link)
        if self._reporting:
            self._unwritten[link] = None
        else:
            link.flush()

    def _new_link(self, origin: Origin) -> Link:
        link = Link(self, origin)
        self.links.add(link)
        self.has_room(link)
        link.wire.dial()
        return link

    def request_headers(self, exchange: Exchange) -> list[tuple[str, str]]:
        """The headers of the request as they would be written, pseudo fields first."""
        head = Http2Head(exchange.shape, self._origins.of(exchange.shape.url))
        return [*head.fields.fields, *head.varying(exchange)]

    def _new_head(self, shape: Shape) -> Http2Head:
        """The head of a shape not seen before; it is dropped with the shape, because a hook may give every request its own."""
        head = self._heads[id(shape)] = Http2Head(shape, self._origins.of(shape.url))
        head.shape = weakref.ref(shape, partial(self._heads.pop, id(shape)))
        return head

    # Ending

    def abort(self, exchange: Exchange, error: ErrorDetails | None) -> None:
        call = exchange.connection
        if isinstance(call, Call) and call.link is not None:
            link = call.link
            link.drop(call)
            link.flush()
        elif call is None:  # its end waits to be told
            left = [each for each in self.finished if each[0] is not exchange]
            self.finished.clear()
            self.finished.extend(left)
        exchange.connection = None
        self.sink.done(exchange, error)

    def part(self, session_id: str) -> None:
        """Close the idle connection of a session of its own."""
        link = None if self._by_session is None else self._by_session.pop(session_id, None)
        if link is not None:
            link.close()

    def settle(self) -> None:
        """Report the answers that the last reads completed.

        Behind the reads, not among them: a report is followed by a send, and a socket that waits for its read meanwhile may
        find the next chunk merged into the one it holds.  What follows the reports is written together.
        """
        self._soon = False
        if not self.finished or self._reporting:
            return
        finished, until_ns = self.finished, monotonic_ns() + _REPORT_NS
        self._reporting = True
        try:
            while finished:
                exchange, error = finished.popleft()
                self.sink.done(exchange, error)
                if monotonic_ns() > until_ns:
                    self.settle_soon()
                    break
        finally:
            self._reporting = False
            unwritten, self._unwritten = self._unwritten, {}
            for link in unwritten:
                link.flush()

    def settle_soon(self) -> None:
        """Report what has ended outside of reads."""
        if not self._soon:
            self._soon = True
            self.loop.call_soon(self.settle)

    # For links

    def has_room(self, link: Link) -> None:
        """A link may carry more, or fewer than it did."""
        if self._by_session is None and self.settings.reuse and link.room > 0:
            self._room.setdefault(link.origin, {})[link] = None
            link.full = False
        else:
            self.is_full(link)

    def is_full(self, link: Link) -> None:
        """A link carries no more for now."""
        link.full = True
        self._room.get(link.origin, {}).pop(link, None)

    def released(self, link: Link, exchange: Exchange, *, failed: bool) -> None:
        """A call on a link is over."""
        if self._by_session is not None and not (failed or exchange.final or link.closed):
            self._by_session[exchange.session_id] = link
        elif self._by_session is not None or not self.settings.reuse:
            link.retired = True

    def forget(self, link: Link) -> None:
        """A link is closed."""
        self.links.discard(link)
        self.is_full(link)
        self._unwritten.pop(link, None)
        self._stalls += link.http.outbox.stalls


__all__ = ["Http2Options", "Http2Transport"]
