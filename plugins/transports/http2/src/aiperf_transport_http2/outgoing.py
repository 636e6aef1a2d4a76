"""What one connection writes: requests, part by part, and when they have left."""

from __future__ import annotations

from time import monotonic_ns
from typing import TYPE_CHECKING

from aiperf_http2 import Http2Connection, Http2Stream
from aiperf_http2.grpc import framed

from aiperf_transport_http2.calls import Call
from aiperf_transport_http2.wire import Wire

if TYPE_CHECKING:
    from aiperf_transport_http2 import Http2Transport


class Outgoing:
    """Writes calls to a wire.  open: the server's settings are in, and the connection is in use."""

    def __init__(self, transport: Http2Transport, http: Http2Connection, wire: Wire) -> None:
        self._transport, self._http, self._wire = transport, http, wire
        self.open = False
        self._fresh: list[Call] = []  # begun since the last write
        self._ending: list[Http2Stream] = []  # ended by bytes that the socket has yet to take
        self._stalled_ns = 0

    def begin(self, call: Call) -> None:
        """Write a call's head, and of its body what need not wait."""
        exchange, head = call.exchange, call.head
        body = framed(exchange.body) if head.grpc else exchange.body
        self._fresh.append(call)
        if body and not head.parts:
            stream = call.stream = self._http.ask(head.fields, head.encoded(exchange), body)
            stream.owner = call
            return
        stream = call.stream = self._http.open(head.fields, head.encoded(exchange), end=not head.parts)
        stream.owner = call
        if head.parts:
            self._send_parts(call)

    def _send_parts(self, call: Call) -> None:
        """Write the next parts, up to one that must wait."""
        parts, last = call.head.parts, False
        while not last and call.stream is not None:
            if wait_ns := parts[call.part][1]:
                now_ns = monotonic_ns()
                call.due_ns = call.due_ns or now_ns + wait_ns
                if now_ns < call.due_ns:  # a timer may come up to 1 ms early
                    call.waiting = self._transport.loop.call_later((call.due_ns - now_ns) / 1e9, self._waited, call)
                    return
            call.waiting, call.due_ns = None, 0
            data, last = call.next_part()
            self._http.send(call.stream, data, end=last)

    def _waited(self, call: Call) -> None:
        self._send_parts(call)
        self.flush()

    def flush(self) -> None:
        """Write what the socket and the server's windows take."""
        wire, http = self._wire, self._http
        if wire.blocked or not self.open:
            return
        outbox = http.outbox
        if self._fresh:
            now_ns = monotonic_ns()
            for call in self._fresh:
                call.start, exchange = wire.queued, call.exchange
                exchange.sent_ns = now_ns
                exchange.connected_ns = exchange.connected_ns or now_ns
            self._fresh.clear()
        whole = True
        while whole and outbox.waiting and (data := http.take()):
            if outbox.ended:
                self._ending += outbox.ended
                outbox.ended.clear()
            whole = wire.write(data)
        if self._ending and whole:
            self._tell_written()
        if outbox.stalled or self._stalled_ns:
            self._count_stall(stalled=outbox.stalled)

    def _tell_written(self) -> None:
        """The socket has all of some requests."""
        now_ns, ending, self._ending = monotonic_ns(), self._ending, []
        for stream in ending:
            call = stream.owner
            if isinstance(call, Call) and call.stream is stream:
                exchange = call.exchange
                exchange.sent_end_ns = now_ns
                if exchange.armed:
                    self._transport.sink.written(exchange)

    def _count_stall(self, *, stalled: bool) -> None:
        now_ns = monotonic_ns()
        if self._stalled_ns:
            self._transport.stalled_ns += now_ns - self._stalled_ns
        self._stalled_ns = now_ns if stalled else 0

    @property
    def wanted(self) -> bool:
        """Whether there is something to write, or to count."""
        return self._http.outbox.waiting or self._stalled_ns > 0

    def taken(self) -> None:
        """The socket has taken all that was written, and takes more."""
        if self._ending:
            self._tell_written()
        self.flush()

    def unwritten(self, call: Call) -> bool:
        """Whether the socket has taken nothing of a call."""
        return call in self._fresh or self._wire.taken <= call.start

    def forget(self, call: Call) -> None:
        """A call is over."""
        if self._fresh and call in self._fresh:
            self._fresh.remove(call)

    def close(self) -> None:
        """Write nothing more."""
        self.open = False
        if self._stalled_ns:
            self._count_stall(stalled=False)
