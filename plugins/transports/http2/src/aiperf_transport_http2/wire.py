"""One socket: dialed, read with stamps, written as it takes; with TLS through memory buffers."""

from __future__ import annotations

import errno
import os
import socket
import ssl
from collections.abc import Callable
from time import monotonic_ns
from typing import TYPE_CHECKING, Protocol

from aiperf.sdk.model import ErrorDetails
from aiperf.sdk.transport import NO_TLS, connect_error
from aiperf_transport_sockets.connection import CLOSED_EARLY, READ_BYTES, TIMESPEC
from aiperf_transport_sockets.counts import unacknowledged
from aiperf_transport_sockets.local import FULL_S, OF_NETWORKS
from aiperf_transport_sockets.tls import decrypted, handshake_error

if TYPE_CHECKING:
    from aiperf_transport_sockets.origins import Origin

    from aiperf_transport_http2 import Http2Transport


class WireOwner(Protocol):
    """Hears what becomes of a wire."""

    def opened(self) -> None:
        """The server is connected, and TLS agreed on."""

    def received(self, data: bytes, kernel_ns: int, read_ns: int) -> None:
        """Plain bytes, stamped with the read that completed them."""

    def writable(self) -> None:
        """All that was written has been taken."""

    def lost(self, error: ErrorDetails, *, ended: bool) -> None:
        """The wire is of no use any more.  *ended*: the server's FIN has come."""


