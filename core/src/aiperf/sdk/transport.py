"""The contract of transports.

The kernel decides when a request leaves and what it carries; a transport moves bytes and stamps them.  A transport runs on a
worker's measuring loop, so it must not block, parse answers or log per request.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

from aiperf.sdk.model import ErrorDetails
from aiperf.sdk.plan import TlsPlan

if TYPE_CHECKING:  # readers of journals use the flags below, and need neither
    import asyncio
    import ssl

REUSED, RECONNECTED, STREAMED, NO_STAMP = 1, 2, 4, 8
"""Bits of ``Exchange.flags`` and of the journal's rows: an open connection was used; it had closed and one retry was made;
the answer is an event stream; a read came without a kernel stamp.  Plain integers, because a measuring loop sets them."""


class Shape(Struct, frozen=True, weakref=True):
    """What requests have in common: where they go and the headers that don't change.

    Nearly all requests of a run share a few shapes; where a hook changes headers, each request has a shape of its own.  A
    transport that caches by shape must not keep the shape alive (``weakref.ref(shape, forget)``).

    url: absolute.  headers: in sending order, secrets included; the transport adds Host, Content-Length, ``X-Request-ID``
    and, under each name of *session_headers*, the session's id.
    """

    url: str
    headers: dict[str, str]
    session_headers: tuple[str, ...]
    method: str = "POST"


class TransportSettings(Struct, frozen=True):
    """The kernel enforces the request timeout; it calls ``abort``.

    reuse: keep connections open between requests.  sticky: each session has a connection of its own, which its turns share;
    it is closed behind the last (``Exchange.final``), an error or an abort.  stamps: ask the kernel for receive stamps.
    keep_heads: report every answer's headers, not only those of failures.
    family: address family, ``4``, ``6`` or ``auto``.  trust_env: use proxy variables of the environment, if possible.
    """

    urls: tuple[str, ...]
    tls: TlsPlan
    reuse: bool = True
    sticky: bool = False
    stamps: bool = True
    keep_heads: bool = False
    family: str = "auto"
    trust_env: bool = False


def tls_context(plan: TlsPlan) -> ssl.SSLContext:
    """Trusted certificates and the client's own; HTTP/1.1 by ALPN.

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
    context.set_alpn_protocols(["http/1.1"])
    return context


class Exchange:
    """One request in flight.  The kernel makes it; the transport fills in times, status and flags.

    Times are CLOCK_MONOTONIC ns, 0 until they are known; ``dns_ns``, ``connect_ns`` and ``tls_ns`` are durations that this
    request waited for.  *flags* are the journal's bits.  *final*: no request of its session follows.  *armed*: the
    transport calls ``written``.  *owner* belongs to the kernel, *connection* to the transport.
    """

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
    """Receives what a transport observes.  Called from the loop, at most once per read; all calls are cheap."""

    def chunk(self, exchange: Exchange, body: bytes, kernel_ns: int, read_ns: int, hidden: int) -> None:
        """Body bytes, without HTTP framing.  *kernel_ns*: receive stamp, wall clock, 0 where there is none.
        *hidden*: TCP segments merged into this read beyond the last one."""

    def head(self, exchange: Exchange, status: int, reason: str, headers: list[tuple[str, str]]) -> None:
        """Status line and headers, for failures and where ``keep_heads`` asks."""

    def written(self, exchange: Exchange) -> None:
        """The operating system has the whole request.  Called for *armed* exchanges alone."""

    def done(self, exchange: Exchange, error: ErrorDetails | None) -> None:
        """The exchange is over: the whole answer is in, of any status, or *error* says why not.

        The kernel may call ``send`` from inside.
        """


class Transport(Protocol):
    """Moves bytes.  A worker makes one transport, of a class registered under ``aiperf.transports``."""

    def __init__(self, settings: TransportSettings, sink: Sink, loop: asyncio.AbstractEventLoop) -> None: ...

    async def open(self) -> None:
        """Resolve names and load certificates; errors are reported by each request, not raised."""

    async def warm(self, connections: int) -> None:
        """Open connections to each URL ahead of the first request, within a short time.  Failures are ignored: the requests
        report them.  Transports that don't share connections do nothing."""

    def send(self, exchange: Exchange) -> None:
        """Begin; returns at once.  Sets the exchange's times and flags as they happen; ``done`` is called exactly once."""

    def abort(self, exchange: Exchange, error: ErrorDetails | None) -> None:
        """Drop the exchange and close its connection; ``done(exchange, error)`` is called before this returns."""

    async def close(self) -> None: ...

    @property
    def statistics(self) -> dict[str, int]:
        """Counters for the measurement section: ``stamps_missing``, ``coalesced_reads``, ``opened``."""


__all__ = [
    "NO_STAMP", "RECONNECTED", "REUSED", "STREAMED", "Exchange", "Shape", "Sink", "Transport", "TransportSettings",
    "tls_context",
]  # fmt: skip
