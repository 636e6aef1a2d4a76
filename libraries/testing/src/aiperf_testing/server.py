"""A server that follows a script exactly, for tests of transports.

A script is a list of steps for one connection; connection n plays script n, and later connections the last script.  The
server runs in the test's loop on raw sockets, so bytes leave in exactly the pieces of the script, TLS records included::

    async with Scripted([Expect(), Send(answer(b"hi")), Fin()]) as server:
        ...  # talk to server.url
        assert server.requests[0].target == "/"
"""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import socket
import ssl
import struct
import subprocess
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

_READ_BYTES = 1 << 18


class Expect(Struct, frozen=True):
    """Read one whole request and log it."""


class Send(Struct, frozen=True):
    """Send bytes.  *cut*: as pieces of this many bytes (on TLS: of ciphertext), each after a pause, 0 for one piece."""

    data: bytes
    cut: int = 0


class Sleep(Struct, frozen=True):
    seconds: float


class Fin(Struct, frozen=True):
    """Close properly: on TLS with close_notify."""


class Cut(Struct, frozen=True):
    """Close the socket: on TLS without close_notify."""


class HalfClose(Struct, frozen=True):
    """End sending, and continue reading."""


class Reset(Struct, frozen=True):
    """Close with RST."""


class UntilClosed(Struct, frozen=True):
    """Read until the client closes."""


Step = Expect | Send | Sleep | Fin | Cut | HalfClose | Reset | UntilClosed


class Received(Struct):
    """A received request.  *connection*: number of its connection, from 0."""

    connection: int
    method: str
    target: str
    headers: list[tuple[str, str]]
    body: bytes = b""

    def header(self, name: str) -> str | None:
        """The header's value, None without it; AssertionError if it was sent twice."""
        values = [value for key, value in self.headers if key.lower() == name.lower()]
        assert len(values) < 2, f"{name} was sent {len(values)} times"
        return values[0] if values else None


class Certificate(Struct, frozen=True):
    """A self-signed certificate for localhost and 127.0.0.1, and its key, PEM."""

    cert: Path
    key: Path

    @classmethod
    def made(cls, directory: Path) -> Certificate:
        """A new certificate in *directory*, made by the ``openssl`` command.

        Raises:
            FileNotFoundError: The command is not installed.
        """
        command = shutil.which("openssl")
        if command is None:
            raise FileNotFoundError("the openssl command is not installed")
        cert, key = directory / "cert.pem", directory / "key.pem"
        about = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-days", "2"]
        made = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", str(key), "-out", str(cert)]
        subprocess.run([command, "req", "-x509", *made, *about], check=True, capture_output=True)
        return cls(cert, key)


