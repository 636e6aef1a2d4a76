"""The least that uploads in Python: a loop, sockets and a tick; no entries, no records, no stamps.

usage: upload_loop.py PORT CONNECTIONS BYTES REQUESTS

As many uploads in flight as connections, of zeros that every connection sends from one buffer.  Prints how late each tick was,
in ms, as JSON: what is left where the loop does nothing but write is the wait for a core.
"""

from __future__ import annotations

import asyncio
import json
import socket
import sys
from collections.abc import Callable
from time import monotonic_ns

import uvloop
from aiperf import cores

TICK_S = 0.05
"""As the worker has it."""
WRITE_BYTES = 1 << 16


class UploadLoop:
    """Writes until *requests* are answered.  lags_ms: of each tick."""

    def __init__(self, port: int, connections: int, size: int, requests: int) -> None:
        head = f"POST /v1/images/edits HTTP/1.1\r\nHost: truth\r\nContent-Length: {size}\r\n\r\n".encode()
        self._request = memoryview(head + bytes(size))
        self._loop, self._left, self._open = asyncio.get_running_loop(), requests, connections
        self._sent: dict[socket.socket, int] = {}
        self.lags_ms: list[float] = []
        self.over = asyncio.Event()
        for _ in range(connections):
            connection = socket.create_connection(("127.0.0.1", port))
            connection.setblocking(False)
            self._loop.add_reader(connection, self._read, connection)
            self._begin(connection)
        self._wait()

    def _wait(self) -> None:
        self._due_ns = monotonic_ns() + int(TICK_S * 1e9)
        self._loop.call_later(TICK_S, self._tick)

    def _tick(self) -> None:
        self.lags_ms.append(max(0, monotonic_ns() - self._due_ns) / 1e6)
        self._wait()

    def _begin(self, connection: socket.socket) -> None:
        if self._left:
            self._left -= 1
            self._sent[connection] = 0
            write: Callable[[socket.socket], None] = self._write
            self._loop.add_writer(connection, write, connection)
            return
        self._loop.remove_reader(connection)
        connection.close()
        self._open -= 1
        if not self._open:
            self.over.set()

    def _write(self, connection: socket.socket) -> None:
        sent = self._sent[connection]
        sent += connection.send(self._request[sent : sent + WRITE_BYTES])
        self._sent[connection] = sent
        if sent == len(self._request):
            self._loop.remove_writer(connection)

    def _read(self, connection: socket.socket) -> None:
        if not connection.recv(1 << 16):  # a short answer comes in one piece
            raise ConnectionResetError("the server has closed a connection")
        self._begin(connection)


async def _run(port: int, connections: int, size: int, requests: int) -> list[float]:
    cores.ask_for_short_slices()
    uploads = UploadLoop(port, connections, size, requests)
    await uploads.over.wait()
    return uploads.lags_ms


if __name__ == "__main__":
    print(json.dumps(uvloop.run(_run(*map(int, sys.argv[1:5])))))
