"""One socket that carries one exchange after the other.

What happens per read is: ``recvmsg`` (stamp and bytes in one call), HTTP framing (:mod:`aiperf_transport_sockets.answer`), one
call to the sink.  Everything else waits.  Quirks of real servers that this file answers for:

- 100, 102 and 103 are skipped; 101 and other upgrades are errors.
- A body without length or chunking ends with the connection.
- Bytes behind an answer, or without a request, make the connection unfit for reuse.
- A server may close an idle connection while a request is on its way: an idle connection is peeked at before use, and where the
  close crosses the request, the request goes to a fresh connection if the server can't have got it: nothing was written, or
  its FIN has come and acknowledged nothing.  It is marked, its time zero kept.  A reset tells nothing: it acknowledges nothing
  either where the server's program has read the request, because acknowledgements are delayed.
- A server may close the connection behind each stream without having said so (llama.cpp), some 0.1 ms later: until a connection
  has carried an answer behind a stream, one rests for a while before it is used again; see :class:`Origin`.
- A stamp belongs to the last TCP segment of a read.  A read with several events asks ``TCP_INFO`` how many data segments
  came, so that merged segments are counted.  The count begins anew behind each head.
"""
# Larger than 450 lines: one class, whose size has its reason there.

from __future__ import annotations

import errno
import os
import socket
import struct
from collections.abc import Callable
from http import HTTPStatus
from time import monotonic_ns
from typing import TYPE_CHECKING

import httptools
from aiperf.sdk.model import ErrorDetails
from aiperf.sdk.transport import (
    END_MARKER,
    MOST_INTERIM,
    NO_STAMP,
    RECONNECTED,
    REFUSED,
    RESENT,
    REUSED,
    STREAMED,
    Exchange,
    connect_error,
)

from aiperf_transport_sockets.answer import Answer, not_http, protocol_of
from aiperf_transport_sockets.counts import data_segments, unacknowledged, unread_bytes

if TYPE_CHECKING:
    from aiperf_transport_sockets import KernelTransport, Origin, RequestHead

TIMESPEC = struct.Struct("qq")
"""Ancillary data of a read where SO_TIMESTAMPNS is set: seconds and ns of the wall clock."""
READ_BYTES = 65536
WRITE_BYTES, BEGIN_BYTES = 1 << 16, 1 << 14
"""The most that is written at once; and with the head of a longer body: many may begin in one turn of the loop."""
EVENT_MARK = b"data:"
"""Of server-sent events."""
PHRASES = {status.value: status.phrase for status in HTTPStatus}
_UPGRADE_REFUSED = ErrorDetails("the server wants to switch protocols", type="UpgradeRefused")
CLOSED_EARLY = "the server closed the connection before a whole answer was in"


