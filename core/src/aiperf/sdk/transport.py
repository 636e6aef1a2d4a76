"""The contract of transports.

The kernel decides when a request leaves and what it carries; a transport moves bytes and stamps them.  A transport runs on a
worker's measuring loop, so it must not block, parse answers or log per request.
"""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable
from urllib.parse import unquote

from msgspec import Struct

from aiperf.sdk.model import ErrorDetails
from aiperf.sdk.plan import TlsPlan

if TYPE_CHECKING:  # readers of journals use the flags below, and need neither
    import asyncio
    import ssl
    from collections.abc import Iterable, Sequence

REUSED, RECONNECTED, STREAMED, NO_STAMP, MESSAGES, RESENT = 1, 2, 4, 8, 16, 32
"""Bits of ``Exchange.flags`` and of the journal's rows: an open connection was used; one had closed before the request was
written to it, and another took the request; the answer is an event stream; a read came without a kernel stamp; the answer is of
messages (``Sink.message`` sets it); the request was written a second time, to a new connection, because the server had closed
the open one and acknowledged nothing of it.  Plain integers, because a measuring loop sets them."""
MOST_INTERIM = 100
"""Answers below 200 before the one that counts; more are no HTTP that anyone speaks."""
REFUSED, EXHAUSTED = "refused", "client limit"
"""Values of ``ErrorDetails.cause``: no connection to the server could be opened; this machine had nothing left to open one."""
HIDDEN_BITS = 20
"""Of *hidden* of ``Sink.chunk``: the bits below the time, which count segments; the highest of them is LAST_HIDDEN."""
LAST_HIDDEN = 1 << (HIDDEN_BITS - 1)
"""Of *hidden* of ``Sink.chunk``: the last event of the read came earlier, too, as far as anyone knows, because the last segment
brought something of another exchange.  For reads of connections that exchanges share."""
END_MARKER = b"[DONE]"
"""The data of the last event of a stream."""
UNIX = "unix"
"""The scheme of URLs such as ``unix:///run/server.sock``: a socket of this machine, HTTP without TLS."""
LONGEST_SOCKET_PATH = 107
"""Bytes of the path of such a socket: unix(7)."""
NO_TLS = "TCP connects, but nothing answers TLS"
"""Of a server whose TLS handshake takes longer than ``TransportSettings.connect_s``, which follows."""
_LIMITS = {
    errno.EMFILE: "this process has no open file left; raise the limit (ulimit -n)",
    errno.ENFILE: "this machine has no open file left; raise the limit (sysctl fs.file-max)",
    errno.EADDRNOTAVAIL: (
        "this machine has no local port left; raise the limit (sysctl net.ipv4.ip_local_port_range) or keep connections open"
    ),
    errno.ENOBUFS: "this machine has no socket buffer left; raise the limit (sysctl net.core.wmem_max)",
}


class Shape(Struct, frozen=True, weakref=True):
    """What requests have in common: where they go and the headers that don't change.

    Nearly all requests of a run share a few shapes; where a hook changes headers, each request has a shape of its own.  A
    transport that caches by shape must not keep the shape alive (``weakref.ref(shape, forget)``).

    url: absolute.  headers: in sending order, secrets included; the transport adds Host, Content-Length, ``X-Request-ID``
    and, under each name of *session_headers*, the session's id.  drain: nobody keeps the bytes of good answers (2xx), which may
    be longer than ``TransportSettings.most_bytes``.
    parts: of a body that is several messages, bytes and ns to wait before each; they are sent one after the other, while the
    answer is read.  Transports whose class says ``sends_parts`` alone get such shapes.
    """

    url: str
    headers: dict[str, str]
    session_headers: tuple[str, ...]
    method: str = "POST"
    drain: bool = False
    parts: tuple[tuple[int, int], ...] = ()

    def drains(self, status: int) -> bool:
        """Whether nobody keeps the bytes of an answer with this status."""
        return self.drain and 200 <= status < 300


class TransportSettings(Struct, frozen=True):
    """The kernel enforces the request timeout; it calls ``abort``.

    reuse: keep connections open between requests.  sticky: each session has a connection of its own, which its turns share;
    it is closed behind the last (``Exchange.final``), an error or an abort.  stamps: ask the kernel for receive stamps.
    keep_heads: report every answer's headers, not only those of failures.
    family: address family, ``4``, ``6`` or ``auto``.  trust_env: use proxy variables of the environment, if possible.
    connect_s: longest time to open a connection, TLS included.  most_bytes: of an answer's body; a longer one is an error.
    most_head_bytes: of an answer's head, or of one of its headers.  head_s: from the first byte of a head to its end.
    end_s: an event stream that is still open so long after END_MARKER is over.
    event_mark: bytes that stand once in each event of a stream, so that a read with more of them is one of several events; b""
    where there are none.  None: streams are server-sent events, known by their content type; else every answer is a stream.
    options: the transport plugin's own (``options_model`` of its manifest), None where it declares none.
    """

    urls: tuple[str, ...]
    tls: TlsPlan
    reuse: bool = True
    sticky: bool = False
    stamps: bool = True
    keep_heads: bool = False
    family: str = "auto"
    trust_env: bool = False
    connect_s: float = 30.0
    most_bytes: int = 1 << 30
    most_head_bytes: int = 1 << 16
    end_s: float = 1.0
    head_s: float = 30.0
    event_mark: bytes | None = None
    options: Any = None