def answer(
    body: bytes = b"{}",
    *,
    status: int = 200,
    reason: str = "OK",
    headers: Sequence[str] = (),
    content_type: str = "application/json",
) -> bytes:
    """A whole answer with a Content-Length header."""
    lines = [f"HTTP/1.1 {status} {reason}", f"Content-Type: {content_type}", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def chunked_head(content_type: str = "text/event-stream", headers: Sequence[str] = ()) -> bytes:
    """The head of a chunked answer; :func:`chunk` makes its body."""
    lines = ["HTTP/1.1 200 OK", f"Content-Type: {content_type}", "Transfer-Encoding: chunked", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n"


def chunk(data: bytes = b"") -> bytes:
    """One chunk; without data, the last chunk."""
    return b"%x\r\n%s\r\n" % (len(data), data)


class Link:
    """The server's side of one connection.  *closed* is set when the client has ended it."""

    def __init__(self, sock: socket.socket, number: int, context: ssl.SSLContext | None) -> None:
        self.sock = sock
        self.number = number
        self.closed = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._buffer = b""
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True) if context else None

    async def shake(self) -> None:
        """The TLS handshake; nothing without TLS."""
        while self._tls is not None:
            try:
                self._tls.do_handshake()
            except ssl.SSLWantReadError:
                await self._flush()
                await self._more()
                continue
            await self._flush()  # session tickets too, in records of their own
            return

    async def _flush(self, cut: int = 0) -> None:
        data = self._outgoing.read()
        for start in range(0, len(data), cut or len(data) or 1):
            if start:
                await asyncio.sleep(0.002)
            await self._loop.sock_sendall(self.sock, data[start : start + (cut or len(data))])

    async def _more(self) -> None:
        data = await self._loop.sock_recv(self.sock, _READ_BYTES)
        if not data:
            self.closed.set()
            raise ConnectionResetError("the client closed the connection")
        if self._tls is None:
            self._buffer += data
        else:
            self._incoming.write(data)

    async def _read(self) -> None:
        """Read at least one byte of plain text into ``_buffer``; ConnectionError where the client has closed."""
        if self._tls is None:
            await self._more()
            return
        while True:
            try:
                plain = self._tls.read(_READ_BYTES)
            except ssl.SSLWantReadError:
                await self._more()
                continue
            except ssl.SSLZeroReturnError:
                plain = b""
            if not plain:
                self.closed.set()
                raise ConnectionResetError("the client closed the connection")
            self._buffer += plain
            return

    async def expect(self) -> Received:
        """The next whole request, with a body by length or in chunks."""
        while b"\r\n\r\n" not in self._buffer:
            await self._read()
        head, _, self._buffer = self._buffer.partition(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        method, target, _ = first.split(" ", 2)
        pairs = [line.partition(":") for line in lines]
        request = Received(self.number, method, target, [(name, value.strip()) for name, _, value in pairs])
        if (request.header("Transfer-Encoding") or "").lower() == "chunked":
            request.body = await self._chunks()
        else:
            request.body = await self._bytes(int(request.header("Content-Length") or 0))
        return request

    async def _bytes(self, count: int) -> bytes:
        parts, length = [self._buffer], len(self._buffer)
        while length < count:
            self._buffer = b""
            await self._read()
            parts.append(self._buffer)
            length += len(self._buffer)
        whole = b"".join(parts)
        self._buffer = whole[count:]
        return whole[:count]

    async def _line(self) -> bytes:
        while b"\r\n" not in self._buffer:
            await self._read()
        line, _, self._buffer = self._buffer.partition(b"\r\n")
        return line

    async def _chunks(self) -> bytes:
        body = b""
        while size := int(await self._line(), 16):
            body += await self._bytes(size)
            await self._line()
        await self._line()
        return body

    async def send(self, data: bytes, cut: int = 0) -> None:
        if self._tls is not None:
            self._tls.write(data)
            await self._flush(cut)
            return
        for start in range(0, len(data), cut or len(data) or 1):
            if start:
                await asyncio.sleep(0.002)
            await self._loop.sock_sendall(self.sock, data[start : start + (cut or len(data))])

    async def until_closed(self) -> None:
        """Read and discard until the client closes."""
        with contextlib.suppress(OSError):
            while True:
                await self._read()
                self._buffer = b""
        self.closed.set()

    # These act at once, so that a test can call them between two steps of the client.

    def notify(self) -> None:
        """On TLS send close_notify, and leave TCP open."""
        if self._tls is not None:
            with contextlib.suppress(ssl.SSLError):
                self._tls.unwrap()
            with contextlib.suppress(OSError):
                self.sock.send(self._outgoing.read())

    def half_close(self) -> None:
        """End this direction, with close_notify on TLS."""
        self.notify()
        with contextlib.suppress(OSError):
            self.sock.shutdown(socket.SHUT_WR)

    def cut(self) -> None:
        """Close both directions, on TLS without close_notify."""
        self.sock.close()

    def fin(self) -> None:
        """Close both directions, on TLS with close_notify."""
        self.half_close()
        self.sock.close()

    def reset(self) -> None:
        """Close with RST."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()


class Scripted:
    """The server.  *requests* and *links* (connections) are in the order of arrival; *faults*: errors of scripts.

    *path*: of a socket of this machine on which it listens in place of a port; *backlog*: connections that may wait there.
    """

    def __init__(
        self, *scripts: Sequence[Step], certificate: Certificate | None = None, path: Path | None = None, backlog: int = 512
    ) -> None:  # fmt: skip
        self.scripts, self._path, self._backlog = scripts, path, backlog
        self.requests: list[Received] = []
        self.links: list[Link] = []
        self.faults: list[BaseException] = []
        self.port = 0
        self._context: ssl.SSLContext | None = None
        if certificate is not None:
            self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self._context.load_cert_chain(certificate.cert, certificate.key)
        self._listening: socket.socket | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        if self._path is not None:
            return f"unix://{self._path}"
        return f"{'https' if self._context else 'http'}://127.0.0.1:{self.port}"

    async def __aenter__(self) -> Scripted:
        if self._path is None:
            self._listening = socket.create_server(("127.0.0.1", 0), backlog=self._backlog)
            self.port = self._listening.getsockname()[1]
        else:
            self._listening = socket.socket(socket.AF_UNIX)
            self._listening.bind(str(self._path))
            self._listening.listen(self._backlog)
        self._listening.setblocking(False)
        self._begin(self._accept(self._listening))
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for link in self.links:
            link.sock.close()
        if self._listening is not None:
            self._listening.close()
        if self.faults:
            raise self.faults[0]

    def stop_listening(self) -> None:
        """Refuse new connections from now on, as a server does that is gone."""
        assert self._listening is not None, "stop_listening was called before the server listened"
        self._listening.shutdown(socket.SHUT_RDWR)

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _accept(self, listening: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                sock, _ = await loop.sock_accept(listening)
            except OSError:  # it listens no more
                return
            sock.setblocking(False)
            if self._path is None:
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            link = Link(sock, len(self.links), self._context)
            self.links.append(link)
            self._begin(self._serve(link))

    async def _serve(self, link: Link) -> None:
        script = self.scripts[min(link.number, len(self.scripts) - 1)] if self.scripts else ()
        try:
            await link.shake()
            for step in script:
                await self._play(link, step)
        except OSError:  # the client closed the connection
            link.closed.set()
        except Exception as error:  # noqa: BLE001  # an error of the script; the end of the test raises it
            self.faults.append(error)
        else:
            if not script or not isinstance(script[-1], Fin | Cut | Reset | UntilClosed):
                link.fin()

    async def _play(self, link: Link, step: Step) -> None:
        match step:
            case Expect():
                self.requests.append(await link.expect())
            case Send():
                await link.send(step.data, step.cut)
            case Sleep():
                await asyncio.sleep(step.seconds)
            case Fin():
                link.fin()
            case Cut():
                link.cut()
            case HalfClose():
                link.half_close()
            case Reset():
                link.reset()
            case UntilClosed():
                await link.until_closed()


__all__ = [
    "Certificate", "Cut", "Expect", "Fin", "HalfClose", "Link", "Received", "Reset", "Scripted", "Send", "Sleep", "Step",
    "UntilClosed", "answer", "chunk", "chunked_head",
]  # fmt: skip
