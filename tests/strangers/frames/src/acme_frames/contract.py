"""The contracts of both plugins, with their material."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
from aiperf.sdk.asking import Reply
from aiperf.testing import EndpointContract, TransportContract

from acme_frames import Framed
from acme_frames.server import Server
from acme_frames.wire import Frames


class FramedContract(EndpointContract):
    endpoint = Framed()
    transcript = (msgspec.msgpack.encode({"text": "Hel"}), msgspec.msgpack.encode({"text": "lo"}))
    answer = "Hello"
    replies = (Reply(200, messages=(msgspec.msgpack.encode({"most_tokens": 5}),), trailers={"status": "0"}),)
    ready = replies


class FramesContract(TransportContract):
    transport = Frames
    body = msgspec.msgpack.encode({"max_tokens": 3})

    @asynccontextmanager
    async def serve(self, behaviour: str) -> AsyncIterator[str]:
        async with Server(behaviour) as server:
            yield server.url
