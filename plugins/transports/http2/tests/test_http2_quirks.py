"""What servers of HTTP/2 and gRPC do to a client: each row plays a server by hand."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import Any

import pytest
from aiperf.sdk.transport import RECONNECTED, REFUSED, RESENT, REUSED
from aiperf_http2 import HeaderSet, Http2Stream, literal
from aiperf_http2 import frames as f
from aiperf_http2.grpc import framed

GRPC = literal(":status", "200") + literal("content-type", "application/grpc")
GOOD = literal("grpc-status", "0")
OK = HeaderSet([(":status", "200"), ("content-type", "application/grpc")])


def head(stream: Http2Stream, block: bytes = GRPC, flags: int = f.END_HEADERS) -> bytes:
    return f.frame(f.HEADERS, flags, stream.number, block)


def data(stream: Http2Stream, payload: bytes, flags: int = 0) -> bytes:
    return f.frame(f.DATA, flags, stream.number, payload)


def tail(stream: Http2Stream, block: bytes = GOOD) -> bytes:
    return head(stream, block, f.END_HEADERS | f.END_STREAM)


def goaway(last: int, code: int = 0, text: bytes = b"") -> bytes:
    return f.frame(f.GOAWAY, 0, 0, last.to_bytes(4, "big") + code.to_bytes(4, "big") + text)


async def echo(peer: Any) -> None:
    await peer.echo()


def padded(stream: Http2Stream, payload: bytes) -> bytes:
    return f.frame(f.DATA, f.PADDED, stream.number, b"\x05" + payload + bytes(5))


def ping(payload: bytes) -> bytes:
    return f.frame(f.PING, 0, 0, payload)


def reset(stream: Http2Stream, code: int) -> bytes:
    return f.frame(f.RST_STREAM, 0, stream.number, code.to_bytes(4, "big"))


def zipped(stream: Http2Stream, encoding: str) -> bytes:
    """An answer whose message says that it is compressed."""
    return head(stream, GRPC + literal("grpc-encoding", encoding)) + data(stream, b"\x01" + framed(b"yes")[1:]) + tail(stream)


GOOD_ANSWERS: dict[str, Callable[[Http2Stream], bytes]] = {
    "padding": lambda s: head(s) + padded(s, framed(b"yes")) + padded(s, b"") + tail(s),
    "a padded head": lambda s: (
        f.frame(f.HEADERS, f.END_HEADERS | f.PADDED | f.PRIORITIZED, s.number, b"\x03" + bytes(5) + GRPC + bytes(3))
        + data(s, framed(b"yes")) + tail(s)
    ),
    "continuation": lambda s: (
        head(s, GRPC[:7], 0) + f.frame(f.CONTINUATION, 0, s.number, GRPC[7:9])
        + f.frame(f.CONTINUATION, f.END_HEADERS, s.number, GRPC[9:]) + data(s, framed(b"yes")) + tail(s)
    ),
    "settings in the middle": lambda s: (
        head(s) + data(s, framed(b"yes")[:4]) + f.settings_frame({f.INITIAL_WINDOW_SIZE: 9, f.MAX_CONCURRENT_STREAMS: 1})
        + data(s, framed(b"yes")[4:]) + tail(s)
    ),
    "pings": lambda s: ping(b"12345678") + head(s) + ping(b"abcdefgh") + data(s, framed(b"yes")) + tail(s),
    "unknown frames": lambda s: (
        f.frame(99, 255, s.number, b"?") + head(s) + f.frame(42, 0, 0, b"!") + data(s, framed(b"yes")) + tail(s)
    ),
    "interim answers": lambda s: head(s, literal(":status", "103")) + head(s) + data(s, framed(b"yes")) + tail(s),
    "frames without bytes": lambda s: head(s) + data(s, b"") * 20 + data(s, framed(b"yes")) + data(s, b"") + tail(s),
    "a reset behind the end": lambda s: head(s) + data(s, framed(b"yes")) + tail(s) + reset(s, 0),
    "an end before its status": lambda s: head(s) + data(s, framed(b"yes")) + goaway(s.number) + tail(s),
}  # fmt: skip


@pytest.mark.parametrize("cut", [0, 1], ids=["whole", "byte by byte"])
@pytest.mark.parametrize("name", GOOD_ANSWERS)
def test_a_good_answer_is_read_however_it_comes(play: Any, name: str, cut: int) -> None:
    async def script(peer: Any) -> None:
        while True:
            stream, _, _ = await peer.request()
            answer = GOOD_ANSWERS[name](stream)
            for at in range(0, len(answer), cut or len(answer)):
                peer.write(answer[at : at + (cut or len(answer))])
                if cut:
                    await peer.writer.drain()
                    await asyncio.sleep(0)

    async def scene(scene: Any) -> None:
        for _ in range(2):
            exchange, error = await scene.ask()
            assert error is None and scene.messages(exchange) == [b"yes"]

    play(script, scene)


BAD_ANSWERS: dict[str, tuple[Callable[[Http2Stream], bytes], str, int | None]] = {
    "no status": (lambda s: head(s) + data(s, framed(b"yes")) + tail(s, literal("x", "y")), "without grpc-status", None),
    "no trailers": (lambda s: head(s) + data(s, framed(b"yes"), f.END_STREAM), "without grpc-status", None),
    "a status of words": (lambda s: head(s) + tail(s, literal("grpc-status", "fine")), "grpc-status 'fine'", None),
    "trailers alone": (
        lambda s: tail(s, GRPC + literal("grpc-status", "5") + literal("grpc-message", "no model %E2%80%9Cm%E2%80%9D, 100%")),
        "no model “m”, 100%", 404,
    ),
    "trailers alone without a type": (
        lambda s: tail(s, literal(":status", "200") + literal("grpc-status", "12")), "UNIMPLEMENTED", 501
    ),
    "an error behind messages": (
        lambda s: head(s) + data(s, framed(b"yes")) + tail(s, literal("grpc-status", "14")), "UNAVAILABLE", 503
    ),
    "compressed, identity": (lambda s: zipped(s, "identity"), "compressed", None),
    "compressed, gzip": (lambda s: zipped(s, "gzip"), "compressed", None),
    "a message too long": (
        lambda s: head(s) + data(s, b"\0\x10\0\0\x01begins"), "268,435,457 bytes, more than 268,435,456", None
    ),
    "a message that is cut": (lambda s: head(s) + data(s, framed(b"yes")[:6]) + tail(s), "inside a message", None),
    "not of gRPC": (
        lambda s: head(s, literal(":status", "200") + literal("content-type", "text/html")) + data(s, b"<p>", f.END_STREAM),
        "not of gRPC", None,
    ),
    "not of gRPC, with a status": (
        lambda s: head(s, literal(":status", "200") + literal("content-type", "application/json")) + data(s, b"{}") + tail(s),
        "not of gRPC", None,
    ),
    "a reset": (lambda s: head(s) + reset(s, f.INTERNAL_ERROR), "INTERNAL_ERROR", None),
    "HTTP/1.1 wanted": (lambda s: reset(s, f.HTTP_1_1_REQUIRED), "HTTP/1.1", None),
    "refused twice": (lambda s: reset(s, f.REFUSED_STREAM), "REFUSED_STREAM", None),
    "data before the head": (lambda s: data(s, b"x"), "without its head", None),
    "names in capitals": (lambda s: head(s, GRPC + literal("X-A", "b")), "'X-A'", None),
    "a head that is too long": (
        lambda s: head(s, GRPC, 0) + f.frame(f.CONTINUATION, 0, s.number, bytes(16_000)) * 5, "longer than 65,536", None
    ),
    "a promise": (lambda s: f.frame(f.PUSH_PROMISE, 4, s.number, bytes(4)), "PUSH_PROMISE", None),
    "a frame that is too long": (lambda s: f.HEAD.pack(64, 1, f.DATA, 0, s.number), "16,385 bytes", None),
    "a farewell, and the end": (
        lambda s: head(s) + goaway(s.number, f.ENHANCE_YOUR_CALM, b"too_many_pings"), "ENHANCE_YOUR_CALM: too_many_pings", None
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD_ANSWERS)
def test_a_bad_answer_is_a_named_error(play: Any, name: str) -> None:
    answer, words, code = BAD_ANSWERS[name]

    async def script(peer: Any) -> None:
        if peer.number:
            await peer.echo()
        stream, _, _ = await peer.request()
        peer.write(answer(stream))
        if name == "refused twice":
            stream, _, _ = await peer.request()
            peer.write(answer(stream))
        if name != "a farewell, and the end":
            await peer.echo()

    async def scene(scene: Any) -> None:
        _, error = await scene.ask()
        assert error is not None and words in error.message and error.type, error
        assert code is None or error.code == code
        _, error = await scene.ask(b"next")
        assert error is None, "the next request finds a connection"

    play(script, scene)


def test_a_page_of_a_proxy_keeps_its_status_and_bytes(play: Any) -> None:
    async def script(peer: Any) -> None:
        stream, _, _ = await peer.request()
        page = HeaderSet([(":status", "502"), ("content-type", "text/html")])
        peer.http.head(stream, page)
        peer.http.send(stream, b"<h1>Bad Gateway</h1>", end=True)
        peer.flush()
        await peer.closed()

    async def scene(scene: Any) -> None:
        exchange, error = await scene.ask()
        assert (error, exchange.status) == (None, 502) and scene.ear.body(exchange) == b"<h1>Bad Gateway</h1>"
        assert scene.ear.heads[exchange.request] == (502, "Bad Gateway", {"content-type": "text/html"})

    play(script, scene)


@pytest.mark.parametrize(("size", "told"), [(9, None), (8, "8 bytes, and its Content-Length says 9"), (10, "10 bytes")])
def test_a_plain_answer_has_the_bytes_that_it_announces(play: Any, size: int, told: str | None) -> None:
    async def script(peer: Any) -> None:
        stream, _, _ = await peer.request()
        announced = HeaderSet([(":status", "200"), ("content-type", "application/json"), ("content-length", "9")])
        peer.http.head(stream, announced)
        peer.http.send(stream, b"x" * size, end=True)
        peer.flush()
        await peer.closed()

    async def scene(scene: Any) -> None:
        _, error = await scene.ask(kind="application/json")
        assert error is None if told is None else error is not None and told in error.message

    play(script, scene, scheme="http")


def test_streams_above_a_farewell_are_sent_once_more(play: Any) -> None:
    async def script(peer: Any) -> None:
        if peer.number:
            await peer.echo()
        streams = [(await peer.request())[0] for _ in range(6)]
        peer.write(goaway(streams[2].number))
        for stream in streams[:3]:
            peer.answer(stream, b"old")
        await peer.closed()

    async def scene(scene: Any) -> None:
        exchanges = await scene.together(6)
        assert [scene.error(each) for each in exchanges] == [None] * 6
        assert [scene.messages(each) for each in exchanges] == [[b"old"]] * 3 + [[b"3"], [b"4"], [b"5"]]
        assert [each.flags & (RESENT | RECONNECTED) for each in exchanges] == [0] * 3 + [RESENT] * 3
        assert len(scene.peers) == 2

    play(script, scene)


def test_a_request_is_sent_once_more_and_not_twice(play: Any) -> None:
    async def script(peer: Any) -> None:
        await peer.request()
        peer.write(goaway(0, 0, b"shutting down"))
        await peer.closed()

    async def scene(scene: Any) -> None:
        exchange, error = await scene.ask()
        assert error is not None and "shutting down" in error.message and exchange.flags & RESENT
        assert len(scene.peers) == 2

    play(script, scene)


def test_a_refused_stream_goes_to_another_one(play: Any) -> None:
    async def script(peer: Any) -> None:
        stream, _, _ = await peer.request()
        peer.write(reset(stream, f.REFUSED_STREAM))
        await peer.echo()

    async def scene(scene: Any) -> None:
        exchange, error = await scene.ask(b"again")
        assert error is None and exchange.flags & RESENT and scene.messages(exchange) == [b"again"]

    play(script, scene)


@pytest.mark.parametrize("begun", [False, True])
def test_what_a_lost_connection_had_read_is_an_error(play: Any, begun: bool) -> None:
    async def script(peer: Any) -> None:
        stream, _, _ = await peer.request()
        peer.answer(stream, b"first")
        streams = [(await peer.request())[0] for _ in range(3)]
        if begun:
            peer.write(head(streams[0]), data(streams[0], framed(b"half")))

    async def scene(scene: Any) -> None:
        await scene.ask()
        exchanges = await scene.together(3)
        assert all((error := scene.error(each)) is not None and error.type == "ConnectionResetError" for each in exchanges)
        assert all(each.flags & REUSED and not each.flags & (RESENT | RECONNECTED) for each in exchanges)
        assert len(scene.peers) == 1

    play(script, scene)


def test_an_idle_connection_that_closed_is_replaced(play: Any) -> None:
    async def script(peer: Any) -> None:
        stream, _, body = await peer.request()
        peer.answer(stream, body[5:])

    async def scene(scene: Any) -> None:
        for number in range(3):
            exchange, error = await scene.ask(b"%d" % number)
            while scene.transport.links:
                await asyncio.sleep(0.001)
            assert error is None and scene.messages(exchange) == [b"%d" % number]
        assert len(scene.peers) == 3

    play(script, scene)


@pytest.mark.parametrize("says", [b"", goaway(1)])
def test_a_session_goes_on_where_its_connection_closed(play: Any, says: bytes) -> None:
    async def script(peer: Any) -> None:
        stream, _, body = await peer.request()
        peer.answer(stream, body[5:])
        peer.write(says)

    async def scene(scene: Any) -> None:
        for turn in range(3):
            exchange = scene.exchange(b"%d" % turn, session="one")
            exchange.final = turn == 2
            scene.transport.send(exchange)
            assert await scene.over(exchange) is None and scene.messages(exchange) == [b"%d" % turn]
            assert exchange.flags & RECONNECTED == (RECONNECTED if turn else 0)
            while scene.transport.links:
                await asyncio.sleep(0.001)
        assert len(scene.peers) == 3

    play(script, scene, sticky=True)


def test_windows_of_the_server_hold_a_request_up_and_are_counted(play: Any) -> None:
    async def scene(scene: Any) -> None:
        for _ in range(2):
            exchange, error = await scene.ask(b"abc" + bytes(99_997))
            assert error is None and scene.messages(exchange) == [b"abc"]
        statistics = scene.transport.statistics
        assert statistics["window_stalls"] > 0 and statistics["window_stalled_ns"] > 0

    async def script(peer: Any) -> None:
        peer.write(f.settings_frame({f.INITIAL_WINDOW_SIZE: 1000}))
        for _ in range(2):
            stream: Any = None
            while stream is None or len(peer.bodies.get(stream.number, b"")) < 100_005:
                event = await peer.event()
                stream = event.stream if hasattr(event, "stream") else stream
                if hasattr(event, "data"):
                    size = len(event.data).to_bytes(4, "big")
                    peer.write(f.frame(f.WINDOW_UPDATE, 0, stream.number, size), f.frame(f.WINDOW_UPDATE, 0, 0, size))
            peer.answer(stream, peer.bodies[stream.number][5:8])
        await peer.closed()

    play(script, scene)


def test_a_window_that_never_opens_leaves_the_others_alone(play: Any) -> None:
    async def script(peer: Any) -> None:
        first, _, _ = await peer.request(whole=False)
        while True:
            stream, _, body = await peer.request()
            assert stream is not first
            peer.answer(stream, body[5:])

    async def scene(scene: Any) -> None:
        stuck = scene.exchange(bytes(1000))
        scene.transport.send(stuck)
        while not scene.transport.statistics["window_stalls"]:
            await asyncio.sleep(0.001)
        exchange, error = await scene.ask(b"small")
        assert error is None and scene.messages(exchange) == [b"small"]
        assert stuck.request not in scene.ear.ends and not stuck.sent_end_ns
        scene.transport.abort(stuck, None)

    play(script, scene, server={"window": 500})


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n", "the server speaks HTTP/1.1"),
        (b"", "does it speak HTTP/1.1 alone?"), (b"\x15\x03\x03\0\x02\x02\x28\0\0", "the server speaks TLS"),
        (b"220 mail.example ESMTP\r\n", "the server speaks no HTTP/2"),
    ],
)  # fmt: skip
def test_a_server_that_speaks_otherwise_is_named(play: Any, said: bytes, words: str) -> None:
    async def script(peer: Any) -> None:
        await peer.event()
        peer.write(said)
        await peer.writer.drain()

    async def scene(scene: Any) -> None:
        exchange, error = await scene.ask()
        assert error is not None and words in error.message and not exchange.sent_ns

    play(script, scene, server={"greets": False})


def test_a_server_that_dies_was_one_of_http2(play: Any) -> None:
    async def script(peer: Any) -> None:
        if peer.number == 0:
            peer.flush()
            stream, _, body = await peer.request()
            peer.answer(stream, body[5:])
        else:
            await peer.event()

    async def scene(scene: Any) -> None:
        _, error = await scene.ask()
        assert error is None
        while scene.transport.links:
            await asyncio.sleep(0.001)
        _, error = await scene.ask()
        assert error is not None and error.type == "ConnectionResetError" and "HTTP/1.1" not in error.message

    play(script, scene, server={"greets": False})


def test_a_server_that_says_nothing_is_given_up(play: Any) -> None:
    async def script(peer: Any) -> None:
        await peer.closed()

    async def scene(scene: Any) -> None:
        exchange, error = await scene.ask()
        assert error is not None and "no HTTP/2 answers within 0.05 s" in error.message and error.cause == REFUSED
        assert not exchange.sent_ns

    play(script, scene, server={"greets": False}, connect_s=0.05)


def test_a_port_where_nobody_listens_is_named(play: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]

    async def scene(scene: Any) -> None:
        await scene.transport.warm(3)
        exchange, error = await scene.ask(url=f"{url}/pkg.Service/Method")
        assert error is not None and error.cause == REFUSED and str(port) in error.message and not exchange.sent_ns

    url = f"grpc://127.0.0.1:{port}"
    play(echo, scene, urls=(url,))


def test_an_answer_longer_than_the_most_ends_its_stream(play: Any) -> None:
    async def scene(scene: Any) -> None:
        _, error = await scene.ask(bytes(2000))
        assert error is not None and error.type in ("AnswerTooLong", "BadMessage")
        _, error = await scene.ask(b"small")
        assert error is None and len(scene.peers) == 1

    play(echo, scene, most_bytes=1000)


def test_a_stream_open_behind_its_end_marker_is_over(play: Any) -> None:
    events = HeaderSet([(":status", "200"), ("content-type", "text/event-stream")])

    async def script(peer: Any) -> None:
        stream, _, _ = await peer.request()
        peer.http.head(stream, events)
        peer.http.send(stream, b"data: 1\n\ndata: [DO")
        peer.http.send(stream, b"NE]\n\n")
        peer.flush()
        while not peer.resets:
            await peer.event()

    async def scene(scene: Any) -> None:
        exchange, error = await scene.ask(kind="application/json")
        assert error is None and scene.ear.body(exchange).endswith(b"[DONE]\n\n")

    play(script, scene, scheme="http", end_s=0.05)


def test_answers_of_one_read_wear_its_stamp_and_their_own_streams(play: Any) -> None:
    """Frames of ten streams in one write, the last of which is cut."""

    async def script(peer: Any) -> None:
        streams = [(await peer.request())[0] for _ in range(10)]
        peer.write(*(head(stream) + data(stream, framed(b"m%d" % stream.number)) for stream in streams))
        rest = b"".join(map(tail, streams))
        peer.write(rest[:-3])
        await peer.writer.drain()
        await asyncio.sleep(0.01)
        peer.write(rest[-3:])
        await peer.closed()

    async def scene(scene: Any) -> None:
        exchanges = await scene.together(10)
        assert [scene.error(each) for each in exchanges] == [None] * 10
        assert [scene.messages(each) for each in exchanges] == [[b"m%d" % (2 * n + 1)] for n in range(10)]

    play(script, scene)


def test_a_long_stream_is_never_held_up_by_our_windows(play: Any) -> None:
    """More than HTTP/2's first window, and a server that would wait for ours."""

    async def script(peer: Any) -> None:
        stream, _, _ = await peer.request()
        peer.http.head(stream, OK)
        for _ in range(100):
            peer.http.send(stream, framed(bytes(10_000)))
        peer.http.finish(stream, HeaderSet([("grpc-status", "0")]))
        peer.flush()
        assert not peer.http.outbox.stalls
        await peer.closed()

    async def scene(scene: Any) -> None:
        exchange, error = await scene.ask()
        assert error is None and len(scene.messages(exchange)) == 100

    play(script, scene)
