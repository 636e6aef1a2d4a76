"""The kernel's transport: HTTP/1.1 on non-blocking sockets, every read stamped by the kernel.

What happens per read is: ``recvmsg`` (stamp and bytes in one call), HTTP framing by httptools, one call to the sink.
Everything else waits.  Quirks of real servers that this file answers for:

- 100, 102 and 103 are skipped; 101 and other upgrades are errors; HEAD, 204 and 304 have no body.
- A body without length or chunking ends with the connection.
- httptools says ``should_keep_alive`` rightly only inside ``on_message_complete``.
- Bytes behind an answer, or without a request, make the connection unfit for reuse.
- A server may close an idle connection while we reach for it: a pooled one is peeked at before use, and a request that
  gets no byte of an answer on a reused connection is sent once more on a fresh one, marked, its time zero kept.
- A stamp belongs to the last TCP segment of a read.  A read with several events asks ``TCP_INFO`` how many data segments
  came, so that what was merged is known to be merged.
"""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import ssl
import struct
import sys
from collections import deque
from http import HTTPStatus
from time import monotonic_ns
from typing import Any
from urllib.parse import urlsplit

import httptools

from aiperf import environment
from aiperf.engine.contract import Exchange, Shape, Sink, TransportSettings, tls_context
from aiperf.engine.poller import make_poller
from aiperf.journal import NO_STAMP, RECONNECTED, REUSED, STREAMED
from aiperf.model import ErrorDetails

_READ_BYTES = 65536
_WRITE_BYTES = 65536
_TIMESPEC = struct.Struct("qq")
# asm-generic/socket.h; the few architectures that number it differently fall back to read stamps.
_SO_TIMESTAMPNS = 35 if sys.platform == "linux" and os.uname().machine in ("x86_64", "aarch64", "riscv64") else 0
_TCP_INFO_BYTES = 192
_DATA_SEGS_IN = struct.Struct("=I")  # tcpi_data_segs_in, linux/tcp.h: u32 at byte 152
_DATA_SEGS_AT = 152
_WARM_AT_ONCE = 128
_WARM_S = 2.0
_CLOSED_EARLY = "the server closed the connection before a whole answer was in"


