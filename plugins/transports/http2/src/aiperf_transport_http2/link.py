"""One connection of HTTP/2 and the calls on it.

Quirks of real servers that this file answers for:

- A server's limit of streams comes with its settings, also later, and may be lower than ours: calls beyond it go elsewhere.
- GOAWAY names the last stream that the server looks at; calls above it, and those it refuses (REFUSED_STREAM), are sent once
  more, because it has promised not to have read them.  The others end here.
- A server may close the connection while a request is on its way: it is sent once more if nothing of it was written, or if the
  FIN has come and acknowledged nothing of it.
- An answer may be whole before its request is: the rest of the request is dropped.
- An event stream may stay open behind its end marker.
"""

from __future__ import annotations

from collections import deque
from time import monotonic_ns
from typing import TYPE_CHECKING

from aiperf.sdk.model import ErrorDetails
from aiperf.sdk.transport import END_MARKER, LAST_HIDDEN, REFUSED, RESENT, REUSED, STREAMED
from aiperf_http2 import (
    ConnectionBroken,
    DataReceived,
    Event,
    GoingAway,
    HeadersReceived,
    Http2Connection,
    SettingsReceived,
    StreamReset,
    error_name,
)
from aiperf_http2.frames import CANCEL, MOST_WINDOW, NO_ERROR, REFUSED_STREAM

from aiperf_transport_http2.calls import Call
from aiperf_transport_http2.losses import not_begun, reset_error, unread
from aiperf_transport_http2.merged import hidden_of
from aiperf_transport_http2.outgoing import Outgoing
from aiperf_transport_http2.wire import Wire

if TYPE_CHECKING:
    from aiperf_transport_sockets.origins import Origin

    from aiperf_transport_http2 import Http2Transport


