"""Calls and plain requests on streams: what is sent, what is read, when, and which connections carry it."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import uvloop
from aiperf.sdk.model import ErrorDetails
from aiperf.sdk.plan import TlsPlan
from aiperf.sdk.transport import NO_STAMP, REUSED, STREAMED
from aiperf_http2 import HeaderSet
from aiperf_http2.grpc import framed
from aiperf_testing.server import Certificate
from aiperf_transport_http2.contract import Http2Contract
from aiperf_transport_http2.options import Http2Options

JSON = HeaderSet([(":status", "200"), ("content-type", "application/json")])
EVENTS = HeaderSet([(":status", "200"), ("content-type", "text/event-stream")])


async def until(true: Callable[[], Any]) -> None:
    """Wait until *true* holds."""
    async with asyncio.timeout(60):
        while not true():
            await asyncio.sleep(0.001)


async def echo(peer: Any) -> None:
    await peer.echo()


class TestHttp2KeepsTheContract(Http2Contract):
    pass


class TestHttp2KeepsTheContractOnUvloop(TestHttp2KeepsTheContract):
    loop_factory = uvloop.new_event_loop


def test_a_call_sends_one_message_and_reads_one(play: Any) -> None:
    heads: list[dict[str, str]] = []

    async def script(peer: Any) -> None:
        while True:
            stream, head, body = await peer.request()
            heads.append(head)
            peer.answer(stream, body[5:] * 2)

    async def scene(scene: Any) -> None:
        exchange, error = await scene.ask(b"hi", headers={"Authorization": "Bearer k", "X-Trace-Bin": "AAE"})
        assert error is None and scene.messages(exchange) == [b"hihi"]
        assert (exchange.status, exchange.bytes_received, exchange.flags & REUSED) == (200, 9, 0)
        times = [exchange.started_ns, exchange.connected_ns, exchange.sent_ns, exchange.sent_end_ns, exchange.ack_ns]
        assert times == sorted(times) and exchange.connect_ns > 0
        ((_, kernel_ns, _, hidden),) = scene.ear.chunks[exchange.request]
        assert (kernel_ns > 0 or exchange.flags & NO_STAMP) and hidden == -1
        assert scene.ear.trails[exchange.request] == [("grpc-status", "0")] and scene.ear.heads == {}
        again = scene.exchange(b"hi")
        again.deadline_ns = again.started_ns + 10**10
        scene.transport.send(again)
        assert await scene.over(again) is None and again.flags & REUSED
        assert scene.transport.statistics["opened"] == 1

    play(script, scene)
    first, second = heads
    url_host = first.pop(":authority")
    assert url_host.startswith("127.0.0.1:") and second[":authority"] == url_host
    assert first == {
        ":method": "POST", ":scheme": "http", ":path": "/pkg.Service/Method", "te": "trailers", "user-agent": "test/1",
        "content-type": "application/grpc", "authorization": "Bearer k", "x-trace-bin": "AAE", "x-request-id": "request-0",
        "x-correlation-id": "session-0",
    }  # fmt: skip
    timeout = second["grpc-timeout"]
    assert timeout[-1] == "u" and 9_000_000 < int(timeout[:-1]) <= 10_000_000


@pytest.mark.parametrize("answers", [0, 1, 5])
def test_streamed_messages_are_told_one_by_one(play: Any, answers: int) -> None:
    async def script(peer: Any) -> None:
        stream, _, _ = await peer.request()
        peer.answer(stream, *(b"m%d" % n for n in range(answers)))
        await peer.closed()

    async def scene(scene: Any) -> None:
        exchange, error = await scene.ask()
        assert error is None and scene.messages(exchange) == [b"m%d" % n for n in range(answers)]

    play(script, scene)


def test_a_bidirectional_call_reads_while_it_sends(play: Any) -> None:
    """Each message is sent behind the answer to the one before, which the server holds back until it has come."""
    got: list[tuple[int, float]] = []

    async def script(peer: Any) -> None:
        stream, _, _ = await peer.request(whole=False)
        peer.http.head(stream, HeaderSet([(":status", "200"), ("content-type", "application/grpc")]))
        seen = 0
        loop = asyncio.get_running_loop()
        while seen < 3:
            if len(peer.bodies.get(stream.number, b"")) >= 7 * (seen + 1):
                seen += 1
                got.append((seen, loop.time()))
                peer.http.send(stream, framed(b"a%d" % seen))
                peer.flush()
            else:
                await peer.event()
        peer.http.finish(stream, HeaderSet([("grpc-status", "0")]))
        peer.flush()
        await peer.closed()

    async def scene(scene: Any) -> None:
        parts = ((2, 0), (2, 20_000_000), (2, 30_000_000))
        exchange, error = await scene.ask(b"m1m2m3", parts=parts)
        assert error is None and scene.messages(exchange) == [b"a1", b"a2", b"a3"]
        reads = [read_ns for _, _, read_ns, _ in scene.ear.chunks[exchange.request]]
        assert reads[0] < exchange.sent_end_ns < reads[2] and exchange.sent_end_ns - exchange.sent_ns >= 50_000_000

    play(script, scene)
    times = [at for _, at in got]
    assert times[1] - times[0] >= 0.015 and times[2] - times[1] >= 0.025


def test_thousands_of_parts_are_no_burden(play: Any) -> None:
    async def script(peer: Any) -> None:
        stream, _, body = await peer.request()
        peer.answer(stream, b"%d" % len(body))
        await peer.closed()

    async def scene(scene: Any) -> None:
        exchange, error = await scene.ask(b"x" * 5000, parts=((1, 0),) * 5000)
        assert error is None and scene.messages(exchange) == [b"30000"]

    play(script, scene)


def test_a_wait_before_the_first_part_is_behind_the_head(play: Any) -> None:
    async def scene(scene: Any) -> None:
        exchange, error = await scene.ask(b"late", parts=((4, 20_000_000),))
        assert error is None and exchange.sent_end_ns - exchange.sent_ns >= 20_000_000

    play(echo, scene)


def test_an_answer_may_end_before_its_request(play: Any) -> None:
    async def script(peer: Any) -> None:
        stream, _, _ = await peer.request(whole=False)
        peer.answer(stream, b"enough")
        await peer.echo()

    async def scene(scene: Any) -> None:
        exchange, error = await scene.ask(b"ab", parts=((1, 0), (1, 10**11)))
        assert error is None and scene.messages(exchange) == [b"enough"] and exchange.sent_end_ns == 0
        await until(lambda: scene.peers[0].resets)
        assert scene.peers[0].resets == [(1, "NO_ERROR")]
        _, error = await scene.ask()
        assert error is None and len(scene.peers) == 1

    play(script, scene)


def test_an_abort_resets_one_stream_of_many(play: Any) -> None:
    async def script(peer: Any) -> None:
        streams = [(await peer.request())[0] for _ in range(64)]
        while not peer.resets:
            await peer.event()
        for stream in streams:
            peer.answer(stream, b"still here")
        await peer.closed()

    async def scene(scene: Any) -> None:
        exchanges = [scene.exchange() for _ in range(64)]
        for exchange in exchanges:
            scene.transport.send(exchange)
        await until(lambda: all(exchange.sent_end_ns for exchange in exchanges))
        victim = exchanges.pop(30)
        scene.transport.abort(victim, ErrorDetails("too late", type="Abort"))
        assert scene.error(victim).message == "too late"
        for exchange in exchanges:
            assert await scene.over(exchange) is None and scene.messages(exchange) == [b"still here"]
        assert len(scene.peers) == 1 and scene.peers[0].resets == [(61, "CANCEL")]

    play(script, scene)


def test_streams_share_connections_up_to_the_option(play: Any) -> None:
    async def scene(scene: Any) -> None:
        exchanges = await scene.together(10)
        assert all(scene.error(each) is None for each in exchanges)
        assert len(scene.peers) == 4
        assert scene.transport.statistics["streams_per_connection"] == 3
        await scene.together(10)
        assert len(scene.peers) == 4, "idle connections are used again"

    play(echo, scene, options=Http2Options(streams_per_connection=3))


@pytest.mark.parametrize("limit", [1, 2])
def test_the_servers_limit_of_streams_counts_where_it_is_lower(play: Any, limit: int) -> None:
    async def scene(scene: Any) -> None:
        exchanges = await scene.together(6)
        assert [scene.error(each) for each in exchanges] == [None] * 6
        assert len(scene.peers) == 6 // limit and not any(peer.resets for peer in scene.peers)
        assert scene.transport.statistics["streams_per_connection"] == limit

    play(echo, scene, server={"max_streams": limit})


def test_connections_are_opened_ahead_for_as_many_requests(play: Any) -> None:
    async def scene(scene: Any) -> None:
        await scene.transport.warm(5)
        assert len(scene.peers) == 3
        exchanges = await scene.together(5)
        assert all(each.flags & REUSED and not each.connect_ns for each in exchanges) and len(scene.peers) == 3

    play(echo, scene, server={"max_streams": 2})


def test_a_connection_for_each_request_is_closed_behind_it(play: Any) -> None:
    async def script(peer: Any) -> None:
        await peer.echo()

    async def scene(scene: Any) -> None:
        for number in range(3):
            exchange, error = await scene.ask()
            assert error is None and not exchange.flags & REUSED and len(scene.peers) == number + 1
        assert scene.transport.links == set()

    play(script, scene, reuse=False)


def test_a_session_has_a_connection_of_its_own(play: Any) -> None:
    async def scene(scene: Any) -> None:
        for turn in range(3):
            exchanges = [scene.exchange(session=name) for name in ("one", "other")]
            for exchange in exchanges:
                exchange.final = turn == 2
                scene.transport.send(exchange)
            for exchange in exchanges:
                assert await scene.over(exchange) is None
        assert len(scene.peers) == 2 and scene.transport.links == set()
        first, later = scene.exchange(session="third"), scene.exchange(session="third")
        first.final = later.final = False
        scene.transport.send(first)
        await scene.over(first)
        scene.transport.part("third")
        assert scene.transport.links == set()

    play(echo, scene, sticky=True)


def test_plain_requests_are_read_by_their_content_type(play: Any) -> None:
    async def script(peer: Any) -> None:
        while True:
            stream, head, body = await peer.request()
            assert head.get("content-length") == str(len(body)) and "te" not in head and head["accept"] == "*/*"
            if head[":path"] == "/events":
                peer.http.head(stream, EVENTS)
                for number in range(3):
                    peer.http.send(stream, b"data: %d\n\n" % number)
                peer.http.send(stream, b"", end=True)
            else:
                peer.http.head(stream, JSON)
                peer.http.send(stream, body, end=True)
            peer.flush()

    async def scene(scene: Any) -> None:
        exchange, error = await scene.ask(b'{"a":1}', kind="application/json")
        assert error is None and scene.messages(exchange) == [b'{"a":1}'] and not exchange.flags & STREAMED
        exchange, error = await scene.ask(b"{}", kind="application/json", url=f"{scene.url}/events")
        assert error is None and exchange.flags & STREAMED and scene.ear.body(exchange).count(b"data:") == 3
        assert scene.ear.heads == {}

    play(script, scene, scheme="http")


@pytest.mark.parametrize("alpn", [("h2", "http/1.1"), ()])
@pytest.mark.parametrize("scheme", ["grpcs", "https"])
def test_tls_is_agreed_on_by_alpn_or_known_before(play: Any, tmp_path: Path, scheme: str, alpn: tuple[str, ...]) -> None:
    certificate = made(tmp_path)

    async def scene(scene: Any) -> None:
        exchanges = await scene.together(5)
        assert [scene.error(each) for each in exchanges] == [None] * 5
        assert all(each.tls_ns > 0 for each in exchanges)
        exchange, error = await scene.ask(b"x" * 300_000)
        assert error is None and scene.messages(exchange) == [b"x" * 300_000]
        assert exchange.flags & NO_STAMP or all(kernel_ns for _, kernel_ns, _, _ in scene.ear.chunks[exchange.request])

    play(echo, scene, scheme=scheme, certificate=certificate, alpn=alpn)


@pytest.mark.parametrize("known", [True, False])
def test_the_clients_certificate_is_shown_to_a_server_that_asks(play: Any, tmp_path: Path, known: bool) -> None:
    own = made(tmp_path)
    tls = TlsPlan(ca_file=str(own.cert))
    if known:
        tls = TlsPlan(ca_file=str(own.cert), client_cert=str(own.cert), client_key=str(own.key))

    async def scene(scene: Any) -> None:
        exchange, error = await scene.ask()
        assert (error is None) == known, error
        assert known or not exchange.status

    play(echo, scene, scheme="grpcs", certificate=own, mutual=True, tls=tls)


def made(folder: Path) -> Certificate:
    try:
        return Certificate.made(folder)
    except FileNotFoundError as error:
        pytest.skip(str(error))


def test_a_tls_server_without_http2_is_named(play: Any, tmp_path: Path) -> None:
    async def script(peer: Any) -> None:
        await peer.event()
        peer.write(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")

    async def scene(scene: Any) -> None:
        exchange, error = await scene.ask()
        assert exchange.sent_ns == 0 and error is not None
        assert "HTTP/2" in error.message and ("ALPN" in error.message or "HTTP/1.1" in error.message), error

    play(script, scene, scheme="grpcs", certificate=made(tmp_path), alpn=("http/1.1",), server={"greets": False})


def test_a_preview_has_the_headers_that_are_sent(play: Any) -> None:
    async def script(peer: Any) -> None:
        stream, head, _ = await peer.request()
        seen.append(head)
        peer.answer(stream, b"")
        await peer.closed()

    seen: list[dict[str, str]] = []

    async def scene(scene: Any) -> None:
        exchange = scene.exchange(headers={"Host": "other", "Connection": "close", "X-A": " b "})
        shown = scene.transport.request_headers(exchange)
        scene.transport.send(exchange)
        assert await scene.over(exchange) is None and seen == [dict(shown)]
        assert seen[0][":authority"] == "other" and seen[0]["x-a"] == "b" and "connection" not in seen[0]

    play(script, scene)


def test_a_binary_header_that_is_no_base64_is_refused(play: Any) -> None:
    async def scene(scene: Any) -> None:
        _, error = await scene.ask(headers={"X-Bin": "no base64!"})
        assert error is not None and "x-bin" in error.message and "base64" in error.message

    play(echo, scene)


def test_heads_are_kept_where_the_settings_ask(play: Any) -> None:
    async def scene(scene: Any) -> None:
        exchange, _ = await scene.ask()
        assert scene.ear.heads == {exchange.request: (200, "OK", {"content-type": "application/grpc"})}

    play(echo, scene, keep_heads=True)


def test_sockets_of_this_machine_carry_calls_too(play: Any, tmp_path: Path) -> None:
    async def scene(scene: Any) -> None:
        async with await asyncio.start_unix_server(scene.server.talk, tmp_path / "socket"):
            exchanges = await scene.together(20, url=f"unix://{tmp_path}/socket/pkg.Service/Method")
            assert [scene.error(each) for each in exchanges] == [None] * 20 and len(scene.peers) == 1
            assert scene.transport.statistics["stamps_missing"] == 0 and not exchanges[0].flags & NO_STAMP
            await scene.transport.close()

    play(echo, scene, urls=(f"unix://{tmp_path}/socket",))


@pytest.mark.parametrize("end", ["answered", "aborted", "lost"])
def test_a_closed_connection_is_freed_without_garbage_collection(play: Any, end: str) -> None:
    async def script(peer: Any) -> None:
        stream, _, _ = await peer.request()
        if end == "answered":
            peer.answer(stream, b"yes")
        if end != "lost":
            await peer.closed()

    async def scene(scene: Any) -> None:
        gc.disable()
        try:
            exchange = scene.exchange()
            scene.transport.send(exchange)
            (link,) = scene.transport.links
            gone = [weakref.ref(link), weakref.ref(link.wire), weakref.ref(link.http)]
            del link
            if end == "aborted":
                await until(lambda: exchange.sent_end_ns)
                scene.transport.abort(exchange, None)
            await scene.over(exchange)
            await until(lambda: not scene.transport.links)
            await asyncio.sleep(0.01)
            assert [each() for each in gone] == [None] * 3
        finally:
            gc.enable()

    play(script, scene, reuse=False)
