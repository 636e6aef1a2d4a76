"""Single requests over http, https or a socket of this machine beside the load: a page of metrics, a word to the servers."""

from __future__ import annotations

import re
import socket
import time
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from urllib.parse import SplitResult, urlsplit

from msgspec import Struct

from aiperf.errors import AiperfError
from aiperf.redaction import without_secrets
from aiperf.sdk.plan import TargetPlan, TlsPlan
from aiperf.sdk.transport import UNIX, socket_path, tls_context

MOST_BYTES = 64 << 20
"""The largest page that is read."""
_PIECE_BYTES = _MOST_HEAD_BYTES = 1 << 16
_UNSAFE, _LINE_END = re.compile(r"[\x00-\x20\x7f]"), re.compile(r"[\x00\r\n]")
_PORTS = {"http": 80, "https": 443}
_UNIX_URL = f"{UNIX}://"
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


def is_below(url: str, bases: Iterable[str]) -> bool:
    """Whether the URL is of one of the servers with these base URLs: scheme, host and port are the same, or the socket.

    Raises:
        ValueError: It has no valid port.
    """
    if not url.startswith(_UNIX_URL):
        return origin(url) in map(origin, bases)
    try:
        socket_path(url, bases)
    except ValueError:
        return False
    return True


def fetch(
    url: str, timeout_s: float, *, headers: Mapping[str, str], tls: TlsPlan, most_bytes: int = MOST_BYTES, method: str = "GET",
    bases: Iterable[str] = (),
) -> Fetched:  # fmt: skip
    """GET a page with status 200.  It follows no redirect, since headers belong to one server, and uses no proxy.

    timeout_s: for the connection, for each read, and for the whole body.  method: any other takes every 2xx, without a body.
    bases: base URLs, which tell where the path of a socket of this machine ends.

    Raises:
        FetchError: There is no such page, it is larger than *most_bytes*, or the server can't be reached in time.
    """
    try:
        path, parts = "", urlsplit(url)
        if parts.scheme == UNIX:
            path, asked = socket_path(url, bases)
            parts = urlsplit(f"http://localhost{asked}")
        if parts.scheme not in _PORTS or not parts.hostname or parts.username is not None:
            raise ValueError("it must be http or https with a host; credentials go into headers")
        message = _message(method, parts, headers)
        until_s = time.monotonic() + timeout_s
        with _local(path, timeout_s) if path else _connected(parts, timeout_s, tls) as connection:
            sent_ns = time.time_ns()
            connection.sendall(message)
            answer = _Answer()
            while not answer.read(connection.recv(_PIECE_BYTES)):
                if answer.body_bytes > most_bytes:
                    break
                if time.monotonic() > until_s:
                    raise TimeoutError(f"no end of the page within {timeout_s:g} s")
                if answer.ended_head and not _good(method, answer.status):
                    break
        if not _good(method, answer.status):
            raise FetchError(url, f"the server answers {answer.status} {answer.reason}".rstrip(), answer.status)
        if answer.body_bytes > most_bytes:
            raise FetchError(url, f"the page has more than {most_bytes:,} bytes", answer.status)
        return Fetched(b"".join(answer.pieces), answer.headers.get("content-type", ""), answer.at_ns, sent_ns)
    except (OSError, ValueError) as error:
        raise FetchError(url, getattr(error, "strerror", None) or str(error) or type(error).__name__) from error


def _good(method: str, status: int) -> bool:
    return status == 200 if method == "GET" else 200 <= status < 300