def socket_path(url: str, bases: Iterable[str]) -> tuple[str, str]:
    """The path of the socket in a URL with the scheme UNIX, and what is asked there: ``/v1/models``, "/" without a path.

    *bases*: base URLs, of which it begins with one: a URL by itself doesn't tell where the socket's path ends.

    Raises:
        ValueError: It begins with none of them.
    """
    for base in sorted(bases, key=len, reverse=True):
        socket = base.partition("?")[0].rstrip("/")
        if base.startswith(f"{UNIX}://") and url.startswith(socket) and url[len(socket) : len(socket) + 1] in ("", "/", "?"):
            asked = url[len(socket) :]
            return unquote(socket.removeprefix(f"{UNIX}://")), asked if asked.startswith("/") else f"/{asked}"
    raise ValueError(f"{url} is below none of the run's sockets")


def tls_context(plan: TlsPlan, protocols: Sequence[str] = ("http/1.1",)) -> ssl.SSLContext:
    """Trusted certificates and the client's own, and the *protocols* for ALPN, the preferred one first.

    Raises:
        OSError: A file is missing or invalid.
    """
    import ssl

    context = ssl.create_default_context(cafile=plan.ca_file)
    if not plan.verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if plan.client_cert is not None:
        context.load_cert_chain(plan.client_cert, plan.client_key)
    context.set_alpn_protocols(list(protocols))
    return context


def connect_error(server: str, error: OSError) -> ErrorDetails:
    """Why no connection to *server* (``host:port``) could be opened: REFUSED, or EXHAUSTED with the limit to raise."""
    limit = _LIMITS.get(error.errno or 0)
    message, cause = (error.strerror or str(error), REFUSED) if limit is None else (limit, EXHAUSTED)
    return ErrorDetails(f"{server}: {message}", type=type(error).__name__, cause=cause)


class Exchange:
    """One request in flight.  The kernel makes it; the transport fills in times, status and flags.

    Times are CLOCK_MONOTONIC ns, 0 until they are known; ``dns_ns``, ``connect_ns`` and ``tls_ns`` are durations that this
    request waited for; ``connect_ns`` without ``connected_ns`` says that TCP is open, and the server has yet to answer to TLS.
    *flags* are the journal's bits.  *final*: no request of its session follows.  *armed*: the
    transport calls ``written``.  *owner* belongs to the kernel, *connection* to the transport.
    """

    # More than 20 attributes: they are the fields of a request's row, which the transport fills in place.

    __slots__ = (
        "ack_ns", "armed", "body", "bytes_received", "connect_ns", "connected_ns", "connection", "deadline_ns", "dns_ns",
        "final", "flags", "owner", "request", "request_id", "sent_end_ns", "sent_ns", "session_id", "shape", "started_ns",
        "status", "tls_ns",
    )  # fmt: skip

    def __init__(self, request: int, shape: Shape, body: bytes, request_id: str, session_id: str, started_ns: int) -> None:
        self.request, self.shape, self.body = request, shape, body
        self.request_id, self.session_id = request_id, session_id
        self.started_ns = started_ns
        self.deadline_ns = self.connected_ns = self.sent_ns = self.sent_end_ns = self.ack_ns = 0
        self.dns_ns = self.connect_ns = self.tls_ns = 0
        self.status = self.flags = self.bytes_received = 0
        self.final, self.armed = True, False
        self.owner: object = None
        self.connection: object = None


