"""A small server of calls, which keeps what it saw: for the contract and for trials."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import msgspec

from acme_frames.wire import PREFIX, TRAILERS, frame


async def read_frame(reader: asyncio.StreamReader) -> bytes:
    _, size = PREFIX.unpack(await reader.readexactly(PREFIX.size))
    return await reader.readexactly(size)


class Server:
    """Answers calls with one word a message; *behaviour*: ``answer``, ``silence``, ``break`` (in the middle of an answer).

    A call whose text has the word *refused* gets a status and no message.  calls: path and fields of each call, in order.
    most_tokens: what it says of its model in answer to Describe, of which it refuses the first *unready*.
    """

    def __init__(self, behaviour: str = "answer", *, pause_s: float = 0.0, most_tokens: int = 1000, unready: int = 0) -> None:
        self.behaviour, self.pause_s, self.most_tokens, self.unready = behaviour, pause_s, most_tokens, unready
        self.described = 0
        self.calls: list[tuple[str, Mapping[str, Any]]] = []
        self.port = 0

    async def __aenter__(self) -> Server:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *error: object) -> None:
        self._server.close()

    @property
    def url(self) -> str:
        return f"frames://127.0.0.1:{self.port}"

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                path = msgspec.json.decode(await read_frame(reader))["path"]
                call = msgspec.msgpack.decode(await read_frame(reader), type=dict[str, Any])
                if path == "/acme.Text/Describe":
                    self._describe(writer)
                    continue
                self.calls.append((path, call))
                if self.behaviour == "silence":
                    await reader.read()
                    return
                await self._answer(writer, path, call)
                if self.behaviour == "break":
                    return
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    def _describe(self, writer: asyncio.StreamWriter) -> None:
        self.described += 1
        ready = self.described > self.unready
        if ready:
            writer.write(frame(msgspec.msgpack.encode({"most_tokens": self.most_tokens})))
        trailers = [("status", "0" if ready else "14"), ("message", "the model is loaded")]
        writer.write(frame(msgspec.json.encode(trailers), TRAILERS))

    async def _answer(self, writer: asyncio.StreamWriter, path: str, call: Mapping[str, Any]) -> None:
        words = [f"word{i} " for i in range(int(call.get("max_tokens") or 3))]
        if call.get("refuse"):
            trailers = [("status", "8"), ("message", "the quota is spent")]
            words = []
        else:
            trailers = [("status", "0"), ("tokens", str(len(words)))]
        for text in words if path.endswith("Stream") or not words else ["".join(words)]:
            message = frame(msgspec.msgpack.encode({"text": text}))
            if self.behaviour == "break":
                writer.write(message[:-1])
                await writer.drain()
                return
            writer.write(message[:3])  # the network cuts where it likes
            await writer.drain()
            await asyncio.sleep(self.pause_s)
            writer.write(message[3:])
        writer.write(frame(msgspec.json.encode(trailers), TRAILERS))
        await writer.drain()
