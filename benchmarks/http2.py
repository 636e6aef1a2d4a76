"""What calls over HTTP/2 cost a worker, beside grpcio's asyncio client and HTTP/1.1, and how true their stamps are.

usage: http2.py [--rounds 5] [--messages 400] [--only costs|errors]

Each cell is a client in a process of its own, in turns, against one server on ``aiperf_http2`` (and HTTP/1.1), which sends
every stream one message at a tick.  Ours are transports with a worker's journal.  Costs are messages, or calls, per second
of the client's CPU time.  Errors are the client's stamps of first messages less the server's clock right before the write.
The last lines say whether the goals hold; *--rounds 2 --messages 250* takes a minute.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import subprocess
import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from statistics import median
from time import monotonic_ns, process_time_ns, time_ns
from typing import Any

STREAMS = 64
"""Calls at once."""
MESSAGE_BYTES, TICK_S = 120, 0.002
UNARY = 4000
"""Calls of one answer, per round."""
FIRST = 300
"""Calls whose first message is timed, per round."""
GAP_S = 0.003
"""From a first message to the end of its call."""
_MARK = b"#" * 20
UNSTAMPED = _MARK + bytes(MESSAGE_BYTES - 20)
SEPARATELY, TOGETHER = 1, 100
"""Streams on a connection."""


# The server


class Beat:
    """Writes one message to every stream at each tick, those of one connection together."""

    def __init__(self) -> None:
        self.streams: list[tuple[Any, Any, int, Callable[[], None]]] = []

    async def run(self) -> None:
        while True:
            await asyncio.sleep(TICK_S)
            flush, rest = {}, []
            for send, end, left, write in self.streams:
                send(stamped())
                if left > 1:
                    rest.append((send, end, left - 1, write))
                else:
                    end()
                flush[id(write.__self__)] = write  # type: ignore[attr-defined]  # a bound method
            self.streams = rest
            for write in flush.values():
                write()


def stamped() -> bytes:
    return b"%020d" % monotonic_ns() + bytes(MESSAGE_BYTES - 20)


def now(data: bytes) -> bytes:
    """The bytes, with the time in the place of the mark."""
    return data.replace(_MARK, b"%020d" % monotonic_ns(), 1)


class Calls:
    """A connection of HTTP/2; the path says what is asked: /t/unary, /t/down/N, /t/first."""

    def __init__(self, writer: asyncio.StreamWriter, beat: Beat) -> None:
        from aiperf_http2 import HeaderSet, Http2Connection

        self.http, self.writer, self.beat = Http2Connection(client=False), writer, beat
        self.head = HeaderSet([(":status", "200"), ("content-type", "application/grpc")])
        self.end = HeaderSet([("grpc-status", "0")])
        self.paths: dict[int, str] = {}

    def write(self) -> None:
        while data := self.http.take():
            self.writer.write(data)

    def begin(self, stream: Any) -> None:
        from aiperf_http2.grpc import framed

        path = self.paths.pop(stream.number)
        self.http.head(stream, self.head)

        def send(message: bytes) -> None:
            self.http.send(stream, framed(message))

        def end() -> None:
            self.http.finish(stream, self.end)

        if path.endswith("/unary"):
            send(stamped())
            end()
        elif path.endswith("/first"):
            asyncio.get_running_loop().call_later(random.uniform(0.002, 0.02), self.first, send, end)
        else:
            self.beat.streams.append((send, end, int(path.rpartition("/")[2]), self.write))

    def first(self, send: Callable[[bytes], None], end: Callable[[], None]) -> None:
        send(UNSTAMPED)
        self.writer.write(now(self.http.take()))
        asyncio.get_running_loop().call_later(GAP_S, self.last, end)

    def last(self, end: Callable[[], None]) -> None:
        end()
        self.write()

    async def serve(self, reader: asyncio.StreamReader, data: bytes) -> None:
        from aiperf_http2 import DataReceived, HeadersReceived

        while data:
            for event in self.http.receive(data):
                if isinstance(event, HeadersReceived):
                    self.paths[event.stream.number] = dict(event.fields)[":path"]
                if isinstance(event, HeadersReceived | DataReceived) and event.end:
                    self.begin(event.stream)
            self.write()
            data = await reader.read(1 << 16)


class Chunks:
    """A connection of HTTP/1.1, the same in server-sent events."""

    def __init__(self, writer: asyncio.StreamWriter, beat: Beat) -> None:
        self.writer, self.beat, self.out = writer, beat, bytearray()

    def write(self) -> None:
        self.writer.write(bytes(self.out))
        self.out.clear()

    def send(self, message: bytes) -> None:
        event = b"data: " + message[:20] + b"x" * (len(message) - 20) + b"\n\n"
        self.out += b"%x\r\n%b\r\n" % (len(event), event)

    def end(self) -> None:
        self.out += b"0\r\n\r\n"

    def first(self) -> None:
        self.send(UNSTAMPED)
        self.writer.write(now(bytes(self.out)))
        self.out.clear()
        asyncio.get_running_loop().call_later(GAP_S, self.last)

    def last(self) -> None:
        self.end()
        self.write()

    async def serve(self, reader: asyncio.StreamReader, data: bytes) -> None:
        while data:
            while b"\r\n\r\n" not in data:
                data += await reader.read(1 << 16)
            head, _, data = data.partition(b"\r\n\r\n")
            size = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0] or b"0")
            while len(data) < size:
                data += await reader.read(1 << 16)
            data, path = data[size:], head.split(b" ")[1].decode()
            self.out += b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
            if path.endswith("/unary"):
                self.send(stamped())
                self.end()
                self.write()
            elif path.endswith("/first"):
                asyncio.get_running_loop().call_later(random.uniform(0.002, 0.02), self.first)
            else:
                self.beat.streams.append((self.send, self.end, int(path.rpartition("/")[2]), self.write))
            data = data or await reader.read(1 << 16)


async def serve() -> None:
    beat = Beat()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.transport.set_write_buffer_limits(1 << 24)
        data = await reader.read(1 << 16)
        await (Calls if data.startswith(b"PRI") else Chunks)(writer, beat).serve(reader, data)
        writer.close()

    server = await asyncio.start_server(talk, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await beat.run()


# The clients


class Worker:
    """A transport with a worker's journal; keeps the stamp of each first message."""

    def __init__(self, kind: str, port: int, folder: Path) -> None:
        from aiperf.sdk.plan import TlsPlan
        from aiperf.sdk.transport import TransportSettings
        from aiperf.worker.logbook import Logbook
        from aiperf_transport_http2 import Http2Transport
        from aiperf_transport_http2.options import Http2Options
        from aiperf_transport_sockets import KernelTransport

        self.log, self.ended, self.open, self.left = Logbook(folder, 0, {}), asyncio.Event(), 0, 0
        self.offset_ns = time_ns() - monotonic_ns()
        self.messages, self.errors, self.error_ns = 0, 0, list[int]()
        self.url = f"{'http' if kind == 'http1' else 'grpc'}://127.0.0.1:{port}"
        options = Http2Options(streams_per_connection=SEPARATELY if kind == "separately" else TOGETHER)
        settings = TransportSettings((self.url,), TlsPlan(), options=options)
        make = KernelTransport if kind == "http1" else Http2Transport
        self.transport: Any = make(settings, self, asyncio.get_running_loop())  # type: ignore[arg-type]

    def chunk(self, exchange: Any, body: bytes, kernel_ns: int, read_ns: int, hidden: int) -> None:
        self.log.chunk(exchange.request, kernel_ns, read_ns, body, hidden)
        self.messages += body.count(b"data: ")
        self.stamp(exchange, body[6:26], kernel_ns, read_ns)

    def message(self, exchange: Any, data: bytes, kernel_ns: int, read_ns: int, hidden: int = 0) -> None:
        self.log.chunk(exchange.request, kernel_ns, read_ns, data, ~hidden)
        self.messages += 1
        self.stamp(exchange, data[:20], kernel_ns, read_ns)

    def stamp(self, exchange: Any, sent: bytes, kernel_ns: int, read_ns: int) -> None:
        if not exchange.owner:
            exchange.owner = True
            self.error_ns.append((kernel_ns - self.offset_ns if kernel_ns else read_ns) - int(sent))

    def head(self, *about: object) -> None: ...

    def trailers(self, *about: object) -> None: ...

    def done(self, exchange: Any, error: object) -> None:
        self.errors += error is not None
        self.open -= 1
        if self.left:
            self.send()
        elif not self.open:
            self.ended.set()

    def send(self) -> None:
        from aiperf.sdk.transport import Exchange

        self.left -= 1
        self.open += 1
        name = f"request-{self.left:09}"
        self.transport.send(Exchange(self.left, self.shape, b"x" * 60, name, "session", monotonic_ns()))

    async def calls(self, path: str, count: int, at_once: int) -> None:
        """Send so many calls, the next when one ends, as a worker does."""
        from aiperf.sdk.transport import Shape

        kind = "application/grpc" if self.url.startswith("grpc") else "application/json"
        self.shape = Shape(f"{self.url}/t/{path}", {"User-Agent": "bench", "Content-Type": kind}, ("X-Correlation-ID",))
        self.left = count
        self.ended.clear()
        for _ in range(at_once):
            self.send()
        await self.ended.wait()


