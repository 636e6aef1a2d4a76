"""Servers that close the connection behind a stream without having said so, and those that keep it."""

from __future__ import annotations

import asyncio

from aiperf.sdk.transport import REUSED, Exchange
from aiperf_testing.server import Expect, Fin, Send, Sleep, Step, chunk, chunked_head
from aiperf_testing.transports import Stage, play
from aiperf_transport_aiohttp import AiohttpTransport

BEGUN, REST = chunked_head() + chunk(b"data: 1\n\n"), chunk(b"data: 2\n\n") + chunk()
STREAM: list[Step] = [Expect(), Send(BEGUN), Sleep(0.01), Send(REST)]


async def chain(stage: Stage, count: int) -> list[Exchange]:
    """So many requests, each sent as soon as the one before is over."""
    exchanges = [stage.exchange(b'{"n":%d}' % number) for number in range(count)]
    waiting = iter(exchanges[1:])

    def go_on(_: Exchange) -> None:
        if (following := next(waiting, None)) is not None:
            stage.transport.send(following)

    stage.ear.on_done = go_on
    stage.transport.send(exchanges[0])
    await stage.over(exchanges[-1])
    return exchanges


def test_a_server_that_closes_behind_each_stream_fails_no_request() -> None:
    async def scene(stage: Stage) -> None:
        exchanges = await chain(stage, 4)
        assert [stage.ear.ends[exchange.request] for exchange in exchanges] == [[None]] * 4
        assert (len(stage.server.requests), len(stage.server.links)) == (4, 4)

    play(AiohttpTransport, scene, *[[*STREAM, Sleep(0.001), Fin()]] * 4)


def test_a_server_that_keeps_connections_behind_streams_is_known_to_by_the_first_use() -> None:
    async def scene(stage: Stage) -> None:
        await stage.ask()
        await asyncio.sleep(0.02)
        exchanges = await chain(stage, 4)
        assert [exchange.flags & REUSED for exchange in exchanges] == [REUSED] * 4
        assert len(stage.server.links) == 1

    play(AiohttpTransport, scene, STREAM * 5)
