"""aiohttp over sockets of this machine (unix:///PATH), on both loops."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import uvloop
from aiperf.sdk.plan import TlsPlan
from aiperf.sdk.transport import REFUSED, REUSED, TransportSettings
from aiperf_testing.server import Cut, Expect, Scripted, Send, Sleep, Step, UntilClosed, answer, chunk, chunked_head
from aiperf_testing.transports import OK, Ear, Stage, play
from aiperf_transport_aiohttp import AiohttpTransport

EVENT = b'data: {"n":1}\n\n'
Loop = Callable[[], asyncio.AbstractEventLoop]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "server.sock"


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def loop(request: pytest.FixtureRequest) -> Loop:
    made: Loop = request.param
    return made


def local(path: Path, scene: Any, loop: Loop, *scripts: list[Step], **settings: Any) -> None:
    play(AiohttpTransport, scene, *scripts, path=path, loop_factory=loop, **settings)


def test_requests_share_a_connection_of_their_socket(path: Path, loop: Loop) -> None:
    async def scene(stage: Stage) -> None:
        await stage.transport.warm(1)
        first, second = await stage.ask(b"{1}"), await stage.ask(b"{22}")
        assert first.flags & second.flags & REUSED and stage.transport.statistics["opened"] == 1
        assert [(got.target, got.body, got.header("Host")) for got in stage.server.requests] == [
            ("/v1/x?a=1&b=%20", b"{1}", "localhost"), ("/v1/x?a=1&b=%20", b"{22}", "localhost"),
        ]  # fmt: skip
        assert 0 < second.started_ns <= second.connected_ns <= second.sent_ns <= second.sent_end_ns <= second.ack_ns

    local(path, scene, loop, OK * 2 + [UntilClosed()], trust_env=True)


def test_long_bodies_go_both_ways_on_a_socket(path: Path, loop: Loop) -> None:
    body = bytes(3_000_000)

    async def scene(stage: Stage) -> None:
        exchange = await stage.ask(body)
        assert stage.server.requests[0].body == stage.ear.body(exchange) == body

    local(path, scene, loop, [Expect(), Send(answer(body))])


def test_a_server_that_closes_an_idle_socket_gets_another(path: Path, loop: Loop) -> None:
    async def scene(stage: Stage) -> None:
        await stage.ask()
        stage.server.links[0].sock.close()
        for _ in range(10):  # until the loop has noticed
            await asyncio.sleep(0)
        second = await stage.ask()
        assert not second.flags & REUSED and len(stage.server.links) == 2

    local(path, scene, loop, [*OK, Sleep(60)], OK)


def test_a_cut_answer_on_a_socket_is_an_error(path: Path, loop: Loop) -> None:
    async def scene(stage: Stage) -> None:
        await stage.fail()

    local(path, scene, loop, [Expect(), Send(chunked_head() + chunk(EVENT)), Cut()])


def test_an_aborted_request_closes_its_socket(path: Path, loop: Loop) -> None:
    async def scene(stage: Stage) -> None:
        exchange = stage.exchange()
        stage.transport.send(exchange)
        await stage.ear.until(lambda: exchange.request in stage.ear.chunks)
        stage.transport.abort(exchange, None)
        await stage.server.links[0].closed.wait()

    local(path, scene, loop, [Expect(), Send(chunked_head() + chunk(EVENT)), UntilClosed()])


def test_a_socket_without_a_server_is_named(path: Path, loop: Loop) -> None:
    async def go(*, listening: bool) -> str:
        ear = Ear()
        if listening:  # a socket on which nobody listens
            socket.socket(socket.AF_UNIX).bind(str(path))
        transport = AiohttpTransport(TransportSettings((f"unix://{path}",), TlsPlan()), ear, asyncio.get_running_loop())
        await transport.open()
        _, error = await Stage(transport, Scripted(path=path), ear).fail()
        await transport.close()
        assert error.cause == REFUSED
        return error.message

    with asyncio.Runner(loop_factory=loop) as runner:
        assert runner.run(go(listening=False)) == f"unix://{path}: No such file or directory"
        assert runner.run(go(listening=True)) == f"unix://{path}: Connection refused"


def test_a_socket_that_is_full_for_a_while_gets_every_request(path: Path, loop: Loop) -> None:
    async def go() -> None:
        ear = Ear()
        async with Scripted(OK, path=path, backlog=1) as server:
            transport = AiohttpTransport(TransportSettings((server.url,), TlsPlan()), ear, asyncio.get_running_loop())
            await transport.open()
            stage = Stage(transport, server, ear)
            exchanges = [stage.exchange() for _ in range(40)]
            for exchange in exchanges:
                transport.send(exchange)
            assert [await stage.over(exchange) for exchange in exchanges] == [None] * 40
            await transport.close()
            assert len(server.requests) == 40

    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(go())
