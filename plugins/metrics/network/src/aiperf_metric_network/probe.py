"""One place to connect to, and how long the network takes to answer."""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import sys
import time
from collections.abc import Iterable
from urllib.parse import urlsplit

from aiperf.sdk.environment import ip_version, trust_env
from aiperf.sdk.errors import AiperfError
from aiperf.sdk.telemetry import Point, SeriesDeclaration, SeriesKind, SeriesTable, TelemetryTarget
from msgspec import Struct

RTT, FAILURE = "network_rtt", "network_probe_failure"
DIRECT, PROXY, TLS = "direct", "proxy", "tls"
"""What answers there: the server, for all that is known; a proxy; whatever ends TLS, which may stand before the server."""
TIMEOUT_S = 1.0
"""Longest wait for an answer: a lost packet is sent again after 1 s, and its round trip isn't the network's."""
_PORTS = {"http": 80, "https": 443, "ws": 80, "wss": 443}
_SECURE = ("https", "wss", "grpcs")
_FAMILIES = {"4": socket.AF_INET, "6": socket.AF_INET6, "auto": socket.AF_UNSPEC}
_TCP_INFO = struct.Struct("8x24I")
"""``struct tcp_info`` of linux/tcp.h, up to ``tcpi_total_retrans``."""
_SRTT, _RETRANSMITTED = 15, 23
"""Places there of the round trip in us, and of the number of packets that were sent again."""
_LABELS = ("url", "host", "port", "via")
SERIES = SeriesTable(
    SeriesDeclaration(RTT, "ms", labels=_LABELS, help="Round trip of the network, by a TCP connection."),
    SeriesDeclaration(FAILURE, kind=SeriesKind.INFO, labels=(*_LABELS, "error"), help="Why a connection failed."),
)


class ProbePlace(Struct, frozen=True):
    """url: base URL of the server.  host, port: where connections go.  via: DIRECT, PROXY or TLS."""

    url: str
    host: str
    port: int
    via: str


def places(urls: Iterable[str]) -> list[ProbePlace]:
    """Where the connections of these base URLs go, each host and port once."""
    found: dict[tuple[str, int], ProbePlace] = {}
    for url in urls:
        place = _place(url)
        if place is not None:
            found.setdefault((place.host, place.port), place)
    return list(found.values())


def _place(url: str) -> ProbePlace | None:
    proxy, parts = _proxy_of(url), urlsplit(url)
    via = PROXY if proxy else TLS if parts.scheme in _SECURE else DIRECT
    address = urlsplit(proxy or url)
    port = address.port or _PORTS.get(address.scheme)
    return ProbePlace(url, address.hostname, port, via) if address.hostname and port else None


def _proxy_of(url: str) -> str:
    """The proxy that the environment names for a URL, where the run honours it; "" for a direct connection."""
    if not trust_env():
        return ""
    from urllib.request import getproxies, proxy_bypass  # 40 ms

    proxies, parts = getproxies(), urlsplit(url)
    named = proxies.get(parts.scheme) or proxies.get("all") or ""
    if not named or proxy_bypass(parts.netloc):
        return ""
    return named if "://" in named else f"http://{named}"


class NetworkTarget(TelemetryTarget):
    """Connects, and closes at once.  A connection that fails is a point, too: the run's other probes go on."""

    def __init__(self, place: ProbePlace, interval_s: float) -> None:
        self.name, self.interval_s, self._place = place.url, interval_s, place
        self._addresses: list[tuple[int, tuple[object, ...]]] = []

    def sample(self) -> list[Point]:
        place = self._place
        labels = place.url, place.host, str(place.port), place.via
        try:
            return [SERIES.point(RTT, self._round_trip_ns() / 1e6, *labels)]
        except (OSError, AiperfError) as error:
            self._addresses = []  # they may have changed
            return [SERIES.point(FAILURE, 1.0, *labels, _why(error))]

    def _round_trip_ns(self) -> int:
        """By the first address that answers, which the next probe takes first."""
        if not self._addresses:
            family = _FAMILIES[ip_version()]
            found = socket.getaddrinfo(self._place.host, self._place.port, family, socket.SOCK_STREAM)
            self._addresses = [(each, address) for each, _, _, _, address in found]
        failure: OSError | None = None
        for family_and_address in self._addresses:
            try:
                round_trip_ns = connected_ns(*family_and_address)
            except OSError as error:
                failure = failure or error
                continue
            self._addresses = [family_and_address]
            return round_trip_ns
        raise failure or OSError("it has no address")


def connected_ns(family: int, address: tuple[object, ...], timeout_s: float = TIMEOUT_S) -> int:
    """The round trip to an address in ns, by a TCP connection that is closed at once.

    The kernel's own figure where it has one (Linux): this process may be kept waiting behind the load, the kernel isn't.

    Raises:
        OSError: It can't be reached, or doesn't answer in time.
    """
    with contextlib.closing(socket.socket(family, socket.SOCK_STREAM)) as connection:
        connection.settimeout(timeout_s)
        began_ns = time.monotonic_ns()
        connection.connect(address)
        took_ns = time.monotonic_ns() - began_ns
        return min(took_ns, _kernels_ns(connection) or took_ns)


def _kernels_ns(connection: socket.socket) -> int | None:
    """The round trip of the packets that opened a connection; None where the kernel doesn't know it."""
    if sys.platform != "linux":
        return None
    with contextlib.suppress(OSError):
        told = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO.size)
        if len(told) == _TCP_INFO.size:
            numbers = _TCP_INFO.unpack(told)
            if numbers[_SRTT] and not numbers[_RETRANSMITTED]:
                return int(numbers[_SRTT]) * 1000
    return None


def _why(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return f"no answer in {TIMEOUT_S:g} s"
    if isinstance(error, OSError) and error.errno is not None and not isinstance(error, socket.gaierror):
        return os.strerror(error.errno)
    return str(error) or type(error).__name__


__all__ = ["DIRECT", "FAILURE", "PROXY", "RTT", "TIMEOUT_S", "TLS", "NetworkTarget", "ProbePlace", "connected_ns", "places"]
