"""Servers that close the connection behind a stream without having said so, and those that keep it."""

from __future__ import annotations

import asyncio

import pytest
from aiperf.sdk.transport import REUSED, Exchange
from aiperf_testing.server import Expect, Fin, Send, Sleep, Step, UntilClosed, answer, chunk, chunked_head
from aiperf_testing.transports import Stage, play
from aiperf_transport_sockets import KernelTransport, origins

STREAM = chunked_head() + chunk(b"data: 1\n\n") + chunk()
PARTS: list[Step] = [Expect(), Send(STREAM), Sleep(0.001), Fin()]
REST_S = 0.02


async def chain(stage: Stage, count: int) -> list[Exchange]:
    """So many requests of one session, each sent in the turn of the loop that read the answer before."""
    exchanges = [stage.exchange(b'{"n":%d}' % number) for number in range(count)]
    for exchange in exchanges:
        exchange.session_id, exchange.final = "session", exchange is exchanges[-1]
    waiting = iter(exchanges[1:])

    def go_on(_: Exchange) -> None:
        if (following := next(waiting, None)) is not None:
            stage.transport.send(following)

    stage.ear.on_done = go_on
    stage.transport.send(exchanges[0])
    await stage.over(exchanges[-1])
    stage.ear.on_done = lambda exchange: None
    return exchanges


def test_a_server_that_closes_behind_each_stream_fails_no_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(origins, "_BEHIND_NS", 60_000_000_000)  # a busy machine sees late that it was closed

    async def scene(stage: Stage) -> None:
        exchanges = await chain(stage, 6)
        assert [stage.ear.ends[exchange.request] for exchange in exchanges] == [[None]] * 6
        assert [exchange.flags & REUSED for exchange in exchanges] == [0] * 6
        assert (len(stage.server.requests), len(stage.server.links)) == (6, 6)
        await asyncio.sleep(REST_S)
        exchange = await stage.ask()  # by now it is known, and the transport closes by itself
        assert exchange.flags & REUSED == 0
        await asyncio.wait_for(stage.server.links[6].closed.wait(), 60)

    play(KernelTransport, scene, *[PARTS] * 6, [Expect(), Send(STREAM), UntilClosed()])


def test_a_server_that_keeps_connections_behind_streams_is_known_to_by_the_first_use() -> None:
    async def scene(stage: Stage) -> None:
        await stage.ask()
        await asyncio.sleep(REST_S)
        exchanges = await chain(stage, 5)
        assert [exchange.flags & REUSED for exchange in exchanges] == [REUSED] * 5
        assert len(stage.server.links) == 1

    play(KernelTransport, scene, [Expect(), Send(STREAM)] * 6)


def test_a_connection_that_has_carried_no_answer_is_used_meanwhile() -> None:
    async def scene(stage: Stage) -> None:
        await stage.transport.warm(2)
        exchanges = await chain(stage, 2)
        assert [exchange.flags & REUSED for exchange in exchanges] == [REUSED] * 2
        assert [len(stage.server.links), len(stage.server.requests)] == [2, 2]

    play(KernelTransport, scene, *[[Expect(), Send(STREAM), Sleep(60)]] * 2)


def test_answers_that_are_no_streams_are_followed_at_once() -> None:
    async def scene(stage: Stage) -> None:
        exchanges = await chain(stage, 4)
        assert [exchange.flags & REUSED for exchange in exchanges] == [0, REUSED, REUSED, REUSED]

    play(KernelTransport, scene, [Expect(), Send(answer(b"{}"))] * 4)


def test_a_connection_that_is_closed_later_was_kept() -> None:
    async def scene(stage: Stage) -> None:
        for _ in range(2):
            await stage.ask()
            await asyncio.sleep(0.4)
        await stage.ask()
        await asyncio.sleep(REST_S)
        assert (await stage.ask()).flags & REUSED

    late: list[Step] = [Expect(), Send(STREAM), Sleep(0.2), Fin()]
    play(KernelTransport, scene, late, late, [Expect(), Send(STREAM)] * 2)


def test_a_session_keeps_its_own_connection() -> None:
    async def scene(stage: Stage) -> None:
        exchanges = await chain(stage, 3)
        assert [exchange.flags & REUSED for exchange in exchanges] == [0, REUSED, REUSED]

    play(KernelTransport, scene, [Expect(), Send(STREAM)] * 3, sticky=True)
