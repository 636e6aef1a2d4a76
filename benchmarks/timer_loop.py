"""The least that sends on time in Python: a loop, one timer of the kernel's, and sockets; no records, no stamps but the sends'.

usage: timer_loop.py PORT CONNECTIONS BYTES FILE

FILE: instants in ns after the start, earliest first, as int64.  Each sends a streamed request of so many bytes of text over a
connection that is free; a request without one waits.  Prints the lag of each send, in ns, as JSON.
"""

from __future__ import annotations

import asyncio
import json
import socket
import sys
from array import array
from collections import deque
from pathlib import Path
from time import monotonic_ns

import uvloop
from aiperf.worker.clock import LoopTimer

_END = b"0\r\n\r\n"
_LEAD_NS = 500_000_000


class TimerLoop:
    """Sends at the instants.  lags: ns, by request."""

    def __init__(self, port: int, connections: int, size: int, instants: array[int]) -> None:
        body = json.dumps({
            "model": "truth", "messages": [{"role": "user", "content": "x" * size}], "stream": True, "max_tokens": 16,
        }).encode()  # fmt: skip
        head = ("POST /v1/chat/completions HTTP/1.1", "Host: truth", "Content-Type: application/json")
        self._request = "\r\n".join((*head, f"Content-Length: {len(body)}", "", "")).encode() + body
        self._loop = asyncio.get_running_loop()
        self._timer = LoopTimer(self._loop, self._fire)
        self._free: deque[socket.socket] = deque()
        self._waiting: deque[int] = deque()
        self._instants, self._next, self._open = instants, 0, 0
        self.lags: list[int] = []
        self.over = asyncio.Event()
        for _ in range(connections):
            connection = socket.create_connection(("127.0.0.1", port))
            connection.setblocking(False)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._loop.add_reader(connection, self._read, connection)
            self._free.append(connection)
        self._start_ns = monotonic_ns() + _LEAD_NS
        self._timer.set(self._start_ns + instants[0])

    def _fire(self) -> None:
        while self._next < len(self._instants) and self._start_ns + self._instants[self._next] <= monotonic_ns():
            self._waiting.append(self._start_ns + self._instants[self._next])
            self._next += 1
            self._send()
        if self._next < len(self._instants):
            self._timer.set(self._start_ns + self._instants[self._next])

    def _send(self) -> None:
        if self._free and self._waiting:
            self.lags.append(monotonic_ns() - self._waiting.popleft())
            self._free.popleft().send(self._request)
            self._open += 1

    def _read(self, connection: socket.socket) -> None:
        piece = connection.recv(65536)
        if not piece:
            raise SystemExit("the server closed a connection")
        if piece.endswith(_END):
            self._open -= 1
            self._free.append(connection)
            self._send()
            if self._next == len(self._instants) and not self._open:
                self.over.set()


async def main(port: int, connections: int, size: int, file: str) -> None:
    instants = array("q", Path(file).read_bytes())
    loop = TimerLoop(port, connections, size, instants)
    await loop.over.wait()
    print(json.dumps(loop.lags))


if __name__ == "__main__":
    uvloop.run(main(int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]))
