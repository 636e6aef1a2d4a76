"""Calls over TCP: a head, then frames.  A frame is a flag, a length and a payload; the last frame of an answer has trailers."""

from __future__ import annotations

import asyncio
import struct
from time import monotonic_ns
from typing import cast
from urllib.parse import urlsplit

import msgspec
from aiperf.sdk.model import ErrorDetails
from aiperf.sdk.transport import REFUSED, REUSED, Exchange, Sink, TransportSettings, connect_error

PREFIX = struct.Struct(">BI")
TRAILERS = 0x80


def frame(payload: bytes, flag: int = 0) -> bytes:
    return PREFIX.pack(flag, len(payload)) + payload


class Wire(asyncio.Protocol):
    """One connection, and the exchange that it carries."""

    def __init__(self, owner: Frames, server: tuple[str, int]) -> None:
        self.owner, self.server = owner, server
        self.exchange: Exchange | None = None
        self.received = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)  # uvloop's derives from nothing

    def begin(self, exchange: Exchange) -> None:
        self.exchange = exchange
        exchange.connection = self
        head = {"path": urlsplit(exchange.shape.url).path, "id": exchange.request_id, "metadata": exchange.shape.headers}
        exchange.sent_ns = monotonic_ns()
        exchange.connected_ns = exchange.connected_ns or exchange.sent_ns
        self.transport.write(frame(msgspec.json.encode(head)) + frame(exchange.body))
        exchange.sent_end_ns = monotonic_ns()
        if exchange.armed:
            self.owner.sink.written(exchange)

    def data_received(self, data: bytes) -> None:
        read_ns = monotonic_ns()
        self.received += data
        while (exchange := self.exchange) is not None and len(self.received) >= PREFIX.size:
            flag, size = PREFIX.unpack_from(self.received)
            end = PREFIX.size + size
            if exchange.bytes_received + size > self.owner.settings.most_bytes:
                limit = f"the answer is longer than {self.owner.settings.most_bytes:,} bytes"
                self.end(ErrorDetails(limit, type="AnswerTooLong"))
            elif len(self.received) < end:
                return
            else:
                payload, self.received = self.received[PREFIX.size : end], self.received[end:]
                self.take(exchange, flag, payload, read_ns)

    def take(self, exchange: Exchange, flag: int, payload: bytes, read_ns: int) -> None:
        if not exchange.status:
            exchange.status, exchange.ack_ns = 200, read_ns
        if flag & TRAILERS:
            self.owner.sink.trailers(exchange, msgspec.json.decode(payload, type=list[tuple[str, str]]))
            self.end(None)
        else:
            exchange.bytes_received += len(payload)
            self.owner.sink.message(exchange, payload, 0, read_ns)

    def end(self, error: ErrorDetails | None) -> None:
        exchange, self.exchange = self.exchange, None
        if error is None and self.owner.settings.reuse:
            self.owner.idle.setdefault(self.server, []).append(self)
        else:
            self.transport.close()
        if exchange is not None:
            exchange.connection = None
            self.owner.sink.done(exchange, error)

    def connection_lost(self, error: Exception | None) -> None:
        if self in (idle := self.owner.idle.get(self.server, [])):
            idle.remove(self)
        if self.exchange is not None:
            self.end(ErrorDetails("the connection ended before the answer was whole", type="ConnectionLost"))


class Frames:
    """Makes calls, each on a connection of its own or on an idle one."""

    stamps = "read"

    def __init__(self, settings: TransportSettings, sink: Sink, loop: asyncio.AbstractEventLoop) -> None:
        self.settings, self.sink, self.loop = settings, sink, loop
        self.idle: dict[tuple[str, int], list[Wire]] = {}
        self.opened = 0

    @property
    def statistics(self) -> dict[str, int]:
        return {"opened": self.opened}

    async def open(self) -> None:
        """Nothing to prepare."""

    async def warm(self, connections: int) -> None:
        """Connections are opened by requests."""

    def send(self, exchange: Exchange) -> None:
        parts = urlsplit(exchange.shape.url)
        server = parts.hostname or "", parts.port or 7000
        if idle := self.idle.get(server):
            exchange.flags |= REUSED
            idle.pop().begin(exchange)
        else:
            exchange.connection = self.loop.create_task(self.connect(exchange, server))

    async def connect(self, exchange: Exchange, server: tuple[str, int]) -> None:
        began_ns, named = monotonic_ns(), f"{server[0]}:{server[1]}"
        try:
            async with asyncio.timeout(self.settings.connect_s):
                _, wire = await self.loop.create_connection(lambda: Wire(self, server), *server)
        except TimeoutError:
            self.sink.done(exchange, ErrorDetails(f"{named}: no connection in time", type="TimeoutError", cause=REFUSED))
        except OSError as error:
            self.sink.done(exchange, connect_error(named, error))
        else:
            self.opened += 1
            exchange.connect_ns = monotonic_ns() - began_ns
            wire.begin(exchange)

    def abort(self, exchange: Exchange, error: ErrorDetails | None) -> None:
        match exchange.connection:
            case Wire() as wire:
                wire.exchange = None
                wire.transport.abort()
            case asyncio.Task() as task:
                task.cancel()
        exchange.connection = None
        self.sink.done(exchange, error)

    async def close(self) -> None:
        for wire in [wire for idle in self.idle.values() for wire in idle]:
            wire.transport.close()
        await asyncio.sleep(0)