class Origin:
    """One scheme, host and port: its addresses, certificates and idle connections."""

    def __init__(self, scheme: str, host: str, port: int) -> None:
        self.scheme, self.host, self.port = scheme, host, port
        self.addresses: list[tuple[int, Any]] = []
        self.error: ErrorDetails | None = None
        self.idle: list[Connection] = []
        self.tls: ssl.SSLContext | None = None
        self.dns_ns = 0
        self.failed = 0

    @property
    def host_header(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == (443 if self.scheme == "https" else 80) else f"{host}:{self.port}"


class _Wire:
    """A shape's bytes: everything of the head that doesn't change."""

    def __init__(self, shape: Shape, origin: Origin) -> None:
        parts = urlsplit(shape.url)
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        given = {name.lower() for name in shape.headers}
        lines = [f"{shape.method} {target} HTTP/1.1"]
        if "host" not in given:
            lines.append(f"Host: {origin.host_header}")
        lines += [f"{name}: {value}" for name, value in shape.headers.items()]
        if "accept-encoding" not in given:
            lines.append("Accept-Encoding: identity")
        head = "\r\n".join(lines).replace("%", "%%")
        own = [*("X-Request-ID",), *shape.session_headers]
        self.head = head + "\r\nContent-Length: %d" + "".join(f"\r\n{name}: %s" for name in own) + "\r\n\r\n"
        self.sessions = len(shape.session_headers)
        self.method = shape.method
        self.origin = origin
        self.shape = shape  # kept alive: the wire is looked up by the shape's id

    def request(self, exchange: Exchange) -> bytes:
        ids = (exchange.session_id,) * self.sessions
        return (self.head % (len(exchange.body), exchange.request_id, *ids)).encode("latin-1")


class KernelTransport:
    """The default transport, registered as ``kernel`` under ``aiperf.transports``."""

    def __init__(self, settings: TransportSettings, sink: Sink, loop: asyncio.AbstractEventLoop) -> None:
        self.settings, self.sink, self.loop = settings, sink, loop
        self.stamps = settings.stamps and _SO_TIMESTAMPNS != 0
        self.socket_options = [(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1), *environment.socket_options()]
        if self.stamps:
            self.socket_options.append((socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1))
        self.open_connections: set[Connection] = set()
        self.hot: Connection | None = None
        self.stamps_missing = self.coalesced_reads = self.opened = 0
        self._origins: dict[tuple[str, str, int], Origin] = {}
        self._wires: dict[int, _Wire] = {}
        self._keeper: socket.socket | None = None
        self.over: deque[tuple[Exchange, Connection | None]] = deque()
        self._own: dict[str, Connection] | None = {} if settings.sticky else None  # by session
        self.poller = make_poller(loop, self.settle)

    @property
    def statistics(self) -> dict[str, int]:
        return {
            "stamps_missing": self.stamps_missing,
            "coalesced_reads": self.coalesced_reads,
            "opened": self.opened,
        }

    async def open(self) -> None:
        if self.stamps:
            # The kernel switches stamping on globally, lazily, with the first socket that asks: hold one open.
            self._keeper = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            self._keeper.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
        for url in self.settings.urls:
            await self._resolve(self._origin(url))

    async def warm(self, connections: int) -> None:
        if not self.settings.reuse or self.settings.sticky:
            return
        for origin in self._origins.values():
            if origin.error is not None:
                continue
            for _ in range(0, connections, _WARM_AT_ONCE):
                count = min(_WARM_AT_ONCE, connections - len(origin.idle))
                wanted = len(origin.idle) + count
                for _ in range(count):
                    self._kind(origin)(self, origin).connect_idle()
                until = self.loop.time() + _WARM_S
                while len(origin.idle) < wanted and self.loop.time() < until and origin.failed < count:
                    await asyncio.sleep(0.001)
                if len(origin.idle) < wanted:
                    break

    @staticmethod
    def _kind(origin: Origin) -> type[Connection]:
        return TlsConnection if origin.tls is not None else Connection

    async def close(self) -> None:
        for connection in list(self.open_connections):
            connection.close()
        self.poller.close()
        if self._keeper is not None:
            self._keeper.close()
            self._keeper = None

    def settle(self) -> None:
        """Tell of the answers that the last batch of reads completed.

        Behind the batch, not inside it: what is told of is followed by a send, and a socket that waits for its read meanwhile
        may find the next chunk merged into the one it holds.
        """
        over = self.over
        while over:
            exchange, connection = over.popleft()
            if connection is not None and connection.sock is not None:
                if self._own is None:
                    connection.origin.idle.append(connection)
                else:
                    self._own[exchange.session_id] = connection
                self.hot = connection  # just read dry: no need to peek if it is taken at once
            self.sink.done(exchange, None)
            self.hot = None

    def send(self, exchange: Exchange) -> None:
        wire = self._wires.get(id(exchange.shape))
        if wire is None:
            wire = self._wires[id(exchange.shape)] = _Wire(exchange.shape, self._origin(exchange.shape.url))
        idle = wire.origin.idle
        if self._own is not None and (own := self._own.pop(exchange.session_id, None)) is not None:
            idle = [own]
        while idle:
            connection = idle.pop()
            if connection is self.hot or connection.alive():
                exchange.flags |= REUSED
                connection.begin(exchange, wire)
                return
            connection.close()
        self.fresh(exchange, wire)

    def fresh(self, exchange: Exchange, wire: _Wire) -> None:
        """Send on a connection of its own."""
        origin = wire.origin
        if origin.error is not None:
            error = origin.error
            self.loop.call_soon(self.sink.done, exchange, error)
            return
        self._kind(origin)(self, origin).connect(exchange, wire)

    def abort(self, exchange: Exchange, error: ErrorDetails | None) -> None:
        connection = exchange.connection
        if isinstance(connection, Connection):
            connection.close()
        exchange.connection = None
        self.sink.done(exchange, error)

    def _origin(self, url: str) -> Origin:
        parts = urlsplit(url)
        key = (parts.scheme, parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80))
        origin = self._origins.get(key)
        if origin is None:
            origin = self._origins[key] = Origin(*key)
        return origin

    async def _resolve(self, origin: Origin) -> None:
        """Look the name up once, off the loop; what goes wrong becomes every request's error."""
        families = {"4": socket.AF_INET, "6": socket.AF_INET6}
        family = families.get(self.settings.family, socket.AF_UNSPEC)
        before = monotonic_ns()
        try:
            found = await self.loop.getaddrinfo(origin.host, origin.port, family=family, type=socket.SOCK_STREAM)
            if origin.scheme == "https":
                origin.tls = tls_context(self.settings.tls)
        except OSError as error:  # certificates' errors too
            origin.error = ErrorDetails(f"{origin.host}: {error.strerror or error}", type=type(error).__name__)
            return
        except UnicodeError as error:  # a name that can't even be asked for
            origin.error = ErrorDetails(f"{origin.host}: no host name: {error}", type=type(error).__name__)
            return
        origin.dns_ns = monotonic_ns() - before
        # IPv4 first: servers under test listen there more often than not, and a refused IPv6 attempt costs a round trip.
        found.sort(key=lambda entry: entry[0] != socket.AF_INET)
        origin.addresses = [(entry[0], entry[4]) for entry in found]