class Link:
    """A connection to *origin*, whose settings come before its first call.

    out: what it writes.  ready: the settings have come.  waiting: calls that wait for them.  retired: it closes behind its
    last call.  full: it carries no more for now.  most: calls at once, by the option and the server's settings; before these
    have come, those of an earlier connection.
    """

    # Larger than 250 lines: what comes, what ends and what is sent once more change the same calls.

    def __init__(self, transport: Http2Transport, origin: Origin) -> None:
        self.transport, self.origin = transport, origin
        self.http = Http2Connection(client=True, most_head_bytes=transport.settings.most_head_bytes)
        self.ready = self.closed = self.retired = self.full = False
        self.most = min(transport.most_streams, transport.limits.get(origin, MOST_WINDOW))
        self.waiting: deque[Call] = deque()
        self._farewell: ErrorDetails | None = None
        self.wire = Wire(transport, origin, self)
        self.out = Outgoing(transport, self.http, self.wire)

    @property
    def room(self) -> int:
        """How many more calls it takes now; 0 or less where it is full, or going away."""
        if self.closed or self.http.going_away:
            return 0
        return self.most - len(self.http.streams) - len(self.waiting)

    # Sending

    def take(self, call: Call) -> None:
        """Carry a call; it is written with the next ``flush``."""
        call.link = self
        call.exchange.connection = call
        if not self.ready:
            self.waiting.append(call)
            return
        call.exchange.flags |= REUSED
        self.out.begin(call)

    def flush(self) -> None:
        """Write what the socket and the server's windows take."""
        if not self.closed:
            self.out.flush()

    # For the wire

    def opened(self) -> None:
        self.wire.missing = "TCP connects, but no HTTP/2 answers"
        self.wire.write(self.http.take())

    def writable(self) -> None:
        self.out.taken()

    def received(self, data: bytes, kernel_ns: int, read_ns: int) -> None:
        events, transport = self.http.receive(data), self.transport
        touched: list[Call] = []
        hidden = earlier = hidden_of(self.wire, events, read_ns) if len(events) > 1 else 0
        transport.coalesced_reads += hidden > 0
        last = events[-1] if hidden else None
        for event in events:
            if event is last:  # the last segment brought it
                earlier = 0
            if type(event) is DataReceived:
                call = event.stream.owner
                if not isinstance(call, Call) or call.over:
                    continue
                call.begun = True
                error = call.data(event.data, transport, kernel_ns, read_ns, earlier)
                if call.pieces:
                    if error is not None or event.end:
                        call.flush(transport, kernel_ns, read_ns, hidden | LAST_HIDDEN if earlier else hidden)
                    elif len(call.pieces) == 1:
                        touched.append(call)
                if error is not None:
                    self._fail(call, error)
                elif event.end:
                    self._finish(call, call.ended())
            elif type(event) is HeadersReceived:
                call = event.stream.owner
                if not isinstance(call, Call) or call.over:
                    continue
                if call.pieces:
                    call.flush(transport, kernel_ns, read_ns, hidden | LAST_HIDDEN if hidden else 0)
                error = call.headed(event, transport, read_ns)
                if event.end:
                    self._finish(call, error or call.ended())
                elif error is not None:
                    self._fail(call, error)
            else:
                self._other(event, kernel_ns, read_ns, hidden)
        for call in touched:
            if not call.over:
                ends = type(last) is DataReceived and last.stream.owner is call
                call.flush(transport, kernel_ns, read_ns, hidden if ends or not hidden else hidden | LAST_HIDDEN)
        if self.out.wanted:
            self.flush()

    def lost(self, error: ErrorDetails, *, ended: bool) -> None:
        """The connection is over: some calls go to another one, the rest fail with *error*."""
        if self.closed:
            return
        calls = [call for stream in self.http.streams.values() if isinstance(call := stream.owner, Call)]
        causes = [unread(call, self.out, self.wire, ended=ended) for call in calls]  # before the socket is closed
        waiting, self.waiting = list(self.waiting), deque()
        self.origin.failed += not (self.ready or waiting)
        error = self._farewell or (error if self.ready else not_begun(error, self.wire))
        self.close()
        for call, cause in [*zip(waiting, [0] * len(waiting), strict=True), *zip(calls, causes, strict=True)]:
            if cause and not call.resent:
                self._again(call, cause)
            else:
                self._end(call, error)
        self.transport.settle_soon()

    # Events

    def _other(self, event: Event, kernel_ns: int, read_ns: int, hidden: int) -> None:
        if type(event) is StreamReset:
            if isinstance(call := event.stream.owner, Call) and not call.over:
                call.flush(self.transport, kernel_ns, read_ns, hidden | LAST_HIDDEN if hidden else 0)
                self._was_reset(call, event)
        elif type(event) is SettingsReceived:
            self._settled(first=event.first)
        elif type(event) is GoingAway:
            self._goes(event)
        elif type(event) is ConnectionBroken:
            self.flush()
            self.lost(ErrorDetails(f"not HTTP/2: {event.message}", type="InvalidHttp2"), ended=False)

    def _was_reset(self, call: Call, event: StreamReset) -> None:
        if event.code == REFUSED_STREAM and not (event.message or call.resent or call.begun):
            self._again(call, RESENT)
            return
        self._end(call, reset_error(event))
        self._refill()

    def _settled(self, *, first: bool) -> None:
        self.transport.limits[self.origin] = limit = self.http.outbox.most_streams
        self.most = min(self.transport.most_streams, limit)
        if first:
            self.ready = self.out.open = True
            opened_ns, waiting = monotonic_ns(), self.waiting
            self.waiting = deque()
            for call in waiting:
                exchange = call.exchange
                exchange.connect_ns = max(0, self.wire.connected_ns - max(self.wire.began_ns, exchange.started_ns))
                exchange.tls_ns = self.wire.tls_ns
                exchange.connected_ns = opened_ns
                if self.room > 0:
                    self.out.begin(call)
                else:
                    self.transport.is_full(self)
                    self.transport.place(call)
            self.flush()
        if not self.closed:
            self.transport.has_room(self)

    def _goes(self, event: GoingAway) -> None:
        text = f": {event.message}" if event.message else ""
        self._farewell = ErrorDetails(f"the server ended the connection: {error_name(event.code)}{text}", type="GoAway")
        self.transport.is_full(self)
        for stream in event.unread:
            if isinstance(call := stream.owner, Call) and not call.over:
                if call.resent:
                    self._end(call, self._farewell)
                else:
                    self._again(call, RESENT)
        self._refill()

    # Ending

    def _again(self, call: Call, cause: int) -> None:
        """Send a call once more, on another stream."""
        exchange = call.exchange
        if call.stream is not None:
            call.stream.owner = None
        if call.waiting is not None:
            call.waiting.cancel()
        call.rewind()
        call.resent = True
        exchange.flags = (exchange.flags | cause) & ~REUSED
        exchange.connected_ns = exchange.sent_ns = exchange.sent_end_ns = 0
        self.transport.place(call)

    def _fail(self, call: Call, error: ErrorDetails) -> None:
        """End a call whose answer can't be used; the stream is ended, too."""
        self.drop(call)
        self.transport.finished.append((call.exchange, error))

    def drop(self, call: Call, code: int = CANCEL) -> None:
        """End a call's stream, if it has one, and forget the call."""
        stream = call.stream
        if stream is not None and stream.number in self.http.streams:
            self.http.reset(stream, code)
        elif stream is None and call in self.waiting:
            self.waiting.remove(call)
        self.out.forget(call)
        self._forget(call, failed=True)
        self._refill()

    def _finish(self, call: Call, error: ErrorDetails | None) -> None:
        """The whole answer is in."""
        stream = call.stream
        if stream is not None and stream.open_here:  # the request isn't
            self.http.reset(stream, NO_ERROR)
        self._forget(call, failed=error is not None)
        self.transport.finished.append((call.exchange, error))
        if self.full or self.retired or self.http.going_away:
            self._refill()

    def _end(self, call: Call, error: ErrorDetails | None) -> None:
        self._forget(call, failed=error is not None)
        self.transport.finished.append((call.exchange, error))

    def _forget(self, call: Call, *, failed: bool) -> None:
        call.over = True
        if call.waiting is not None:
            call.waiting.cancel()
            call.waiting = None
        if call.stream is not None:
            call.stream.owner = None
        call.exchange.connection = call.link = call.stream = None
        if self.transport.lends:
            self.transport.released(self, call.exchange, failed=failed)

    def _refill(self) -> None:
        """A stream has ended: there may be room again, or nothing left to wait for."""
        if (self.http.going_away or self.retired) and not self.http.streams and not self.closed:
            self.flush()
            self.close()
        elif self.full and not self.closed:
            self.transport.has_room(self)

    def check(self, now_ns: int) -> None:
        """End what would never end: an attempt to connect, an event stream that is open behind its end marker."""
        settings, wire = self.transport.settings, self.wire
        if not self.ready:
            if now_ns - wire.began_ns > settings.connect_s * 1e9:
                message = f"{self.origin.name}: {wire.missing} within {settings.connect_s:g} s"
                self.lost(ErrorDetails(message, type="ConnectionTimeoutError", cause=REFUSED), ended=False)
            return
        calls = [call for stream in self.http.streams.values() if isinstance(call := stream.owner, Call)]
        for call in calls:
            silent = now_ns - call.read_ns > settings.end_s * 1e9
            if silent and call.exchange.flags & STREAMED and call.tail.rstrip().endswith(END_MARKER):
                self.drop(call)
                self.transport.finished.append((call.exchange, None))
        self.flush()

    def close(self) -> None:
        """Close the connection; its calls are told nothing."""
        if self.closed:
            return
        self.closed = True
        self.out.close()
        self.transport.forget(self)
        self.wire.close()
