"""Single requests over http or https beside the load: a page of metrics, a word to the run's servers."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, urlsplit

from msgspec import Struct

from aiperf.errors import AiperfError
from aiperf.redaction import without_secrets
from aiperf.sdk.plan import TargetPlan, TlsPlan
from aiperf.sdk.transport import tls_context

if TYPE_CHECKING:
    from http.client import HTTPConnection

MOST_BYTES = 64 << 20
"""The largest page that is read."""
_PIECE_BYTES = 1 << 16
_PORTS = {"http": 80, "https": 443}
_cached_tls_context = lru_cache(maxsize=8)(tls_context)  # reading the system's certificates takes 20 ms


class FetchError(AiperfError):
    """A page can't be fetched.  url: without secrets.  status: of the answer, None where none came."""

    def __init__(self, url: str, why: str, status: int | None = None) -> None:
        self.url, self.status = without_secrets(url), status
        super().__init__(f"{self.url}: {why}")


class Fetched(Struct, frozen=True):
    """A page.  content_type: "" where the server names none.

    sent_ns, at_ns: wall clock when the request was sent, and at the first byte of the answer.
    """

    body: bytes
    content_type: str
    at_ns: int
    sent_ns: int = 0


def origin(url: str) -> tuple[str, str, int | None]:
    """Scheme, host and port of a URL.

    Raises:
        ValueError: It has no valid port.
    """
    parts = urlsplit(url)
    return parts.scheme, parts.hostname or "", parts.port or _PORTS.get(parts.scheme)


def fetch(
    url: str, timeout_s: float, *, headers: Mapping[str, str], tls: TlsPlan, most_bytes: int = MOST_BYTES, method: str = "GET"
) -> Fetched:
    """GET a page with status 200.  It follows no redirect, since headers belong to one server, and uses no proxy.

    timeout_s: for the connection, for each read, and for the whole body.  method: any other takes every 2xx, without a body.

    Raises:
        FetchError: There is no such page, it is larger than *most_bytes*, or the server can't be reached in time.
    """
    from http.client import HTTPException  # 20 ms

    until_s = time.monotonic() + timeout_s
    try:
        parts = urlsplit(url)
        if parts.scheme not in _PORTS or not parts.hostname or parts.username is not None:
            raise ValueError("it must be http or https with a host; credentials go into headers")
        connection = _connection(parts, timeout_s, tls)
        try:
            target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
            common = {"Accept-Encoding": "identity", "Connection": "close", "User-Agent": "aiperf"}
            connection.connect()
            sent_ns = time.time_ns()
            connection.request(method, target, headers={**common, **headers})
            answer, pieces = connection.getresponse(), list[bytes]()
            at_ns, left = time.time_ns(), most_bytes
            if answer.status != 200 and (method == "GET" or not 200 <= answer.status < 300):
                raise FetchError(url, f"the server answers {answer.status} {answer.reason}".rstrip(), answer.status)
            while piece := answer.read1(min(_PIECE_BYTES, left + 1)):
                pieces.append(piece)
                left -= len(piece)
                if left < 0:
                    raise FetchError(url, f"the page has more than {most_bytes:,} bytes", answer.status)
                if time.monotonic() > until_s:
                    raise TimeoutError(f"no end of the page within {timeout_s:g} s")
            if answer.length:
                raise ValueError(f"the page was cut, {answer.length:,} bytes before its end")
            return Fetched(b"".join(pieces), answer.headers.get("Content-Type", ""), at_ns, sent_ns)
        finally:
            connection.close()
    except (OSError, HTTPException, ValueError) as error:
        raise FetchError(url, getattr(error, "strerror", None) or str(error) or type(error).__name__) from error


class Servers:
    """The servers of a run, for plugins that tell them something beside the load.  The run's headers and its key stay inside.

    urls: below which paths stand, one for each server.
    """

    def __init__(
        self, target: TargetPlan, headers: Mapping[str, str], wait: Callable[[float], bool] = lambda _: True
    ) -> None:
        self.urls = tuple(dict.fromkeys(_root(url, target.path) for url in target.urls))
        self._headers, self._tls, self._wait = headers, target.tls, wait

    def post(self, url: str, path: str, timeout_s: float) -> None:
        """POST without a body to *path* of the server at *url*, one of ``urls``.

        Raises:
            FetchError: It answers with another status than 2xx, or can't be reached in time.
        """
        base, mark, query = url.partition("?")
        headers = {"Content-Length": "0", **self._headers}
        fetch(f"{base}{path}{mark}{query}", timeout_s, headers=headers, tls=self._tls, method="POST")

    def get(self, url: str, path: str, timeout_s: float, *, most_bytes: int = 1 << 20) -> Fetched:
        """GET *path* of the server at *url*: one of ``urls``, or another path of its host.

        Raises:
            FetchError: It answers with another status than 200, can't be reached in time, or is another server.
        """
        if all(origin(url) != origin(own) for own in self.urls):
            raise FetchError(url, "it is none of the run's servers, and gets no header of theirs")
        base, mark, query = url.partition("?")
        return fetch(f"{base}{path}{mark}{query}", timeout_s, headers=self._headers, tls=self._tls, most_bytes=most_bytes)

    def wait(self, seconds: float) -> bool:
        """Wait; False at once where the run is to end."""
        return self._wait(seconds)


def _root(url: str, path: str) -> str:
    """The base URL without the API's version and the path of requests."""
    base, mark, query = url.partition("?")
    return base.rstrip("/").removesuffix(path).removesuffix("/v1") + mark + query


def _connection(parts: SplitResult, timeout_s: float, tls: TlsPlan) -> HTTPConnection:
    from http.client import HTTPConnection, HTTPSConnection

    host = parts.hostname or ""
    if parts.scheme == "http":
        return HTTPConnection(host, parts.port, timeout=timeout_s)
    return HTTPSConnection(host, parts.port, timeout=timeout_s, context=_cached_tls_context(tls))


__all__ = ["FetchError", "Fetched", "Servers", "origin"]
