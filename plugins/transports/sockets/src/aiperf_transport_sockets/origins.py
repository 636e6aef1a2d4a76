"""Where connections go: a scheme, host and port with its addresses and certificates."""

from __future__ import annotations

import asyncio
import socket
import ssl
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from aiperf.sdk.model import ErrorDetails
from aiperf.sdk.transport import REFUSED, TransportSettings, tls_context

if TYPE_CHECKING:
    from aiperf_transport_sockets.connection import Connection

TLS_SCHEMES = ("https", "grpcs")


class Origin:
    """One scheme, host and port: its addresses, certificates and idle connections.

    error: why the origin cannot be reached at all, None while it can.  failed: connections opened ahead of requests that
    were refused.
    """

    def __init__(self, scheme: str, host: str, port: int) -> None:
        self.scheme, self.host, self.port = scheme, host, port
        self.addresses: list[tuple[int, Any]] = []
        self.error: ErrorDetails | None = None
        self.idle: list[Connection] = []
        self.tls: ssl.SSLContext | None = None
        self.failed = 0

    @property
    def host_header(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _port(self.scheme) else f"{host}:{self.port}"


def origin_key(url: str) -> tuple[str, str, int]:
    """The scheme, host and port of a URL."""
    parts = urlsplit(url)
    return parts.scheme, parts.hostname or "", parts.port or _port(parts.scheme)


def _port(scheme: str) -> int:
    return 443 if scheme in TLS_SCHEMES else 80


async def resolve(
    origin: Origin, settings: TransportSettings, loop: asyncio.AbstractEventLoop, protocols: tuple[str, ...] = ("http/1.1",)
) -> None:  # fmt: skip
    """Look the name up once, off the loop, and read the certificates; an error here becomes the error of every request.

    *protocols*: for ALPN.
    """
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
