"""HTTP over sockets of this machine (unix:///PATH), with both readers."""

from __future__ import annotations

import asyncio
import socket
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from aiperf.sdk.plan import TlsPlan
from aiperf.sdk.transport import NO_STAMP, REFUSED, REUSED, TransportSettings
from aiperf_testing.server import Cut, Expect, Scripted, Send, Sleep, Step, UntilClosed, answer, chunk, chunked_head
from aiperf_testing.transports import OK, Ear, Stage, play
from aiperf_transport_sockets import KernelTransport

EVENTS = [b'data: {"n":%d}\n\n' % n for n in range(5)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "server.sock"


def local(path: Path, scene: Any, *scripts: list[Step], **settings: Any) -> None:
    play(KernelTransport, scene, *scripts, path=path, **settings)


def test_requests_share_a_connection_and_ask_for_their_path(path: Path) -> None:
    async def scene(stage: Stage) -> None:
        first, second = await stage.ask(b"{1}"), await stage.ask(b"{22}")
        assert stage.ear.body(first) == stage.ear.body(second) == b'{"a":1}'
        assert second.flags & REUSED and not (first.flags | second.flags) & NO_STAMP
        assert [(got.target, got.body, got.header("Host")) for got in stage.server.requests] == [
            ("/v1/x?a=1&b=%20", b"{1}", "localhost"), ("/v1/x?a=1&b=%20", b"{22}", "localhost"),
        ]  # fmt: skip
        assert stage.transport.statistics["stamps_missing"] == 0, "no stamp was promised"
        assert 0 < first.started_ns <= first.connected_ns <= first.sent_ns <= first.sent_end_ns <= first.ack_ns

    local(path, scene, OK * 2 + [UntilClosed()])


def test_events_of_one_read_may_all_have_come_earlier(path: Path) -> None:
    async def scene(stage: Stage) -> None:
        exchange = await stage.ask()
        reads = stage.ear.chunks[exchange.request]
        assert b"".join(read[0] for read in reads) == b"".join(EVENTS)
        assert all(kernel_ns == 0 and read_ns >= exchange.sent_ns for _, kernel_ns, read_ns, _ in reads)
        assert [read[3] for read in reads] == [max(0, read[0].count(b"data:") - 1) for read in reads]
        assert sum(read[3] for read in reads) == 4, "all were sent at once"

    pieces = b"".join(chunk(event) for event in EVENTS)
    local(path, scene, [Expect(), Send(chunked_head() + pieces + chunk())])


def test_pieces_of_a_stream_come_as_they_are_sent(path: Path) -> None:
    async def scene(stage: Stage) -> None:
        exchange = await stage.ask()
        stamps = [read[2] for read in stage.ear.chunks[exchange.request]]
        assert len(stamps) == 3 and all(later - sooner > 5_000_000 for sooner, later in pairwise(stamps))

    steps: list[Step] = [Expect(), Send(chunked_head())]
    for event in EVENTS[:3]:
        steps += [Sleep(0.05), Send(chunk(event))]
    local(path, scene, [*steps, Send(chunk())])


def test_long_bodies_go_both_ways(path: Path) -> None:
    body = bytes(3_000_000)

    async def scene(stage: Stage) -> None:
        exchange = await stage.ask(body)
        assert stage.server.requests[0].body == stage.ear.body(exchange) == body

    local(path, scene, [Expect(), Send(answer(body))])


def test_a_server_that_closes_an_idle_connection_gets_another(path: Path) -> None:
    async def scene(stage: Stage) -> None:
        await stage.ask()
        second = await stage.ask()
        assert not second.flags & REUSED and len(stage.server.links) == 2

    local(path, scene, [*OK, Cut()], OK)


def test_a_cut_answer_is_an_error(path: Path) -> None:
    async def scene(stage: Stage) -> None:
        _, error = await stage.fail()
        assert error.message == "the server closed the connection before a whole answer was in"

    local(path, scene, [Expect(), Send(chunked_head() + chunk(EVENTS[0])), Cut()])


def test_an_aborted_request_closes_its_connection(path: Path) -> None:
    async def scene(stage: Stage) -> None:
        exchange = stage.exchange()
        stage.transport.send(exchange)
        await stage.ear.until(lambda: exchange.request in stage.ear.chunks)
        stage.transport.abort(exchange, None)
        await stage.server.links[0].closed.wait()

    local(path, scene, [Expect(), Send(chunked_head() + chunk(EVENTS[0])), UntilClosed()])


def test_a_socket_that_is_not_there_is_named(path: Path) -> None:
    async def go(listening: bool) -> str:
        ear = Ear()
        if listening:  # a socket on which nobody listens
            socket.socket(socket.AF_UNIX).bind(str(path))
        transport = KernelTransport(TransportSettings((f"unix://{path}",), TlsPlan()), ear, asyncio.get_running_loop())
        await transport.open()
        stage = Stage(transport, Scripted(path=path), ear)
        exchange, error = await stage.fail()
        await transport.close()
        assert error.cause == REFUSED and not exchange.sent_ns
        return error.message

    assert asyncio.run(go(False)) == f"unix://{path}: No such file or directory"
    assert asyncio.run(go(True)) == f"unix://{path}: Connection refused"


def test_a_server_that_accepts_late_gets_every_request(path: Path) -> None:
    """Where more connections wait than the server allows, connecting fails at once; TCP would try again by itself."""

    async def go() -> None:
        ear = Ear()
        async with Scripted(OK, path=path, backlog=1) as server:
            transport = KernelTransport(TransportSettings((server.url,), TlsPlan()), ear, asyncio.get_running_loop())
            await transport.open()
            stage = Stage(transport, server, ear)
            exchanges = [stage.exchange() for _ in range(40)]
            for exchange in exchanges:
                transport.send(exchange)
            assert [await stage.over(exchange) for exchange in exchanges] == [None] * 40
            await transport.close()
            assert len(server.requests) == 40

    asyncio.run(go())


def test_connections_are_opened_ahead(path: Path) -> None:
    async def scene(stage: Stage) -> None:
        await stage.transport.warm(3)
        assert (await stage.ask()).flags & REUSED

    local(path, scene, *[OK] * 3)