def _message(method: str, parts: SplitResult, headers: Mapping[str, str]) -> bytes:
    """The request's head.

    Raises:
        ValueError: A part has a control character, or one that HTTP has no place for.
    """
    host = parts.hostname or ""
    host = f"[{host}]" if ":" in host else host if host.isascii() else host.encode("idna").decode()
    port = "" if parts.port in (None, _PORTS[parts.scheme]) else f":{parts.port}"
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    common = {"Host": f"{host}{port}", "Accept-Encoding": "identity", "Connection": "close", "User-Agent": "aiperf"}
    own = {name.lower() for name in headers}
    every = [*((name, value) for name, value in common.items() if name.lower() not in own), *headers.items()]
    lines = [f"{method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in every), "", ""]
    if not target.isascii() or _UNSAFE.search(target) or any(map(_LINE_END.search, lines)):
        raise ValueError("the URL has a character that must be escaped, or a header has a control character")
    return "\r\n".join(lines).encode("latin-1")


def _connected(parts: SplitResult, timeout_s: float, tls: TlsPlan) -> socket.socket:
    """A connection; each of its steps takes at most *timeout_s*."""
    host = parts.hostname or ""
    name = host.encode() if host.isascii() else host  # names in bytes need no import of IDNA
    connection = socket.create_connection((name, parts.port or _PORTS[parts.scheme]), timeout_s)  # type: ignore[arg-type]
    if parts.scheme == "http":
        return connection
    try:
        return _cached_tls_context(tls).wrap_socket(connection, server_hostname=host)
    except BaseException:
        connection.close()
        raise


def _local(path: str, timeout_s: float) -> socket.socket:
    """A connection to a socket of this machine."""
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.settimeout(timeout_s)
        connection.connect(path)
    except BaseException:
        connection.close()
        raise
    return connection


class _Answer:
    """An answer while it is read.  The methods ``on_…`` are for the parser.

    headers: by name in lower case, the first of each.  at_ns: wall clock at the first byte.  ended_head: the head of the last
    answer is there; those below 200 precede it.
    """

    def __init__(self) -> None:
        from httptools import HttpResponseParser

        self.status, self.reason, self.headers, self.pieces = 0, "", dict[str, str](), list[bytes]()
        self.at_ns = self.body_bytes = 0
        self.ended_head = False
        self._parser = HttpResponseParser(self)
        self._head_bytes, self._ended = 0, False

    def read(self, piece: bytes) -> bool:
        """Take what came, b"" for the end of the connection; whether the answer is whole.

        Raises:
            ValueError: It was cut, is no HTTP, or has too long a head.
        """
        from httptools import HttpParserError, HttpParserUpgrade

        if not piece:
            return self._closed()
        self.at_ns = self.at_ns or time.time_ns()
        try:
            self._parser.feed_data(piece)
        except HttpParserUpgrade:  # the status says it
            return True
        except HttpParserError as error:
            if not self._ended:  # what comes behind the answer is of no interest
                raise ValueError(f"the server answers no HTTP: {error}") from error
        self._head_bytes += 0 if self.ended_head else len(piece)
        if self._head_bytes > _MOST_HEAD_BYTES:
            raise ValueError(f"the answer's head has more than {_MOST_HEAD_BYTES:,} bytes")
        return self._ended

    def _closed(self) -> bool:
        """The server has closed the connection."""
        if not self.ended_head:
            raise ValueError("Remote end closed connection without response")
        length = self.headers.get("content-length")
        if "chunked" in self.headers.get("transfer-encoding", "").lower():
            raise ValueError("the page was cut before its end")
        if length is not None and int(length) > self.body_bytes:
            raise ValueError(f"the page was cut, {int(length) - self.body_bytes:,} bytes before its end")
        return True

    def on_message_begin(self) -> None:
        self.reason, self.ended_head = "", False
        self.headers.clear()

    def on_status(self, text: bytes) -> None:
        self.reason += text.decode("latin-1")

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers.setdefault(name.decode("latin-1").lower(), value.decode("latin-1"))

    def on_headers_complete(self) -> None:
        self.status = self._parser.get_status_code()
        self.ended_head = self.status == 101 or self.status >= 200

    def on_body(self, piece: bytes) -> None:
        self.pieces.append(piece)
        self.body_bytes += len(piece)

    def on_message_complete(self) -> None:
        self._ended = self.ended_head


class Servers:
    """The servers of a run, for plugins that tell them something beside the load.  The run's headers and its key stay inside.

    urls: below which paths stand, one for each server: of ``--server-control-url``, else of ``--url`` where it is HTTP.
    """

    def __init__(
        self, target: TargetPlan, headers: Mapping[str, str], wait: Callable[[float], bool] = lambda _: True
    ) -> None:
        self.urls = tuple(dict.fromkeys(_root(url, target.path) for url in target.http_urls))
        self._headers, self._tls, self._wait = headers, target.tls, wait

    def post(self, url: str, path: str, timeout_s: float) -> None:
        """POST without a body to *path* of the server at *url*, one of ``urls``.

        Raises:
            FetchError: It answers with another status than 2xx, or can't be reached in time.
        """
        base, mark, query = url.partition("?")
        headers = {"Content-Length": "0", **self._headers}
        fetch(f"{base}{path}{mark}{query}", timeout_s, headers=headers, tls=self._tls, method="POST", bases=self.urls)

    def get(self, url: str, path: str, timeout_s: float, *, most_bytes: int = 1 << 20) -> Fetched:
        """GET *path* of the server at *url*: one of ``urls``, or another path of its host.

        Raises:
            FetchError: It answers with another status than 200, can't be reached in time, or is another server.
        """
        if not is_below(url, self.urls):
            raise FetchError(url, "it is none of the run's servers, and gets no header of theirs")
        base, mark, query = url.partition("?")
        where, own = f"{base}{path}{mark}{query}", self._headers
        return fetch(where, timeout_s, headers=own, tls=self._tls, most_bytes=most_bytes, bases=self.urls)

    def wait(self, seconds: float) -> bool:
        """Wait; False at once where the run is to end."""
        return self._wait(seconds)


def _root(url: str, path: str) -> str:
    """The base URL without the API's version and the path of requests."""
    base, mark, query = url.partition("?")
    return base.rstrip("/").removesuffix(path).removesuffix("/v1") + mark + query


__all__ = ["FetchError", "Fetched", "Servers", "origin"]