class Connection:
    """One socket and the exchange it carries, None while it is idle.  fd: -1 while the socket is not open.

    streamed_ns: when the last answer, a stream, was whole; 0 without an answer, and behind another one.
    """

    # More than 20 attributes: an object between them would be one more look-up for every chunk.

    # Larger than 250 lines: reading, writing and closing change the same fields between two calls of the loop; each object
    # between them would be one more look-up for every chunk (`_readable`, `_received`), and one more for every connection.

    sock: socket.socket
    _missing = "no connection"
    """What has not come where opening takes too long."""
    _counted = True
    """Whether the operating system counts what came by segments."""

    def __init__(self, transport: KernelTransport, origin: Origin) -> None:
        self.transport, self.origin = transport, origin
        self.sink, self.poller = transport.sink, transport.poller
        self.fd = -1
        self.exchange: Exchange | None = None
        self.request_head: RequestHead | None = None
        self.answer = Answer()
        self.read_ns = self.kernel_ns = 0
        self.reads = self.segments = 0
        self.unsent: memoryview | None = None
        self.behind: memoryview | None = None
        self._tail, self._head_bytes, self._most_bytes = b"", 0, transport.settings.most_bytes
        mark = transport.settings.event_mark
        self._framed, self._mark = mark is not None, EVENT_MARK if mark is None else mark
        self._head_ns = self._interim = 0
        self._address = self._began_ns = self.streamed_ns = 0
        self._hidden = 0  # what the reader says of its last read, as Sink.chunk gets it
        self._reading: Callable[..., None] = self._readable if transport.reader is None else self._came

    # Opening

    def connect(self, exchange: Exchange | None, head: RequestHead | None) -> None:
        """Open the socket, then send; without an exchange the connection becomes an idle one of its origin."""
        self.exchange, self.request_head = exchange, head
        if exchange is not None:
            exchange.connection = self
        self.transport.open_connections.add(self)
        self._began_ns = monotonic_ns()
        self._dial()

    def _dial(self) -> None:
        """Try the origin's next address."""
        transport = self.transport
        family, address = self.origin.addresses[self._address]
        self._address += 1
        try:
            self.sock = sock = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)
        except OSError as error:
            transport.loop.call_soon(self._refused, error.errno or errno.EIO)
            return
        self.fd = sock.fileno()
        for level, name, value in self._options():
            sock.setsockopt(level, name, value)
        transport.opened += 1
        if (code := sock.connect_ex(address)) in (0, errno.EINPROGRESS):
            self.poller.watch(self.fd, None, self._connected)
        else:
            transport.loop.call_soon(self._refused, code)

    def _options(self) -> list[tuple[int, int, int]]:
        return self.transport.stamping.options

    def _connected(self) -> None:
        """The dialed socket is connected, or refused."""
        code = self.sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if code:
            self._refused(code)
            return
        try:
            self.sock.getpeername()
        except OSError:  # the event was for an earlier socket of this number
            return
        if self.exchange is not None:
            self.exchange.connect_ns = monotonic_ns() - self._began_ns
        self._recv = self.sock.recvmsg
        self.poller.watch(self.fd, self._reading)
        self._established()

    def _refused(self, code: int) -> None:
        if self not in self.transport.open_connections:
            return  # closed meanwhile
        self._close_socket()
        if self.exchange is not None and self._address < len(self.origin.addresses):
            self._dial()
        else:
            self.fail(connect_error(self.origin.name, OSError(code, os.strerror(code))))

    def _established(self) -> None:
        exchange, head = self.exchange, self.request_head
        if exchange is not None and head is not None:
            self.begin(exchange, head)
        else:
            self.origin.idle.append(self)

    def begin(self, exchange: Exchange, head: RequestHead) -> None:
        """Send on this open connection."""
        self.exchange, self.request_head = exchange, head
        exchange.connection = self
        self.answer.expect(head.method)
        self._tail, self._head_bytes, self._head_ns, self._interim = b"", 0, 0, 0
        body = exchange.body
        start = head.encode(exchange)
        if len(body) <= WRITE_BYTES:
            data = memoryview(start + body)
        else:  # a long body is not copied
            whole, room = memoryview(body), max(0, BEGIN_BYTES - len(start))
            data, self.behind = memoryview(start + whole[:room]), whole[room:]
        exchange.sent_ns = monotonic_ns()
        if not exchange.connected_ns:
            exchange.connected_ns = exchange.sent_ns
        self._push(data)

    def _push(self, data: memoryview) -> None:
        """Write a piece that does not hold the loop up; the rest goes out when the socket is writable."""
        try:
            count = self.sock.send(data[:WRITE_BYTES])
        except BlockingIOError:
            count = 0
        except OSError as error:
            self.unsent = data
            self._broken(error)
            return
        waited = self.unsent is not None
        self.unsent = data[count:] or (None if self.behind is None else self._more())
        if self.unsent is None:
            if waited:
                self.poller.watch(self.fd, self._reading)
            self._written()
        elif not waited:
            self.poller.watch(self.fd, self._reading, self._writable)

    def _more(self) -> memoryview | None:
        """What is to be sent behind the piece that is sent."""
        more, self.behind = self.behind, None
        return more

    def _writable(self) -> None:
        if self.unsent is not None:
            self._push(self.unsent)

    def _written(self) -> None:
        exchange = self.exchange
        if exchange is not None:
            exchange.sent_end_ns = monotonic_ns()
            if exchange.armed:
                self.sink.written(exchange)

    # Receiving

    def _readable(self) -> None:
        recv = self._recv
        # Before the read: what it leaves came later.  Behind it, another program may have had the core meanwhile.
        read_ns = monotonic_ns()
        try:
            data, ancillary, _, _ = recv(READ_BYTES, 64)
        except BlockingIOError:
            return
        except OSError as error:
            self._broken(error)
            return
        self.read_ns = read_ns
        if not data:
            self._ended()
            return
        if ancillary:
            seconds, nanoseconds = TIMESPEC.unpack_from(ancillary[0][2])
            self.kernel_ns = seconds * 1_000_000_000 + nanoseconds
        else:
            self.kernel_ns, self.read_ns = 0, monotonic_ns()  # the only stamp: not before the bytes
            self._unstamped()
        self._received(data)

    def _came(self, data: bytes | int, kernel_ns: int, read_ns: int, hidden: int) -> None:
        """A read of the thread that reads: bytes, none for the end, or an errno."""
        self.read_ns, self.kernel_ns, self._hidden = read_ns, kernel_ns, hidden
        if isinstance(data, int):
            self._broken(OSError(data, os.strerror(data)))
        elif not data:
            self._ended()
        else:
            if not kernel_ns:
                self._unstamped()
            self._received(data)

    def _unstamped(self) -> None:
        """A read has no stamp of the kernel: told where one was asked for."""
        if self.transport.stamping.on:
            self.transport.stamps_missing += 1
            if self.exchange is not None:
                self.exchange.flags |= NO_STAMP

    def _received(self, data: bytes) -> None:
        """Plain bytes, stamped with the read that completed them."""
        exchange = self.exchange
        if exchange is None:  # an error page before the server closes, or a broken server
            self.close()
            return
        self.reads += 1
        answer = self.answer
        feed = answer.feed  # a C function in an attribute: calling it through the attribute takes 30 ns more
        try:
            feed(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            upgrade = isinstance(error, httptools.HttpParserUpgrade)
            if upgrade or not answer.complete:
                if answer.new_head:
                    self._headed(exchange)
                self.fail(_UPGRADE_REFUSED if upgrade else not_http(protocol_of(data) or error.__context__ or error))
                return
            answer.stray = True  # the bytes stand behind a whole answer
        if answer.new_head:
            self._headed(exchange)
        complete, pieces = answer.complete, answer.pieces
        if complete:
            del pieces[answer.own_pieces :]
        if pieces:
            body = pieces[0] if len(pieces) == 1 else b"".join(pieces)
            pieces.clear()
            exchange.bytes_received += len(body)
            streamed = exchange.flags & STREAMED or self._framed
            hidden = self._merged_segments(events) if streamed and (events := body.count(self._mark)) > 1 else 0
            self.sink.chunk(exchange, body, self.kernel_ns, self.read_ns, hidden)
            self._tail = body if exchange.flags & STREAMED else b""
            if exchange.bytes_received > self._most_bytes and not exchange.shape.drains(exchange.status):
                message = f"the answer is longer than {self._most_bytes:,} bytes"
                self.fail(ErrorDetails(message, type="AnswerTooLong"))
                return
        elif not answer.status:
            self._head_bytes += len(data)
            if answer.interim > MOST_INTERIM:
                self.fail(not_http(f"more than {MOST_INTERIM} interim answers (1xx) before the one that counts"))
                return
            if answer.interim != self._interim:  # the server may take its time for the next head
                self._interim, self._head_ns, self._head_bytes = answer.interim, 0, 0
            else:
                self._head_ns = self._head_ns or self.read_ns
            if self._head_bytes > self.transport.settings.most_head_bytes:
                self.fail(not_http(f"the head is longer than {self.transport.settings.most_head_bytes:,} bytes"))
                return
            if self._head_late(self.read_ns):
                return
        if complete:
            self._finished(exchange)

    def _head_late(self, now_ns: int) -> bool:
        """End the exchange if a head has begun and takes too long."""
        limit_s = self.transport.settings.head_s
        late = self._head_ns > 0 and not self.answer.status and now_ns - self._head_ns > limit_s * 1e9
        if late:
            self.fail(not_http(f"the head took longer than {limit_s:g} s"))
        return late

    def _headed(self, exchange: Exchange) -> None:
        """The head of the answer is in."""
        answer = self.answer
        answer.new_head = False
        exchange.status, exchange.ack_ns = answer.status, self.read_ns
        if self.streamed_ns:
            self.origin.keeps = True
        if answer.streamed:
            exchange.flags |= STREAMED
        counts = self._counted and self.transport.reader is None and (answer.streamed or self._framed)
        if counts and sum(piece.count(self._mark) for piece in answer.pieces) < 2:
            # Segments so far are the head's, or the end's of the answer before: they hide no event.
            self._count_from(data_segments(self.sock) or 0)
        if self.transport.settings.keep_heads or answer.odd or answer.status >= 300:
            headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in answer.headers]
            reason = answer.reason.decode("latin-1") or PHRASES.get(answer.status, f"HTTP {answer.status}")
            self.sink.head(exchange, answer.status, reason, headers)

    def _merged_segments(self, events: int) -> int:
        """TCP data segments since the last count that no read of their own accounts for.  *events*: in this read."""
        if self.transport.reader is not None:
            hidden = self._hidden  # of this read alone
        else:
            segments = data_segments(self.sock)
            if segments is None:
                return 0
            hidden = max(0, segments - self.segments - self.reads)
            self._count_from(segments)
        self.transport.coalesced_reads += hidden > 0
        return hidden

    def _count_from(self, segments: int) -> None:
        """Count anew behind *segments*, unless more came since the read: these would be missing in the next count.

        The earlier count then goes on, and the next one is too high rather than too low.
        """
        if not unread_bytes(self.fd):
            self.segments, self.reads = segments, 0

    @property
    def all_sent(self) -> bool:
        """Whether the socket has taken the whole request."""
        return self.unsent is None and self.behind is None

    def _finished(self, exchange: Exchange) -> None:
        self.exchange = exchange.connection = None
        settings, answer = self.transport.settings, self.answer
        reusable = answer.keep and not answer.stray and settings.reuse and self.all_sent
        self.streamed_ns = self.read_ns if exchange.flags & STREAMED else 0
        if self.streamed_ns and self.origin.parts_behind_streams:
            reusable = False
        if not reusable or (settings.sticky and exchange.final):
            self.close()
        self.transport.finished.append((exchange, self))

    def check(self, now_ns: int) -> None:
        """End what would never end: an attempt to connect, a head, an event stream that is open behind its end marker."""
        exchange, settings = self.exchange, self.transport.settings
        if exchange is None:
            return
        if not exchange.connected_ns:
            if now_ns - self._began_ns > settings.connect_s * 1e9:
                message = f"{self.origin.name}: {self._missing} within {settings.connect_s:g} s"
                self.fail(ErrorDetails(message, type="ConnectionTimeoutError", cause=REFUSED))
        elif self._head_late(now_ns):
            return
        elif now_ns - self.read_ns > settings.end_s * 1e9 and self._tail.rstrip().endswith(END_MARKER):
            self.answer.keep = False
            self._finished(exchange)

    def _ended(self) -> None:
        """The server ended the connection."""
        exchange, answer = self.exchange, self.answer
        if exchange is None:
            self.origin.parted(self.streamed_ns)
            self.close()
        elif answer.status and not answer.complete and not answer.length_known:
            answer.keep = False
            self._finished(exchange)
        else:
            self._broken(ConnectionResetError(errno.ECONNRESET, CLOSED_EARLY), ended=True)

    def _broken(self, error: OSError, *, ended: bool = False) -> None:
        """The connection is lost.  *ended*: the server's FIN has come."""
        exchange, head = self.exchange, self.request_head
        if exchange is None or head is None:
            self.close()
            return
        if not self.answer.begun:
            self.origin.parted(self.streamed_ns)
        # On a fresh connection it is a fault of the server's; a reused one it may close at any time.
        if exchange.flags & REUSED and not self.answer.begun and (cause := self._unread(exchange, head, error, ended=ended)):
            self.close()
            exchange.flags = (exchange.flags | cause) & ~REUSED
            exchange.connected_ns = exchange.sent_ns = exchange.sent_end_ns = 0
            self.transport.connect(exchange, head)
            return
        self.fail(ErrorDetails(f"{error.strerror or error}", type=type(error).__name__))

    def _unread(self, exchange: Exchange, head: RequestHead, error: OSError, *, ended: bool) -> int:
        """RECONNECTED or RESENT where the server can't have got a byte of the request; 0 where it may have."""
        written = self._count_written(exchange, head)
        if not written:
            return RECONNECTED
        # A reset behind a FIN is EPIPE on Linux, one without a FIN ECONNRESET.
        ended = ended or isinstance(error, BrokenPipeError)
        return RESENT if ended and unacknowledged(self.sock) >= written else 0

    def _count_written(self, exchange: Exchange, head: RequestHead) -> int:
        """Bytes of the request that the socket has taken: counted when it matters, not with every write."""
        left = sum(len(rest) for rest in (self.unsent, self.behind) if rest is not None)
        return len(head.encode(exchange)) + len(exchange.body) - left

    def fail(self, error: ErrorDetails) -> None:
        """Close, and end the exchange with *error*."""
        exchange = self.exchange
        self.close()
        if exchange is None:
            self.origin.failed += 1
        else:
            exchange.connection = None
            self.sink.done(exchange, error)

    def close(self) -> None:
        self._close_socket()
        self.transport.open_connections.discard(self)
        self.exchange = self.request_head = self.unsent = self.behind = None
        if self in self.origin.idle:
            self.origin.idle.remove(self)

    def _close_socket(self) -> None:
        if self.fd >= 0:
            self.poller.watch(self.fd, None)
            self.sock.close()
            self.fd = -1
            self.answer.release()
