"""Where connections go: a scheme, host and port with its addresses and certificates, or a socket of this machine."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections.abc import Iterator, Sequence
from time import monotonic_ns
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from aiperf.sdk.model import ErrorDetails
from aiperf.sdk.transport import REFUSED, UNIX, TransportSettings, socket_path, tls_context

if TYPE_CHECKING:
    from aiperf_transport_sockets.connection import Connection

log = logging.getLogger("aiperf.transports.kernel")

TLS_SCHEMES = ("https", "grpcs")
_REST_NS, _BEHIND_NS = 5_000_000, 100_000_000
_PARTED = 2
"""So many connections that were closed right behind their streams show that every one is."""


class Origin:
    """One scheme, host and port: its addresses, certificates and idle connections.

    Of a socket of this machine *host* is its path, *port* 0, and *base* the part of URLs that names it.

    A server may end the connection behind each stream without having said so: a request that is sent meanwhile fails.  Until a
    connection has carried an answer behind a stream (*keeps*), one is used again 5 ms after its stream at the earliest.  Where
    the server has closed two by then, within 100 ms behind their streams, no stream's connection is used again
    (*parts_behind_streams*).

    error: why the origin cannot be reached at all, None while it can.  failed: connections opened ahead of requests that
    were refused.
    """

    def __init__(self, scheme: str, host: str, port: int, base: str = "") -> None:
        self.scheme, self.host, self.port, self.base = scheme, host, port, base
        self.addresses: list[tuple[int, Any]] = []
        self.error: ErrorDetails | None = None
        self.idle: list[Connection] = []
        self.tls: ssl.SSLContext | None = None
        self.failed = 0
        self.keeps = self.parts_behind_streams = False
        self._parted = 0

    def rested(self) -> bool:
        """Move an idle connection to the end that may be used before it is known that the server keeps them: a stream was not
        the last thing that it carried, or long enough ago.  False where there is none."""
        latest_ns = monotonic_ns() - _REST_NS
        for index, connection in enumerate(self.idle):
            if connection.streamed_ns < latest_ns:
                self.idle.append(self.idle.pop(index))
                return True
        return False

    def parted(self, streamed_ns: int) -> None:
        """The server has closed a connection.  *streamed_ns*: when its last answer, a stream, was whole; 0 of another one."""
        if not streamed_ns or self.keeps or self.parts_behind_streams or monotonic_ns() - streamed_ns > _BEHIND_NS:
            return
        self._parted += 1
        if self._parted >= _PARTED:
            self.parts_behind_streams = True
            log.info("%s closes the connection behind each stream: each request opens its own", self.name)

    @property
    def name(self) -> str:
        """The server in a message: ``host:port``, or the socket's URL."""
        return self.base or f"{self.host}:{self.port}"

    def target(self, url: str) -> str:
        """What a URL of this origin asks for: path and query."""
        if self.base:
            asked = url[len(self.base) :]
            return asked if asked.startswith("/") else f"/{asked}"
        parts = urlsplit(url)
        return (parts.path or "/") + (f"?{parts.query}" if parts.query else "")

    @property
    def host_header(self) -> str:
        if self.base:
            return "localhost"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _port(self.scheme) else f"{host}:{self.port}"


def origin_key(url: str, bases: Sequence[str] = ()) -> tuple[str, str, int, str]:
    """The scheme, host, port and base of a URL, with which its :class:`Origin` is made.  *bases*: the URLs of the settings."""
    if url.startswith(f"{UNIX}://"):
        path, _ = socket_path(url, bases)
        return UNIX, path, 0, next(base for base in _sockets(bases) if url.startswith(base))
    parts = urlsplit(url)
    return parts.scheme, parts.hostname or "", parts.port or _port(parts.scheme), ""


def _sockets(bases: Sequence[str]) -> list[str]:
    """The base URLs of sockets of this machine, the longest first."""
    return sorted((base.rstrip("/") for base in bases if base.startswith(f"{UNIX}://")), key=len, reverse=True)


def _port(scheme: str) -> int:
    return 443 if scheme in TLS_SCHEMES else 80


class Origins:
    """The origins of a run's URLs, each made when it is first asked for."""

    def __init__(self, settings: TransportSettings) -> None:
        self._settings = settings
        self._known: dict[tuple[str, str, int, str], Origin] = {}

    def __iter__(self) -> Iterator[Origin]:
        return iter(self._known.values())

    def of(self, url: str) -> Origin:
        """The origin of a URL."""
        key = origin_key(url, self._settings.urls)
        if key not in self._known:
            self._known[key] = Origin(*key)
        return self._known[key]

    async def resolve(self, loop: asyncio.AbstractEventLoop, protocols: tuple[str, ...] = ("http/1.1",)) -> None:
        """Resolve the origins of the settings' URLs.  *protocols*: for ALPN."""
        for url in self._settings.urls:
            await _resolve(self.of(url), self._settings, loop, protocols)


async def _resolve(
    origin: Origin, settings: TransportSettings, loop: asyncio.AbstractEventLoop, protocols: tuple[str, ...]
) -> None:  # fmt: skip
    """Look the name up once, off the loop, and read the certificates; an error here becomes the error of every request.

    *protocols*: for ALPN.
    """
    if origin.base:
        origin.addresses = [(socket.AF_UNIX, origin.host)]
        return
    family = {"4": socket.AF_INET, "6": socket.AF_INET6}.get(settings.family, socket.AF_UNSPEC)
    try:
        entries = await loop.getaddrinfo(origin.host, origin.port, family=family, type=socket.SOCK_STREAM)
        if origin.scheme in TLS_SCHEMES:
            origin.tls = tls_context(settings.tls, protocols)
    except (OSError, UnicodeError) as error:  # errors of certificates, too
        reason = error.strerror or error if isinstance(error, OSError) else f"no host name: {error}"
        origin.error = ErrorDetails(f"{origin.host}: {reason}", type=type(error).__name__, cause=REFUSED)
        return
    # IPv4 first: servers under test listen there more often than not, and a refused IPv6 attempt costs a round trip.
    origin.addresses = [(entry[0], entry[4]) for entry in sorted(entries, key=lambda entry: entry[0] != socket.AF_INET)]
