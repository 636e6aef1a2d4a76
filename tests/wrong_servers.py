"""Servers that no run can use, each with one fault: every connection gets the same answer.

    with WrongServer(answer(b"who are you?", status=401)) as server:
        ...  # talk to server.url
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
import warnings
from collections.abc import Mapping

from aiperf_testing.server import Certificate


class WrongServer:
    """Answers each request with *reply*, and closes.

    certificate: speak TLS.  old_tls: TLS 1.0 alone.  silent: take requests, and answer none.  listens: else its port is taken,
    and refuses connections.  others: replies of paths that have another one.
    """

    def __init__(
        self, reply: bytes = b"", *, certificate: Certificate | None = None, old_tls: bool = False, silent: bool = False,
        listens: bool = True, others: Mapping[str, bytes] | None = None,
    ) -> None:
        self._reply, self._silent, self._others = reply, silent, dict(others or {})
        self._context: ssl.SSLContext | None = None
        if certificate is not None:
            self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self._context.load_cert_chain(certificate.cert, certificate.key)
            if old_tls:
                self._context.set_ciphers("ALL:@SECLEVEL=0")
                with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
                    self._context.minimum_version = self._context.maximum_version = ssl.TLSVersion.TLSv1
        self._listening = socket.socket()
        self._listening.bind(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listening.getsockname()[1]}"
        self._open: list[socket.socket] = []
        if listens:
            self._listening.listen(64)
            threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self) -> str:
        return f"{'https' if self._context else 'http'}://{self.address}"

    def __enter__(self) -> WrongServer:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):  # it doesn't listen
            self._listening.shutdown(socket.SHUT_RDWR)  # a thread that waits in accept() would take one more connection
        self._listening.close()
        for sock in self._open:
            sock.close()

    def reply(self, path: str = "") -> bytes | None:
        """The answer to a request; None for none."""
        return None if self._silent else self._others.get(path, self._reply)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):  # it is closed
            while True:
                sock, _ = self._listening.accept()
                self._open.append(sock)
                threading.Thread(target=self._serve, args=(sock,), daemon=True).start()

    def _serve(self, sock: socket.socket) -> None:
        with contextlib.suppress(OSError, ValueError):
            if self._context is not None:
                sock = self._context.wrap_socket(sock, server_side=True)
                self._open.append(sock)
            while True:
                reply = self.reply(self._read(sock))
                if reply is not None:
                    sock.sendall(reply)
                    if b"Content-Length" not in reply and b"chunked" not in reply:
                        break  # its end alone delimits the answer
            sock.shutdown(socket.SHUT_RDWR)
            sock.close()

    def _read(self, sock: socket.socket) -> str:
        """The path of a request; ValueError where the client has closed."""
        data = b""
        while b"\r\n\r\n" not in data:
            data += self._more(sock)
            if data[:1] not in (b"P", b"G"):  # no HTTP: the first bytes of a handshake
                return ""
        head, _, body = data.partition(b"\r\n\r\n")
        lengths = [int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")]
        while len(body) < sum(lengths):
            body += self._more(sock)
        return head.split(b" ", 2)[1].decode()

    def _more(self, sock: socket.socket) -> bytes:
        data = sock.recv(1 << 16)
        if not data:
            raise ValueError("the client has closed")
        return data
