"""A connection with TLS."""

from __future__ import annotations

import errno
import ssl
from time import monotonic_ns
from typing import TYPE_CHECKING

from aiperf.sdk.model import ErrorDetails
from aiperf.sdk.transport import NO_TLS

from aiperf_transport_sockets.connection import CLOSED_EARLY, READ_BYTES, WRITE_BYTES, Connection

if TYPE_CHECKING:
    from aiperf.sdk.transport import Exchange

    from aiperf_transport_sockets import KernelTransport, Origin, RequestHead

_FIN_NS = 1_000_000_000
"""The end of TCP comes so long behind close_notify, or nothing shows what became of the request."""


class TlsConnection(Connection):
    """TLS through memory buffers, so that encrypted bytes are stamped as they leave the kernel.

    A record may come from several reads: its events carry the stamp of the read that completed it.
    """

    def __init__(self, transport: KernelTransport, origin: Origin, context: ssl.SSLContext) -> None:
        super().__init__(transport, origin)
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname=origin.host)
        self._handshaking = True
        self._hello_ns = 0
        self._ciphertext = bytearray()
        self._flushed = self._flushed_before = 0  # ciphertext that the socket has taken, and had before the request
        self._notified_ns = 0

    def _established(self) -> None:
        self._hello_ns = monotonic_ns()
        self._missing = NO_TLS
        self._handshake()

    @property
    def all_sent(self) -> bool:
        return super().all_sent and not self._ciphertext

    def _handshake(self) -> None:
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            self._flush()
            return
        except ssl.SSLError as error:
            self._flush()
            self.fail(handshake_error(self.origin.host, error))
            return
        self._handshaking = False
        self._flush()
        if self.exchange is not None:
            self.exchange.tls_ns = monotonic_ns() - self._hello_ns
        super()._established()

    def _flush(self) -> None:
        """Send ciphertext; what the socket does not take goes out when it is writable."""
        self._ciphertext += self._outgoing.read()
        if self.fd < 0 or not self._ciphertext:
            return
        try:
            count = self.sock.send(self._ciphertext)
        except BlockingIOError:
            count = 0
        except OSError as error:
            self._broken(error)
            return
        self._flushed += count
        del self._ciphertext[:count]
        if self._ciphertext:
            self.poller.watch(self.fd, self._reading, self._writable)

    def _push(self, data: memoryview) -> None:
        self.unsent = data
        self._flushed_before = self._flushed
        self._pump()

    def _count_written(self, exchange: Exchange, head: RequestHead) -> int:
        return self._flushed - self._flushed_before

    def _writable(self) -> None:
        if self.fd >= 0 and not self._ciphertext:
            self.poller.watch(self.fd, self._reading)
        self._flush()
        if not self._ciphertext:
            self._pump()

    def _pump(self) -> None:
        """Encrypt and send a piece at a time; the next when the socket has taken the last."""
        exchange = self.exchange
        if exchange is None or exchange.sent_end_ns:
            return
        while self.unsent is not None and not self._ciphertext:
            self._tls.write(self.unsent[:WRITE_BYTES])
            self.unsent = self.unsent[WRITE_BYTES:] or self._more()
            self._flush()
            if self.exchange is not exchange:  # the send failed
                return
        if self.unsent is None and not self._ciphertext:
            if self.fd >= 0:
                self.poller.watch(self.fd, self._reading)
            self._written()

    def _received(self, data: bytes) -> None:
        self._incoming.write(data)
        if self._handshaking:
            self._handshake()
            if self._handshaking or self.fd < 0:
                return
        plain, closed, error = decrypted(self._tls, self._incoming)
        if error is not None:
            self.fail(error)
            return
        self._flush()
        if plain:
            super()._received(plain)
        if closed and self.fd >= 0:
            if self.exchange is None or self.answer.begun:
                super()._ended()
            else:  # TCP's own end, which follows, tells whether the server has the request
                self._notified_ns = self.read_ns

    def check(self, now_ns: int) -> None:
        if self._notified_ns and now_ns - self._notified_ns > _FIN_NS:
            self._broken(ConnectionResetError(errno.ECONNRESET, CLOSED_EARLY))
        else:
            super().check(now_ns)

    def _ended(self) -> None:
        """TCP ended without close_notify: an answer that only the end of the connection delimits may have been cut."""
        exchange = self.exchange
        if exchange is not None and self.answer.status and not self.answer.complete and not self.answer.length_known:
            self.fail(ErrorDetails("the connection ended without close_notify: the answer may be cut", type="SSLEOFError"))
        else:
            super()._ended()


def handshake_error(host: str, error: ssl.SSLError) -> ErrorDetails:
    """The error of a handshake that failed."""
    verification = error.verify_message if isinstance(error, ssl.SSLCertVerificationError) else ""
    return ErrorDetails(f"{host}: TLS handshake failed: {verification or error.reason or error}", type=type(error).__name__)


def decrypted(tls: ssl.SSLObject, incoming: ssl.MemoryBIO) -> tuple[bytes, bool, ErrorDetails | None]:
    """What can be read of the bytes so far; whether the server has ended TLS; why it can't be read."""
    plain, closed = bytearray(), False
    # Until both are empty, rather than until SSLWantRead: the exception costs twice the read.
    while not closed and (incoming.pending or tls.pending()):
        try:
            piece = tls.read(READ_BYTES)
        except ssl.SSLWantReadError:  # half a record, or a session ticket
            break
        except ssl.SSLZeroReturnError:
            piece = b""
        except ssl.SSLError as error:
            return b"", False, ErrorDetails(f"TLS: {error.reason or error}", type=type(error).__name__)
        closed = not piece
        plain += piece
    return bytes(plain), closed, None