class Connection:
    """One socket and the exchange it carries, if any.  Callbacks of httptools are methods of this class."""

    def __init__(self, transport: KernelTransport, origin: Origin) -> None:
        self.transport, self.origin = transport, origin
        self.loop, self.sink, self.poller = transport.loop, transport.sink, transport.poller
        self.sock: socket.socket | None = None
        self.fd = -1
        self.exchange: Exchange | None = None
        self.wire: _Wire | None = None
        self.parser: Any = None
        self.pieces: list[bytes] = []
        self.headers: list[tuple[bytes, bytes]] = []
        self.reason = b""
        self.headed = self.complete = self.stray = self.keep = False
        self.read_ns = self.kernel_ns = 0
        self.reads = self.segments = 0
        self.unsent: memoryview | None = None
        self._address = 0
        self._began_ns = 0

    # Connecting

    def connect(self, exchange: Exchange, wire: _Wire) -> None:
        self.exchange, self.wire = exchange, wire
        exchange.connection = self
        self._began_ns = monotonic_ns()
        self._attempt()

    def connect_idle(self) -> None:
        """Connect ahead of any request."""
        self._attempt()

    def _attempt(self) -> None:
        family, address = self.origin.addresses[self._address]
        try:
            sock = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)
        except OSError as error:
            self.loop.call_soon(self._fail, self._described(error))
            return
        self.sock, self.fd = sock, sock.fileno()
        for level, name, value in self.transport.socket_options:
            sock.setsockopt(level, name, value)
        self.transport.open_connections.add(self)
        self.transport.opened += 1
        code = sock.connect_ex(address)
        if code in (0, errno.EINPROGRESS):
            self.poller.writer(self.fd, self._connected)
        else:
            self.loop.call_soon(self._refused, code)

    def _connected(self) -> None:
        if self.sock is None:
            return
        code = self.sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if code:
            self.poller.writer(self.fd, None)
            self._refused(code)
            return
        try:
            self.sock.getpeername()
        except OSError:  # a wake-up meant for a socket that had this number before
            return
        self.poller.writer(self.fd, None)
        exchange = self.exchange
        if exchange is not None:
            exchange.connect_ns = monotonic_ns() - self._began_ns
        self._recv = self.sock.recvmsg
        self.poller.reader(self.fd, self._readable)
        self._established()

    def _refused(self, code: int) -> None:
        exchange = self.exchange
        if exchange is None:
            self.origin.failed += 1
            self.close()
            return
        self._address += 1
        if self._address < len(self.origin.addresses):
            self._shut()
            self._attempt()
            return
        self._fail(self._described(OSError(code, os.strerror(code))))

    def _described(self, error: OSError) -> ErrorDetails:
        message = f"{self.origin.host}:{self.origin.port}: {error.strerror or error}"
        if error.errno in (errno.EMFILE, errno.ENFILE):
            message += "; raise the limit of open files (ulimit -n)"
        elif error.errno == errno.EADDRNOTAVAIL:
            message += "; no local port is left (net.ipv4.ip_local_port_range, or keep connections open)"
        return ErrorDetails(message, type=type(OSError(error.errno, "")).__name__)

    def _established(self) -> None:
        exchange, wire = self.exchange, self.wire
        if exchange is not None and wire is not None:
            self._start(exchange, wire)
        else:
            self.origin.idle.append(self)

    # Sending

    def alive(self) -> bool:
        """Whether an idle connection is still open and quiet: the server may have closed it since the last loop turn."""
        if self.sock is None:
            return False
        try:
            self.sock.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return True
        except OSError:
            return False
        return False  # an end, or bytes nobody asked for

    def begin(self, exchange: Exchange, wire: _Wire) -> None:
        """Send on this open connection."""
        self.exchange, self.wire = exchange, wire
        exchange.connection = self
        self._start(exchange, wire)

    def _start(self, exchange: Exchange, wire: _Wire) -> None:
        self.headed = self.complete = self.stray = False
        self.headers.clear()
        if self.parser is None:
            self.parser = httptools.HttpResponseParser(self)
        head = wire.request(exchange)
        exchange.sent_ns = monotonic_ns()
        if not exchange.connected_ns:
            exchange.connected_ns = exchange.sent_ns
        body = exchange.body
        if len(body) <= _WRITE_BYTES:
            self._push(memoryview(head + body))
        else:
            self._push(memoryview(head + body[: _WRITE_BYTES - len(head)]), memoryview(body)[_WRITE_BYTES - len(head) :])

    def _push(self, data: memoryview, rest: memoryview | None = None) -> None:
        """Write what the socket takes; the rest goes out when it is writable, in pieces that don't hold the loop up."""
        exchange, sock = self.exchange, self.sock
        if exchange is None or sock is None:
            return
        try:
            count = sock.send(data)
        except BlockingIOError:
            count = 0
        except OSError as error:
            self._broken(error)
            return
        if count == len(data) and not rest:
            self._written(exchange)
            return
        left = bytes(data[count:])
        self.unsent = memoryview(left + bytes(rest)) if rest else memoryview(left)
        self.poller.writer(self.fd, self._writable)

    def _writable(self) -> None:
        exchange, sock, unsent = self.exchange, self.sock, self.unsent
        if exchange is None or sock is None or unsent is None:
            return
        try:
            count = sock.send(unsent[:_WRITE_BYTES])
        except BlockingIOError:
            return
        except OSError as error:
            self._broken(error)
            return
        if count < len(unsent):
            self.unsent = unsent[count:]
            return
        self.unsent = None
        self.poller.writer(self.fd, None)
        self._written(exchange)

    def _written(self, exchange: Exchange) -> None:
        exchange.sent_end_ns = monotonic_ns()
        if exchange.armed:
            self.sink.written(exchange)

    # Receiving

    def _readable(self) -> None:
        try:
            data, ancillary, _, _ = self._recv(_READ_BYTES, 64)
        except BlockingIOError:
            return
        except OSError as error:
            self._broken(error)
            return
        self.read_ns = monotonic_ns()
        if not data:
            self._ended()
            return
        if ancillary:
            seconds, nanoseconds = _TIMESPEC.unpack_from(ancillary[0][2])
            self.kernel_ns = seconds * 1_000_000_000 + nanoseconds
        else:
            self._unstamped()
        self._received(data)

    def _unstamped(self) -> None:
        self.kernel_ns = 0
        if self.transport.stamps:
            self.transport.stamps_missing += 1
            if self.exchange is not None:
                self.exchange.flags |= NO_STAMP

    def _received(self, data: bytes) -> None:
        """Plain bytes, stamped with the read that completed them."""
        exchange = self.exchange
        if exchange is None:  # nobody asked: an error page before closing, or a broken server
            self.close()
            return
        self.reads += 1
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._fail(ErrorDetails("the server wants to switch protocols", type="UpgradeRefused"))
            return
        except httptools.HttpParserError as error:
            if not self.complete:
                self._fail(ErrorDetails(f"not HTTP: {error}", type="InvalidHttpResponse"))
                return
            self.stray = True  # garbage behind a whole answer
        pieces = self.pieces
        if pieces:
            body = pieces[0] if len(pieces) == 1 else b"".join(pieces)
            pieces.clear()
            exchange.bytes_received += len(body)
            hidden = 0
            if exchange.flags & STREAMED and body.count(b"data:") > 1:
                hidden = self._merged()
            self.sink.chunk(exchange, body, self.kernel_ns, self.read_ns, hidden)
        if self.complete:
            self._finished(exchange)

    def _merged(self) -> int:
        """TCP data segments since the last count that no read of their own accounts for (0.5 µs)."""
        if _SO_TIMESTAMPNS == 0 or self.sock is None:
            return 0
        info = self.sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO_BYTES)
        if len(info) < _DATA_SEGS_AT + 4:
            return 0
        segments: int = _DATA_SEGS_IN.unpack_from(info, _DATA_SEGS_AT)[0]
        hidden = segments - self.segments - self.reads
        self.segments, self.reads = segments, 0
        if hidden <= 0:
            return 0
        self.transport.coalesced_reads += 1
        return hidden

    # httptools

    def on_message_begin(self) -> None:
        if self.complete:
            self.stray = True
        else:
            self.headers.clear()
            self.reason = b""

    def on_status(self, reason: bytes) -> None:
        self.reason += reason

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        exchange, wire = self.exchange, self.wire
        status = self.parser.get_status_code()
        if self.complete or exchange is None or wire is None or status < 200:
            return
        self.headed = True
        exchange.status = status
        exchange.ack_ns = self.read_ns
        for name, value in self.headers:
            if len(name) == 12 and name.lower() == b"content-type":
                if value.lower().startswith(b"text/event-stream"):
                    exchange.flags |= STREAMED
                break
        if self.transport.settings.keep_heads or status >= 300:
            headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in self.headers]
            self.sink.head(exchange, status, self.reason.decode("latin-1") or _phrase(status), headers)
        if wire.method == "HEAD":  # httptools waits for a body that never comes
            self.complete, self.keep, self.parser = True, self.parser.should_keep_alive(), None

    def on_body(self, body: bytes) -> None:
        if not self.complete:
            self.pieces.append(body)

    def on_message_complete(self) -> None:
        if self.headed and not self.complete:
            self.complete = True
            self.keep = self.parser.should_keep_alive()

    # Ends

    @property
    def idle_out(self) -> bool:
        """Everything that was to be sent has been taken by the socket."""
        return self.unsent is None

    def _finished(self, exchange: Exchange) -> None:
        self.exchange = exchange.connection = None
        settings = self.transport.settings
        fit = self.keep and not self.stray and settings.reuse and self.idle_out
        if settings.sticky and exchange.final:
            fit = False
        if not fit:
            self.close()
        self.transport.over.append((exchange, self if fit else None))

    def _ended(self) -> None:
        """The server ended the connection."""
        exchange = self.exchange
        if exchange is None:
            self.close()
        elif self.headed and not self.complete and not self._length_known():
            self.complete, self.keep = True, False
            self._finished(exchange)
        else:
            self._broken(ConnectionResetError(errno.ECONNRESET, _CLOSED_EARLY))

    def _length_known(self) -> bool:
        return any(name.lower() in (b"content-length", b"transfer-encoding") for name, _ in self.headers)

    def _broken(self, error: OSError) -> None:
        exchange, wire = self.exchange, self.wire
        if exchange is None or wire is None:
            self.close()
            return
        untouched = not self.headed and not self.headers and exchange.bytes_received == 0
        if untouched and exchange.flags & REUSED and not exchange.flags & RECONNECTED:
            # The server closed it while idle.  The only retry there is: the old connection never gave an answer's byte.
            self.close()
            exchange.flags = (exchange.flags | RECONNECTED) & ~REUSED
            exchange.connected_ns = exchange.sent_ns = exchange.sent_end_ns = 0
            self.transport.fresh(exchange, wire)
            return
        self._fail(ErrorDetails(f"{error.strerror or error}", type=type(error).__name__))

    def _fail(self, error: ErrorDetails) -> None:
        exchange = self.exchange
        self.close()
        if exchange is None:
            self.origin.failed += 1
        else:
            exchange.connection = None
            self.sink.done(exchange, error)

    def _shut(self) -> None:
        if self.sock is not None:
            self.poller.forget(self.fd)
            self.sock.close()
            self.sock, self.fd = None, -1
            self.transport.open_connections.discard(self)

    def close(self) -> None:
        self._shut()
        self.exchange = self.wire = self.parser = self.unsent = None
        if self in self.origin.idle:
            self.origin.idle.remove(self)