class Wire:
    """A socket to *origin*.

    fd: -1 while it is not open.  hidden: what the compiled reader says of its last read.
    began_ns, connected_ns: when it was dialed, and connected.  tls_ns: what the handshake took.  missing: what has not come
    where opening takes too long.
    local: a socket of this machine, without TCP: the operating system stamps no read, and counts no segments.
    reads, segments: since the last count of segments, and what it was.  before: stamps of the read before, 0 for none.
    queued, taken: bytes that were written here, and that the socket has taken, TLS included.
    """

    # More than 20 attributes: an object between them would be one more look-up for every read.

    sock: socket.socket

    def __init__(self, transport: Http2Transport, origin: Origin, owner: WireOwner) -> None:
        self.transport, self.origin = transport, origin
        self._owner: WireOwner | None = owner
        self._poller, self._loop = transport.poller, transport.loop
        self.fd, self.local = -1, bool(origin.base)
        self.missing = "no connection"
        self.began_ns = self.connected_ns = self.tls_ns = self.hidden = self.queued = self.taken = 0
        self._address = self.reads = self.segments = 0
        self.before = self._last = (0, 0)
        self._unsent = b""
        self._reading: Callable[..., None] | None = self._readable if transport.reader is None else self._came
        self._tls: ssl.SSLObject | None = None
        self._handshaking = False
        if origin.tls is not None:
            self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
            self._tls = origin.tls.wrap_bio(self._incoming, self._outgoing, server_hostname=origin.host)

    # Opening

    def dial(self) -> None:
        """Connect to the origin's first address that answers."""
        self.began_ns = self.began_ns or monotonic_ns()
        family, address = self.origin.addresses[self._address]
        self._address += 1
        try:
            self.sock = sock = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)
        except OSError as error:
            self._loop.call_soon(self._refused, error.errno or errno.EIO)
            return
        self.fd = sock.fileno()
        for level, name, value in self.transport.stamping.options:
            if not self.local or (level == socket.SOL_SOCKET and name not in OF_NETWORKS):
                sock.setsockopt(level, name, value)
        self.transport.opened += 1
        if (code := sock.connect_ex(address)) in (0, errno.EINPROGRESS):
            self._poller.watch(self.fd, None, self._connected)
        else:
            self._loop.call_soon(self._refused, code)

    def _connected(self) -> None:
        """The dialed socket is connected, or refused."""
        if code := self.sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            self._refused(code)
            return
        try:
            self.sock.getpeername()
        except OSError:  # the event was for an earlier socket of this number
            return
        self.connected_ns = monotonic_ns()
        self._poller.watch(self.fd, self._reading)
        if self._tls is not None:
            self.missing, self._handshaking = NO_TLS, True
            self._handshake()
        elif self._owner is not None:
            self._owner.opened()

    def _refused(self, code: int) -> None:
        if self._owner is None:
            return  # closed meanwhile
        self._close_socket()
        if self.local and code == errno.EAGAIN:  # where TCP would send its SYN again; what takes too long is ended elsewhere
            self._address = 0
            self._loop.call_later(FULL_S, self._again)
        elif self._address < len(self.origin.addresses):
            self.dial()
        else:
            error = connect_error(self.origin.name, OSError(code, os.strerror(code)))
            self._owner.lost(error, ended=False)

    def _again(self) -> None:
        if self._owner is not None and self.fd < 0:
            self.dial()

    def _handshake(self) -> None:
        assert self._tls is not None
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            self._push(self._outgoing.read())
            return
        except ssl.SSLError as error:
            self._push(self._outgoing.read())
            if error.reason == "TLSV1_ALERT_NO_APPLICATION_PROTOCOL":
                message = f"{self.origin.host}: the server offers no HTTP/2 over TLS (ALPN)"
                self._lose(ErrorDetails(message, type=type(error).__name__))
            else:
                self._lose(handshake_error(self.origin.host, error))
            return
        self._handshaking = False
        self._push(self._outgoing.read())
        self.tls_ns = monotonic_ns() - self.connected_ns
        if (chosen := self._tls.selected_alpn_protocol()) not in ("h2", None):
            self._lose(ErrorDetails(f"{self.origin.host}: the server chose {chosen} over TLS, not HTTP/2", type="NoHttp2"))
        elif self._owner is not None:
            self._owner.opened()

    # Writing

    @property
    def blocked(self) -> bool:
        """Whether the socket takes nothing more for now."""
        return bool(self._unsent)

    def write(self, data: bytes) -> bool:
        """Write bytes, not many at once; False: the socket hasn't taken all, and ``writable`` will be told."""
        if self._tls is not None:
            self._tls.write(data)
            data = self._outgoing.read()
        return self._push(data)

    def _push(self, data: bytes) -> bool:
        self.queued += len(data)
        if self._unsent:
            self._unsent += data
            return False
        return self._send(data)

    def _send(self, data: bytes) -> bool:
        if self.fd < 0 or not data:
            return True
        try:
            count = self.sock.send(data)
        except BlockingIOError:
            count = 0
        except OSError as error:
            self._unsent = data  # nothing more goes out
            self._loop.call_soon(self._broken, error)
            return False
        self.taken += count
        waited, self._unsent = bool(self._unsent), data[count:] if count < len(data) else b""
        if bool(self._unsent) != waited:
            self._poller.watch(self.fd, self._reading, self._writable if self._unsent else None)
        return not self._unsent

    def _writable(self) -> None:
        if self._unsent and self._send(self._unsent) and self._owner is not None and not self._handshaking:
            self._owner.writable()

    def acknowledges(self, start: int) -> bool:
        """Whether the server has acknowledged a byte behind the first *start*; True where this machine doesn't tell."""
        left = unacknowledged(self.sock)
        return left < 0 or left < self.taken - start

    # Reading

    def _readable(self) -> None:
        # Before the read: what it leaves came later.  Behind it, another program may have had the core meanwhile.
        read_ns = monotonic_ns()
        try:
            data, ancillary, _, _ = self.sock.recvmsg(READ_BYTES, 64)
        except BlockingIOError:
            return
        except OSError as error:
            self._broken(error)
            return
        if not data:
            self._ended()
            return
        if ancillary:
            seconds, nanoseconds = TIMESPEC.unpack_from(ancillary[0][2])
            self._received(data, seconds * 1_000_000_000 + nanoseconds, read_ns)
        else:
            self._received(data, 0, monotonic_ns())  # the only stamp: not before the bytes

    def _came(self, data: bytes | int, kernel_ns: int, read_ns: int, hidden: int) -> None:
        """A read of the compiled reader: bytes, none for the end, or an errno."""
        self.hidden = hidden
        if isinstance(data, int):
            self._broken(OSError(data, os.strerror(data)))
        elif not data:
            self._ended()
        else:
            self._received(data, kernel_ns, read_ns)

    def _received(self, data: bytes, kernel_ns: int, read_ns: int) -> None:
        self.reads += 1
        self.before = self._last
        if kernel_ns or len(data) < READ_BYTES:  # else it may have left something
            self._last = kernel_ns, read_ns
        if not kernel_ns and self.transport.stamping.on and not self.local:
            self.transport.stamps_missing += 1
        owner = self._owner
        if owner is None:
            return
        if self._tls is None:
            owner.received(data, kernel_ns, read_ns)
            return
        self._incoming.write(data)
        if self._handshaking:
            self._handshake()
            if self._handshaking or self.fd < 0:
                return
        plain, closed, error = decrypted(self._tls, self._incoming)
        if error is not None:
            self._lose(error)
            return
        self._push(self._outgoing.read())
        if plain:
            owner.received(plain, kernel_ns, read_ns)
        if closed and self.fd >= 0:
            self._ended()

    # Ending

    def _ended(self) -> None:
        self._lose(ErrorDetails(CLOSED_EARLY, type="ConnectionResetError"), ended=True)

    def _broken(self, error: OSError) -> None:
        # A reset behind a FIN is EPIPE on Linux, one without a FIN ECONNRESET.
        ended = isinstance(error, BrokenPipeError)
        self._lose(ErrorDetails(f"{error.strerror or error}", type=type(error).__name__), ended=ended)

    def _lose(self, error: ErrorDetails, *, ended: bool = False) -> None:
        if self._owner is not None:
            self._owner.lost(error, ended=ended)

    def close(self) -> None:
        """Close the socket, and tell nobody."""
        self._close_socket()
        self._owner = self._reading = None

    def _close_socket(self) -> None:
        if self.fd >= 0:
            self._poller.watch(self.fd, None)
            self.sock.close()
            self.fd = -1