async def ours(kind: str, port: int, path: str, count: int, at_once: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        worker = Worker(kind, port, Path(folder))
        await worker.transport.open()
        await worker.transport.warm(at_once)
        await worker.calls(path, at_once, at_once)
        worker.messages, worker.error_ns = 0, []
        began = process_time_ns()
        await worker.calls(path, count, at_once)
        spent = process_time_ns() - began
        await worker.transport.close()
        worker.log.close()
        if worker.errors:
            raise SystemExit(f"{worker.errors} calls failed")
        return {"messages": worker.messages, "cpu_s": spent / 1e9, "error_us": [ns / 1e3 for ns in worker.error_ns]}


async def grpcio(port: int, path: str, count: int, at_once: int) -> dict[str, Any]:
    import grpc.aio

    messages = 0
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        unary = channel.unary_unary(f"/t/{path}")
        down = channel.unary_stream(f"/t/{path}")

        async def run(share: int) -> None:
            nonlocal messages
            for _ in range(share):
                if path == "unary":
                    await unary(b"x" * 60)
                    stamps.append(monotonic_ns())
                    messages += 1
                else:
                    async for _ in down(b"x" * 60):
                        stamps.append(monotonic_ns())
                        messages += 1

        stamps: list[int] = []
        await asyncio.gather(*(run(1) for _ in range(at_once)))
        messages, began = 0, process_time_ns()
        await asyncio.gather(*(run(count // at_once) for _ in range(at_once)))
        return {"messages": messages, "cpu_s": (process_time_ns() - began) / 1e9}


def client(words: list[str]) -> None:
    kind, port, path, count, at_once = words
    load = int(port), path, int(count), int(at_once)
    run: Awaitable[dict[str, Any]] = grpcio(*load) if kind == "grpcio" else ours(kind, *load)

    async def whole() -> dict[str, Any]:
        return await run

    if kind == "grpcio":
        print(json.dumps(asyncio.run(whole())))
    else:
        import uvloop

        print(json.dumps(uvloop.run(whole())))


def cell(kind: str, port: str, path: str, count: int, at_once: int) -> dict[str, Any]:
    words = [sys.executable, __file__, "client", kind, port, path, str(count), str(at_once)]
    done = subprocess.run(words, check=True, capture_output=True, text=True, timeout=120)
    made: dict[str, Any] = json.loads(done.stdout)
    return made


def quantile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--messages", type=int, default=400)
    parser.add_argument("--only", choices=("costs", "errors"))
    given = parser.parse_args()
    server = subprocess.Popen([sys.executable, __file__, "serve"], stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        port = server.stdout.readline().strip()
        cost: dict[tuple[str, str], list[float]] = {}
        errors: dict[str, list[float]] = {}
        for _ in range(given.rounds):
            for path, count in ((f"down/{given.messages}", STREAMS), ("unary", UNARY)) if given.only != "errors" else ():
                for kind in ("together", "grpcio", "http1"):
                    made = cell(kind, port, path, count, STREAMS)
                    cost.setdefault((path, kind), []).append(made["messages"] / made["cpu_s"])
            for kind in ("together", "separately", "http1") if given.only != "costs" else ():
                errors.setdefault(kind, []).extend(cell(kind, port, "first", FIRST, 10)["error_us"])
    finally:
        server.terminate()
        server.wait()
    for (path, kind), values in cost.items():
        print(f"{path:<10} {kind:<11} {median(values):>10,.0f} per CPU-second  ({min(values):,.0f} to {max(values):,.0f})")
    for kind, found in errors.items():
        shares = "  ".join(f"p{share:g} {quantile(found, share / 100):.1f}" for share in (50, 90, 99))
        print(f"first      {kind:<11} {shares} µs")
    for what, ratio, goal, least in goals(cost, errors):
        holds = ratio >= goal if least else ratio <= goal
        print(f"{'✔' if holds else '✘'} {what}: {ratio:.2f} ({'at least' if least else 'at most'} {goal:g})")


def goals(cost: dict[tuple[str, str], list[float]], errors: dict[str, list[float]]) -> Iterator[tuple[str, float, float, bool]]:
    """What is held to what: a sentence, the ratio, its goal, and whether that is the least."""
    for path, kind in cost:
        if kind == "grpcio":
            us, name = median(cost[path, "together"]), "calls of one answer" if path == "unary" else "messages"
            yield f"{name} per CPU-second, of grpcio's", us / median(cost[path, kind]), 3, True
            if path != "unary":
                yield f"{name} per CPU-second, of HTTP/1.1's chunks", us / median(cost[path, "http1"]), 0.5, True
    for kind, name in (("together", "one connection"), ("separately", "ten connections")) if errors else ():
        for share in (0.5, 0.9):
            ratio = quantile(errors[kind], share) / quantile(errors["http1"], share)
            yield f"error of first messages, p{100 * share:g}, {name}, of HTTP/1.1's", ratio, 1.5, False


if __name__ == "__main__":
    if sys.argv[1:2] == ["serve"]:
        asyncio.run(serve())
    elif sys.argv[1:2] == ["client"]:
        client(sys.argv[2:])
    else:
        main()
