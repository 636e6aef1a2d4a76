"""The contract of the transport, with a server of HTTP/2 that answers, is silent, or breaks off."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

from aiperf.testing import TransportContract
from aiperf_http2 import DataReceived, HeaderSet, HeadersReceived, Http2Connection

from aiperf_transport_http2 import Http2Transport

_JSON = HeaderSet([(":status", "200"), ("content-type", "application/json")])


class Http2Contract(TransportContract):
    transport = Http2Transport
    body = b"hello"

    @asynccontextmanager
    async def serve(self, behaviour: str) -> AsyncIterator[str]:
        tasks: list[asyncio.Task[Any] | None] = []

        async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            tasks.append(asyncio.current_task())
            http, broken = Http2Connection(client=False), False
            with suppress(ConnectionError):
                writer.write(http.take())
                while not broken and (data := await reader.read(1 << 16)):
                    for event in http.receive(data):
                        if isinstance(event, HeadersReceived | DataReceived) and event.end and behaviour != "silence":
                            http.head(event.stream, _JSON)
                            http.send(event.stream, b'{"a":1}', end=behaviour == "answer")
                            broken = behaviour == "break"
                    writer.write(http.take())
            writer.close()

        server = await asyncio.start_server(talk, "127.0.0.1", 0)
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        server.close()
        await asyncio.gather(*(task for task in tasks if task is not None))
