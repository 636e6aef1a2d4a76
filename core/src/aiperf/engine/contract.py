"""What the engine and a transport ask of each other.

The engine decides when and what; a transport moves bytes and stamps them.  Everything here runs in a worker's loop, so
a transport must not block, parse answers or log per request.
"""

from __future__ import annotations

import asyncio
import ssl
from typing import Protocol

from msgspec import Struct

from aiperf.model import ErrorDetails
from aiperf.plan import TlsPlan


class Shape(Struct, frozen=True):
    """What many requests have in common: where they go and the headers that don't change.

    url: absolute.  headers: in sending order, secrets included; the transport adds Host, Content-Length, ``X-Request-ID``
    and, under each name of *session_headers*, the session's id.
    """

    url: str
    headers: dict[str, str]
    session_headers: tuple[str, ...]
    method: str = "POST"


class TransportSettings(Struct, frozen=True):
    """timeout_ns is enforced by the engine, which calls ``abort``.

    reuse: keep connections open between requests.  sticky: each session has a connection of its own, which its turns share;
    it is closed behind the last (``Exchange.final``), an error or an abort.  stamps: ask the kernel for receive stamps.
    keep_heads: report every answer's headers, not only those of failures.
    family: address family, ``4``, ``6`` or ``auto``.  proxy: honour proxy variables, where the transport can.
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
    """What a client trusts and shows of itself; HTTP/1.1 by ALPN.

    Raises:
        OSError: A file isn't there, or isn't what it should be.
    """
    context = ssl.create_default_context(cafile=plan.ca_file)
    if not plan.verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if plan.client_cert is not None:
        context.load_cert_chain(plan.client_cert, plan.client_key)
    context.set_alpn_protocols(["http/1.1"])
    return context


class Exchange:
    """One request in flight.  The engine makes it, the transport fills in what happens to it.

    Times are CLOCK_MONOTONIC ns, 0 until they are known; ``dns_ns``, ``connect_ns`` and ``tls_ns`` are durations that this
    request waited for.  *flags* are the journal's bits.  *final*: no request of its session follows.  *armed*: the sink wants
    to know when the whole request is with the kernel.  *owner* belongs to the engine, *connection* to the transport.
    """

    __slots__ = (
        "ack_ns", "armed", "body", "bytes_received", "connect_ns", "connected_ns", "connection", "deadline_ns", "dns_ns",
        "due_ns", "final", "flags", "n", "owner", "request", "request_id", "sent_end_ns", "sent_ns", "session_id", "shape",
        "started_ns", "status", "tls_ns",
    )  # fmt: skip

    def __init__(self, request: int, shape: Shape, body: bytes, request_id: str, session_id: str, started_ns: int) -> None:
        self.request = request
        self.shape = shape
        self.body = body
        self.request_id = request_id
        self.session_id = session_id
        self.started_ns = started_ns
        self.n = 0
        self.due_ns = -1
        self.deadline_ns = 0
        self.connected_ns = 0
        self.sent_ns = 0
        self.sent_end_ns = 0
        self.ack_ns = 0
        self.status = 0
        self.flags = 0
        self.final = True
        self.armed = False
        self.bytes_received = 0
        self.dns_ns = 0
        self.connect_ns = 0
        self.tls_ns = 0
        self.owner: object = None
        self.connection: object = None


class Sink(Protocol):
    """What the engine wants to hear.  Called from the loop, once per read at most; all calls are cheap."""

    def chunk(self, exchange: Exchange, body: bytes, kernel_ns: int, read_ns: int, hidden: int) -> None:
        """Body bytes came, HTTP framing removed.  *kernel_ns*: receive stamp, wall clock, 0 where there is none.
        *hidden*: TCP segments merged into this read beyond the last one."""

    def head(self, exchange: Exchange, status: int, reason: str, headers: list[tuple[str, str]]) -> None:
        """Status line and headers, for failures and where ``keep_heads`` asks."""

    def written(self, exchange: Exchange) -> None:
        """The whole request is with the kernel; of *armed* exchanges alone."""

    def done(self, exchange: Exchange, error: ErrorDetails | None) -> None:
        """The exchange is over: the whole answer is in (whatever its status), or *error* says why it isn't.

        The engine may call ``send`` again from inside.
        """


class Transport(Protocol):
    """Moves bytes.  Made once per worker by what a package registers under ``aiperf.transports``."""

    def __init__(self, settings: TransportSettings, sink: Sink, loop: asyncio.AbstractEventLoop) -> None: ...

    async def open(self) -> None:
        """Resolve names, load certificates; errors here are reported per request later, not raised."""

    async def warm(self, connections: int) -> None:
        """Open so many connections to each URL ahead of the first request, within a short time; what fails is left to the
        requests to find out.  Nothing to do where connections aren't shared."""

    def send(self, exchange: Exchange) -> None:
        """Begin; returns at once.  Sets the exchange's times and flags as they happen; ``done`` is called exactly once."""

    def abort(self, exchange: Exchange, error: ErrorDetails | None) -> None:
        """Drop it and close its connection; ``done(exchange, error)`` is called before this returns."""

    async def close(self) -> None: ...

    @property
    def statistics(self) -> dict[str, int]:
        """Counters for the measurement section: ``stamps_missing``, ``coalesced_reads``, ``opened``."""
        ...