class TlsConnection(Connection):
    """TLS through memory buffers, so that encrypted bytes are stamped as they leave the kernel.

    A record may come from several reads: its events carry the stamp of the read that completed it.
    """

    def __init__(self, transport: KernelTransport, origin: Origin) -> None:
        super().__init__(transport, origin)
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._shaking = True
        self._hello_ns = 0
        self._tls: ssl.SSLObject | None = None
        self._cipher = bytearray()

    def _established(self) -> None:
        context = self.origin.tls
        if context is None:
            return
        self._hello_ns = monotonic_ns()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname=self.origin.host)
        self._handshake()

    @property
    def idle_out(self) -> bool:
        return self.unsent is None and not self._cipher

    def _handshake(self) -> None:
        exchange, tls = self.exchange, self._tls
        if tls is None:
            return
        try:
            tls.do_handshake()
        except ssl.SSLWantReadError:
            self._flush()
            return
        except ssl.SSLError as error:
            self._flush()
            reason = getattr(error, "verify_message", "") or error.reason or str(error)
            self._fail(ErrorDetails(f"{self.origin.host}: TLS handshake failed: {reason}", type=type(error).__name__))
            return
        self._shaking = False
        self._flush()
        if exchange is not None:
            exchange.tls_ns = monotonic_ns() - self._hello_ns
        super()._established()

    def _flush(self) -> None:
        """Ciphertext to the socket; what it doesn't take goes out when it is writable."""
        self._cipher += self._outgoing.read()
        if self.sock is None or not self._cipher:
            return
        try:
            count = self.sock.send(self._cipher)
        except BlockingIOError:
            count = 0
        except OSError as error:
            self._broken(error)
            return
        del self._cipher[:count]
        if self._cipher:
            self.poller.writer(self.fd, self._writable)

    def _push(self, data: memoryview, rest: memoryview | None = None) -> None:
        self.unsent = memoryview(bytes(data) + bytes(rest)) if rest else data
        self._pump()

    def _writable(self) -> None:
        if self.sock is not None and not self._cipher:
            self.poller.writer(self.fd, None)
        self._flush()
        if not self._cipher:
            self._pump()

    def _pump(self) -> None:
        """Encrypt and send a piece at a time; the next when the socket has taken the last."""
        exchange, tls = self.exchange, self._tls
        if exchange is None or tls is None or exchange.sent_end_ns:
            return
        while self.unsent is not None and not self._cipher:
            piece, left = self.unsent[:_WRITE_BYTES], self.unsent[_WRITE_BYTES:]
            tls.write(piece)
            self.unsent = left if left else None
            self._flush()
            if self.exchange is not exchange:  # the send found the connection broken
                return
        if self.unsent is None and not self._cipher:
            if self.fd >= 0:
                self.poller.writer(self.fd, None)
            self._written(exchange)

    def _received(self, data: bytes) -> None:
        tls = self._tls
        if tls is None:
            return
        self._incoming.write(data)
        if self._shaking:
            self._handshake()
            if self._shaking or self.sock is None:
                return
        plain = bytearray()
        closed = False
        # Until both are empty, rather than until SSLWantRead: the exception costs twice the read.
        while self._incoming.pending or tls.pending():
            try:
                piece = tls.read(_READ_BYTES)
            except ssl.SSLWantReadError:  # half a record, or a session ticket
                break
            except ssl.SSLZeroReturnError:
                closed = True
                break
            except ssl.SSLError as error:
                self._fail(ErrorDetails(f"TLS: {error.reason or error}", type=type(error).__name__))
                return
            if not piece:
                closed = True
                break
            plain += piece
        self._flush()
        if plain:
            super()._received(bytes(plain))
        if closed and self.sock is not None:
            super()._ended()

    def _ended(self) -> None:
        """TCP ended without close_notify: an answer that only the end of the connection delimits may have been cut."""
        exchange = self.exchange
        if exchange is not None and self.headed and not self.complete and not self._length_known():
            self._fail(ErrorDetails("the connection ended without close_notify: the answer may be cut", type="SSLEOFError"))
            return
        super()._ended()


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return f"HTTP {status}"


__all__ = ["Connection", "KernelTransport", "Origin", "TlsConnection"]