class Sink(Protocol):
    """Receives what a transport observes.  Called from the loop; all calls are cheap.

    A transport of byte streams calls ``chunk``, at most once per read, and the endpoint's framing divides the stream.  One of
    a protocol that has messages calls ``message`` once for each: it is one event as it is, whatever the framing.
    """

    def chunk(self, exchange: Exchange, body: bytes, kernel_ns: int, read_ns: int, hidden: int) -> None:
        """Body bytes, without HTTP framing.  *kernel_ns*: receive stamp, wall clock, 0 where there is none.
        *read_ns*: monotonic, when the read began; what later reads bring came after it.  Without a receive stamp, when it had
        ended.  *hidden*: TCP segments merged into this read beyond the last one; rather too many than too few.  A
        transport that has seen the socket empty since its read before adds ``(read_ns - empty_ns) << HIDDEN_BITS`` to a number
        above 0: all of this read came after *empty_ns*.

        A transport whose reads hide segments reads at least 64 KiB at once, if there are so many.  Where exchanges share
        connections, LAST_HIDDEN is among the bits unless the read ends with this exchange's bytes.
        """

    def message(self, exchange: Exchange, data: bytes, kernel_ns: int, read_ns: int, hidden: int = 0) -> None:
        """One whole message without its framing, also of an answer that has no other; stamps as in ``chunk``, those of the
        read that completed it.  The answer is streamed where the run asks for streams.

        *hidden*: 0 where the last segment of the read brought it; else as in ``chunk``, and it may have come earlier.
        """

    def trailers(self, exchange: Exchange, trailers: list[tuple[str, str]]) -> None:
        """What came behind the answer, once, before ``done``: the endpoint reads it (``Endpoint.trailers``)."""

    def head(self, exchange: Exchange, status: int, reason: str, headers: list[tuple[str, str]]) -> None:
        """Status line and headers, for failures, where ``keep_heads`` asks, and where the body is encoded
        (``Content-Encoding``) or its type is neither JSON nor an event stream."""

    def written(self, exchange: Exchange) -> None:
        """The operating system has the whole request.  Called for *armed* exchanges alone."""

    def done(self, exchange: Exchange, error: ErrorDetails | None) -> None:
        """The exchange is over: the whole answer is in, of any status, or *error* says why not.

        The kernel may call ``send`` from inside.
        """


class Transport(Protocol):
    """Moves bytes.  A worker makes one transport, of a class registered under ``aiperf.transports``.

    A class attribute *stamps* says whose stamps its reads have: ``kernel``, as of a class without it, where the operating
    system's kernel stamps them, and a read without such a stamp is reported; ``read`` where the transport has none to give.
    """

    def __init__(self, settings: TransportSettings, sink: Sink, loop: asyncio.AbstractEventLoop) -> None: ...

    async def open(self) -> None:
        """Resolve names and load certificates; errors are reported by each request, not raised."""

    async def warm(self, connections: int) -> None:
        """Open connections to each URL ahead of the first request, within a short time.  Failures are ignored: the requests
        report them.  Transports that don't share connections do nothing."""

    def send(self, exchange: Exchange) -> None:
        """Begin; returns at once.  Sets the exchange's times and flags as they happen; ``done`` is called exactly once.

        Where no connection can be opened the error is :func:`connect_error`'s, and ``sent_ns`` stays 0.

        No server may get a request twice.  A request goes to a second connection only where the first had closed before
        anything was written (RECONNECTED), or where the server has closed it and acknowledged nothing of the request (RESENT).
        A reset shows neither once something was written, and what a transport can't tell is an error.
        """

    def abort(self, exchange: Exchange, error: ErrorDetails | None) -> None:
        """End the exchange for the server, too; ``done(exchange, error)`` is called before this returns.

        Where the connection carries nothing else, it is closed; one that other exchanges share stays open (RST_STREAM).
        """

    async def close(self) -> None: ...

    # changing_bodies, a bool of the class, is optional: where it is true, the body of a later turn may be a bytearray, which
    # the kernel changes once the exchange is over and its session goes on, and a long body a memoryview.  Others get a copy.

    # sends_parts, a bool of the class, is optional: where it is true, requests may be of several messages (``Shape.parts``);
    # ``Exchange.sent_ns`` is then of the head, and ``Exchange.sent_end_ns`` of the last message.

    # part(session_id), of a transport with sticky connections, is optional: close the idle connection of a session whose last
    # request took several exchanges, of which none was ``final``.

    @property
    def statistics(self) -> dict[str, int]:
        """Counters for the measurement section: ``stamps_missing``, ``coalesced_reads``, ``opened``.

        Where exchanges share connections also ``multiplexers``, 1; ``streams_per_connection``, the most exchanges at once on
        one; ``window_stalls``, how often the server's windows held a request up, and ``window_stalled_ns``, for how long a
        connection had something that they held up.
        """


@runtime_checkable
class HeaderSource(Protocol):
    """A transport that can say what it would write; optional.  ``--dry-run`` shows it."""

    def request_headers(self, exchange: Exchange) -> Sequence[tuple[str, str]]:
        """The headers of the request in their order on the wire, with those that the transport adds; nothing is sent.

        May be called before ``open``.
        """


__all__ = [
    "END_MARKER",
    "EXHAUSTED",
    "HIDDEN_BITS",
    "LAST_HIDDEN",
    "MESSAGES",
    "MOST_INTERIM",
    "NO_STAMP",
    "NO_TLS",
    "RECONNECTED",
    "REFUSED",
    "RESENT",
    "REUSED",
    "STREAMED",
    "UNIX",
    "Exchange",
    "HeaderSource",
    "Shape",
    "Sink",
    "TlsPlan",
    "Transport",
    "TransportSettings",
    "connect_error",
    "socket_path",
    "tls_context",
]  # fmt: skip
