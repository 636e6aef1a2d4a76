"""The bare client loop behind the figures "a bare Python loop on sockets, recvmsg and httptools".

Not a design: no errors, no TLS, no schedule, one request shape. It shows what this machine and CPython can do, and that
the kernel's receive stamp is there for the asking. Needs uvloop, httptools, numpy.

usage: bareloop.py PORT CONNECTIONS REQUESTS OUTPUT_TOKENS STREAM(0|1) KERNEL_STAMP(0|1)
"""

from __future__ import annotations

import asyncio
import json
import socket
import struct
import sys
import time

import httptools
import numpy as np
import uvloop

SO_TIMESTAMPNS = 35  # asm-generic/socket.h; the value differs on a few architectures
TIMESPEC = struct.Struct("qq")


class Connection:
    def __init__(self, loop: asyncio.AbstractEventLoop, address: tuple[str, int], kernel_stamp: int) -> None:
        self.sock = socket.create_connection(address)
        self.sock.setblocking(False)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if kernel_stamp:
            self.sock.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        self.loop, self.complete = loop, False
        loop.add_reader(self.sock.fileno(), self.readable)

    def readable(self) -> None:
        try:
            data, ancillary, _, _ = self.sock.recvmsg(65536, 64)
        except BlockingIOError:
            return
        if ancillary:
            seconds, nanoseconds = TIMESPEC.unpack(ancillary[0][2])
            self.stamp = seconds * 1_000_000_000 + nanoseconds
        else:
            self.stamp = time.time_ns()
        self.parser.feed_data(data)
        if self.complete:
            self.complete = False
            self.done.set_result(None)

    def on_body(self, body: bytes) -> None:
        self.chunks.append((self.stamp, body))

    def on_message_complete(self) -> None:
        self.complete = True

    def send(self, request: bytes) -> asyncio.Future[None]:
        self.parser = httptools.HttpResponseParser(self)
        self.chunks: list[tuple[int, bytes]] = []
        self.done: asyncio.Future[None] = self.loop.create_future()
        self.sent_ns = time.time_ns()
        self.sock.send(request)
        return self.done


async def main(port: int, connections: int, requests: int, tokens: int, stream: int, kernel_stamp: int) -> None:
    loop = asyncio.get_running_loop()
    messages = [{"role": "user", "content": "the " * 100}]
    body = json.dumps({"model": "m", "stream": bool(stream), "max_tokens": tokens, "messages": messages}).encode()
    head = "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
    request = (head % len(body)).encode() + body
    left = [requests]
    seen: list[tuple[int, int, int]] = []

    async def user() -> None:
        connection = Connection(loop, ("127.0.0.1", port), kernel_stamp)
        while left[0] > 0:
            left[0] -= 1
            await connection.send(request)
            seen.append((connection.sent_ns, connection.chunks[0][0], len(connection.chunks)))

    began = time.perf_counter()
    await asyncio.gather(*(user() for _ in range(connections)))
    took = time.perf_counter() - began
    rows = np.array(seen)
    ttft = (rows[:, 1] - rows[:, 0]) / 1e6
    p50, p99 = np.percentile(ttft, [50, 99])
    print(f"{requests / took:,.0f} requests/s  {rows[:, 2].sum() / took:,.0f} chunks/s  ttft p50 {p50:.3f} p99 {p99:.3f} ms")


uvloop.run(main(*map(int, sys.argv[1:])))
