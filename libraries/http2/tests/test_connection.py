"""Both sides of a connection, against each other and against ``h2``; bytes cut anywhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import h2.config
import h2.connection
import h2.events
import pytest
from aiperf_http2 import (
    ConnectionBroken,
    DataReceived,
    Event,
    GoingAway,
    HeaderSet,
    HeadersReceived,
    Http2Connection,
    Http2Stream,
    SettingsReceived,
    StreamReset,
    error_name,
    literal,
)
from aiperf_http2 import frames as f

REQUEST = HeaderSet([(":method", "POST"), (":scheme", "http"), (":path", "/p"), (":authority", "a"), ("te", "trailers")])
ANSWER = HeaderSet([(":status", "200"), ("content-type", "text/plain")])
HELLO = f.settings_frame({})


def opened(settings: dict[int, int] | None = None) -> tuple[Http2Connection, Http2Stream]:
    """A client with one request on its way, and the server's settings."""
    connection = Http2Connection(client=True)
    stream = connection.open(REQUEST, end=True)
    connection.take()
    connection.receive(f.settings_frame(settings or {}))
    connection.take()
    return connection, stream


def headers(number: int, flags: int = f.END_HEADERS, block: bytes = b"\x88") -> bytes:
    return f.frame(f.HEADERS, flags, number, block)


def data(number: int, payload: bytes, flags: int = 0) -> bytes:
    return f.frame(f.DATA, flags, number, payload)


def plain(events: Sequence[Event]) -> list[Any]:
    """Events without their streams."""
    out: list[Any] = []
    for event in events:
        if isinstance(event, DataReceived):
            out.append((event.stream.number, event.data, event.end))
        elif isinstance(event, HeadersReceived):
            out.append((event.stream.number, dict(event.fields), event.end))
        elif isinstance(event, StreamReset):
            out.append((event.stream.number, error_name(event.code)))
        elif isinstance(event, GoingAway):
            out.append((tuple(each.number for each in event.unread), error_name(event.code)))
        elif isinstance(event, ConnectionBroken):
            out.append((error_name(event.code), event.message))
    return out


def joined(events: list[Any]) -> dict[int, bytes]:
    bodies: dict[int, bytes] = {}
    for event in events:
        if isinstance(event, DataReceived):
            bodies[event.stream.number] = bodies.get(event.stream.number, b"") + event.data
    return bodies


def test_requests_and_answers_cross_between_our_two_sides() -> None:
    client, server = Http2Connection(client=True), Http2Connection(client=False)
    first, second = (client.open(REQUEST, literal("x-id", str(i)), end=False) for i in range(2))
    client.send(first, b"a" * 100_000, end=True)
    client.send(second, b"b" * 300_000, end=True)
    got: list[Event] = []
    while (sent := client.take()) or (back := server.take()):
        got += server.receive(sent)
        client.receive(server.take() if sent else back)
    assert {n: len(body) for n, body in joined(got).items()} == {1: 100_000, 3: 300_000}
    heads = [event for event in got if isinstance(event, HeadersReceived)]
    assert [dict(each.fields)["x-id"] for each in heads] == ["0", "1"]
    server.head(heads[0].stream, ANSWER)
    server.send(heads[0].stream, b"hello")
    server.finish(heads[0].stream, HeaderSet([("grpc-status", "0")]))
    events = client.receive(server.take())
    assert plain(events) == [
        (1, {":status": "200", "content-type": "text/plain"}, False), (1, b"hello", False), (1, {"grpc-status": "0"}, True),
    ]  # fmt: skip
    assert isinstance(events[-1], HeadersReceived) and events[-1].trailers
    assert list(client.streams) == [3] and list(server.streams) == [3]


def test_h2_as_server_reads_our_requests_and_we_its_answers() -> None:
    client = Http2Connection(client=True)
    server = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False))
    server.initiate_connection()
    for number in range(1, 8, 2):
        stream = client.open(REQUEST, literal("x-request-id", f"id-{number}" * 40), end=False)
        client.send(stream, b"x" * 200_000, end=True)
    got: list[Any] = []
    answers: list[Event] = []
    while sent := client.take():
        for event in server.receive_data(sent):
            got.append(event)
            if isinstance(event, h2.events.DataReceived):
                server.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            if isinstance(event, h2.events.StreamEnded):
                server.send_headers(event.stream_id, [(":status", "200"), ("content-type", "a/b")])
                server.send_data(event.stream_id, b"answer", pad_length=7)
                server.send_headers(event.stream_id, [("x-end", "1")], end_stream=True)
        answers += client.receive(server.data_to_send())
    requests = [event for event in got if isinstance(event, h2.events.RequestReceived)]
    ids = [dict(each.headers)[b"x-request-id"] for each in requests]
    assert ids == [f"id-{n}".encode() * 40 for n in range(1, 8, 2)]
    assert joined(answers) == dict.fromkeys(range(1, 8, 2), b"answer")
    assert client.streams == {} and client.outbox.stalls > 0


def test_h2_as_client_reads_our_answers() -> None:
    server, client = Http2Connection(client=False), h2.connection.H2Connection()
    client.initiate_connection()
    client.send_headers(1, [(":method", "GET"), (":scheme", "http"), (":authority", "a"), (":path", "/")], end_stream=True)
    (head,) = [each for each in server.receive(client.data_to_send()) if isinstance(each, HeadersReceived)]
    server.head(head.stream, ANSWER)
    server.send(head.stream, b"z" * 50_000)
    server.finish(head.stream, HeaderSet([("x-end", "1")]))
    kinds = [type(event).__name__ for event in client.receive_data(server.take())]
    assert kinds[-2:] == ["TrailersReceived", "StreamEnded"] and server.streams == {}


ANSWERS = b"".join(
    (
        HELLO, headers(1), data(1, b"one"), f.frame(f.PING, 0, 0, b"12345678"), headers(3, 0, b""),
        f.frame(f.CONTINUATION, 0, 3, b"\x88"), f.frame(f.CONTINUATION, f.END_HEADERS, 3, literal("x-a", "b")),
        f.frame(f.DATA, f.PADDED, 3, b"\x04padded\0\0\0\0"), f.settings_frame({f.INITIAL_WINDOW_SIZE: 7}),
        f.frame(200, 0, 0, b"unknown"), f.frame(f.PRIORITY, 0, 3, bytes(5)), f.frame(f.RST_STREAM, 0, 5, b"\0\0\0\x08"),
        data(1, b"two", f.END_STREAM), headers(3, f.END_HEADERS | f.END_STREAM, literal("x-end", "1")),
        f.frame(f.GOAWAY, 0, 0, b"\0\0\0\x05\0\0\0\0bye"),
    )
)  # fmt: skip
READ = [
    (1, {":status": "200"}, False), (1, b"one", False), (3, {":status": "200", "x-a": "b"}, False), (3, b"padded", False),
    (5, "CANCEL"), (1, b"two", True), (3, {"x-end": "1"}, True), ((7,), "NO_ERROR"),
]  # fmt: skip


@pytest.mark.parametrize("step", [1, 2, 3, 5, 7, 9, 11, 64, 10_000])
def test_answers_are_read_wherever_their_bytes_are_cut(step: int) -> None:
    connection = Http2Connection(client=True)
    for _ in range(4):
        connection.open(REQUEST, end=False)
    connection.take()
    events: list[Event] = []
    for at in range(0, len(ANSWERS), step):
        events += connection.receive(ANSWERS[at : at + step])
    assert plain(events) == READ
    assert f.frame(f.PING, f.ACK, 0, b"12345678") in connection.take()
    assert connection.going_away


def test_a_first_answer_below_200_is_no_head() -> None:
    connection, _ = opened()
    early = headers(1, block=literal(":status", "103"))
    events = connection.receive(early + headers(1) + data(1, b"x", f.END_STREAM))
    assert [event.trailers for event in events if isinstance(event, HeadersReceived)] == [False, False]
    assert connection.streams == {}


def test_trailers_may_be_empty() -> None:
    connection, _ = opened()
    events = connection.receive(headers(1) + data(1, b"x") + headers(1, f.END_HEADERS | f.END_STREAM, b""))
    assert plain(events)[-1] == (1, {}, True) and connection.streams == {}


BROKEN = {
    "data on no stream": (data(0, b"x"), "PROTOCOL_ERROR"),
    "data on a stream that we never opened": (data(9, b"x"), "PROTOCOL_ERROR"),
    "data on a stream of the server": (data(2, b"x"), "PROTOCOL_ERROR"),
    "padding beyond the frame": (f.frame(f.DATA, f.PADDED, 1, b"\x05abc"), "PROTOCOL_ERROR"),
    "padding without its length": (f.frame(f.DATA, f.PADDED, 1, b""), "PROTOCOL_ERROR"),
    "a long frame": (f.HEAD.pack(64, 1, f.DATA, 0, 1), "FRAME_SIZE_ERROR"),
    "a head without end": (headers(1, 0) + data(1, b"x"), "PROTOCOL_ERROR"),
    "a continuation of another head": (headers(1, 0) + f.frame(f.CONTINUATION, 4, 3), "PROTOCOL_ERROR"),
    "a continuation of no head": (f.frame(f.CONTINUATION, 4, 1), "PROTOCOL_ERROR"),
    "continuations without end": (headers(1, 0) + f.frame(f.CONTINUATION, 0, 1) * 2000, "ENHANCE_YOUR_CALM"),
    "a long head": (headers(1, 0) + f.frame(f.CONTINUATION, 0, 1, bytes(16_000)) * 5, "ENHANCE_YOUR_CALM"),
    "a head that grows": (headers(1, block=b"\x40\x01a\x7f\xa1\x1e" + b"x" * 4000 + b"\xbe" * 40), "ENHANCE_YOUR_CALM"),
    "a head that can't be read": (headers(1, block=b"\xff\xff\xff"), "COMPRESSION_ERROR"),
    "an index of nothing": (headers(1, block=b"\xc0"), "COMPRESSION_ERROR"),
    "a promise": (f.frame(f.PUSH_PROMISE, 4, 1, bytes(4)), "PROTOCOL_ERROR"),
    "push": (f.settings_frame({f.ENABLE_PUSH: 1}), "PROTOCOL_ERROR"),
    "a large window": (f.settings_frame({f.INITIAL_WINDOW_SIZE: 1 << 31}), "FLOW_CONTROL_ERROR"),
    "a small frame size": (f.settings_frame({f.MAX_FRAME_SIZE: 100}), "PROTOCOL_ERROR"),
    "settings of a stream": (f.frame(f.SETTINGS, 0, 1), "PROTOCOL_ERROR"),
    "settings that are cut": (f.frame(f.SETTINGS, 0, 0, b"abc"), "FRAME_SIZE_ERROR"),
    "a ping that is cut": (f.frame(f.PING, 0, 0, b"abc"), "FRAME_SIZE_ERROR"),
    "no window": (f.frame(f.WINDOW_UPDATE, 0, 0, bytes(4)), "PROTOCOL_ERROR"),
    "a window beyond all bounds": (f.window_update(0, f.MOST_WINDOW), "FLOW_CONTROL_ERROR"),
    "a reset that is cut": (f.frame(f.RST_STREAM, 0, 1, b"a"), "FRAME_SIZE_ERROR"),
    "a reset of a stream that we never opened": (f.frame(f.RST_STREAM, 0, 7, bytes(4)), "PROTOCOL_ERROR"),
    "an end that is cut": (f.frame(f.GOAWAY, 0, 0, b"a"), "FRAME_SIZE_ERROR"),
    "frames with nothing": (headers(1) + data(1, b"") * 2000, "ENHANCE_YOUR_CALM"),
    "pings without end": (f.frame(f.PING, 0, 0, bytes(8)) * 70_000, "ENHANCE_YOUR_CALM"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_connection_is_named_and_the_peer_told(name: str) -> None:
    connection, _ = opened()
    sent, code = BROKEN[name]
    events = plain(connection.receive(sent))
    assert events[-1][0] == code, events
    assert connection.receive(HELLO) == []
    told = connection.take()
    assert told[-len(events[-1][1]) - 4 :] == f.ERROR_NAMES.index(code).to_bytes(4, "big") + events[-1][1].encode()


BAD_STREAMS = {
    "an answer without its head": data(1, b"x"),
    "a name in capitals": headers(1, block=b"\x88" + literal("X-A", "b")),
    "an answer without status": headers(1, block=literal("x", "y")),
    "a status that is no number": headers(1, block=literal(":status", "2x0")),
    "a pseudo field in the middle": headers(1, block=b"\x88" + literal("x", "y") + literal(":path", "/")),
    "an interim answer that ends": headers(1, f.END_HEADERS | f.END_STREAM, literal(":status", "100")),
    "trailers that don't end": headers(1) + headers(1, block=literal("x", "y")),
    "data behind the end": headers(1) + data(1, b"x", f.END_STREAM) + data(1, b"y"),
    "no window": f.frame(f.WINDOW_UPDATE, 0, 1, bytes(4)),
    "a window beyond all bounds": f.window_update(1, f.MOST_WINDOW),
}


@pytest.mark.parametrize("name", BAD_STREAMS)
def test_a_stream_that_breaks_leaves_its_neighbours(name: str) -> None:
    connection = Http2Connection(client=True)
    stream, neighbour = (connection.open(REQUEST, end=False) for _ in range(2))
    events = connection.receive(HELLO + BAD_STREAMS[name] + headers(3) + data(3, b"fine", f.END_STREAM))
    broken = [event for event in events if isinstance(event, StreamReset)]
    assert [event.stream for event in broken] == [stream] and all(event.message for event in broken)
    assert plain(events)[-1] == (3, b"fine", True) and list(connection.streams) == [3]
    assert neighbour.open_here and not stream.open_here
    assert f.frame(f.RST_STREAM, 0, 1, broken[0].code.to_bytes(4, "big")) in connection.take()


@pytest.mark.parametrize(
    ("first", "words"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "HTTP/1.1, not HTTP/2"), (b"\x15\x03\x01\x00\x02\x02\x46\x00\x00", "speaks TLS"),
        (f.frame(f.PING, 0, 0, bytes(8)), "does not begin with its settings"), (b"SSH-2.0-OpenSSH_9", "speaks no HTTP/2"),
    ],
)  # fmt: skip
def test_a_peer_that_speaks_otherwise_is_told_apart(first: bytes, words: str) -> None:
    connection = Http2Connection(client=True)
    (event,) = connection.receive(first)
    assert isinstance(event, ConnectionBroken) and words in event.message


def test_late_frames_of_a_stream_we_ended_change_nothing() -> None:
    connection, stream = opened()
    connection.reset(stream, f.CANCEL)
    late = headers(1, block=b"\x88\x40\x03x-a\x01b") + data(1, b"late") + f.frame(f.RST_STREAM, 0, 1, bytes(4))
    assert connection.receive(late + f.window_update(1, 5)) == []
    connection.open(REQUEST, end=True)
    events = connection.receive(headers(3, f.END_HEADERS | f.END_STREAM, b"\x88\xbe"))
    assert plain(events) == [(3, {":status": "200", "x-a": "b"}, True)]  # the late head's field is in the table


def test_bodies_wait_for_the_windows_of_stream_and_connection() -> None:
    connection = Http2Connection(client=True)
    connection.take()
    connection.receive(f.settings_frame({f.INITIAL_WINDOW_SIZE: 10}))
    one, other = (connection.open(REQUEST, end=False) for _ in range(2))
    connection.take()
    connection.send(one, b"o" * 25, end=True)
    connection.send(other, b"p" * 5, end=True)
    sent = connection.take()
    assert (sent.count(b"o"), sent.count(b"p")) == (10, 5)
    assert connection.outbox.stalled and connection.outbox.stalls == 1 and connection.take() == b""
    connection.receive(f.settings_frame({f.INITIAL_WINDOW_SIZE: 12}))
    connection.receive(f.window_update(1, 100))
    assert connection.take().count(b"o") == 15 and not connection.outbox.stalled and one.number == 1
    assert connection.outbox.ended == [other, one]
    third = connection.open(REQUEST, end=False)
    connection.receive(f.window_update(third.number, 1 << 20))
    connection.send(third, b"q" * 70_000, end=True)
    body = b"".join(iter(connection.take, b""))
    assert body.count(b"q") == 65_535 - 30 and connection.outbox.stalls == 2 and connection.outbox.stalled
    connection.send(connection.open(REQUEST, end=False), b"", end=True)  # an end needs no window
    assert connection.take()[-9:-4] == b"\0\0\0\0\x01" and connection.outbox.stalled
    connection.receive(f.window_update(0, 10_000))
    assert connection.take().count(b"q") == 4_495 and not connection.outbox.stalled


def test_our_windows_open_again_before_they_close() -> None:
    connection = Http2Connection(client=True, window=100_000)
    connection.open(REQUEST, end=False)
    connection.take()
    connection.receive(HELLO + headers(1))
    connection.take()
    connection.receive(data(1, bytes(10_000)) * 4)
    assert f.WINDOW_UPDATE not in kinds(connection.take())
    connection.receive(data(1, bytes(10_000)) * 30)
    assert kinds(connection.take()).count(f.WINDOW_UPDATE) >= 6


def kinds(sent: bytes) -> list[int]:
    found, at = [], 0
    while at < len(sent):
        high, low, kind, _, _ = f.HEAD.unpack_from(sent, at)
        found.append(kind)
        at += 9 + (high << 8 | low)
    return found


@pytest.mark.parametrize("size", [0, 50, 4096, 1 << 20])
def test_heads_are_read_under_any_table_of_the_peer(size: int) -> None:
    client, server = Http2Connection(client=True), h2.connection.H2Connection(h2.config.H2Configuration(client_side=False))
    server.initiate_connection()
    client.receive(server.data_to_send())
    sets = [HeaderSet([*REQUEST.fields, (f"x-{i}", "v" * i * 90)]) for i in range(12)]
    got: list[Any] = []
    for number in range(60):
        if number == 20:
            server.update_settings({1: size})
            client.receive(server.data_to_send())
        client.open(sets[number * number % 12], literal("x-id", str(number)), end=True)
        got += server.receive_data(client.take())
        client.receive(server.data_to_send())
    requests = [dict(event.headers) for event in got if isinstance(event, h2.events.RequestReceived)]
    assert [request[b"x-id"] for request in requests] == [str(n).encode() for n in range(60)]
    for number, request in enumerate(requests):
        at = number * number % 12
        assert request[f"x-{at}".encode()] == b"v" * at * 90


def test_a_server_refuses_what_it_can_not_serve() -> None:
    server = Http2Connection(client=False, max_streams=2)
    client = Http2Connection(client=True)
    streams = [client.open(REQUEST, end=True) for _ in range(3)]
    server.receive(client.take())
    events = client.receive(server.take())
    assert client.outbox.most_streams == 2 and any(isinstance(each, SettingsReceived) and each.first for each in events)
    assert [(each.stream, error_name(each.code)) for each in events if isinstance(each, StreamReset)] == [
        (streams[2], "REFUSED_STREAM")
    ]
    assert plain(Http2Connection(client=False).receive(b"GET / HTTP/1.1\r\n\r\n" + bytes(9)))[0][0] == "PROTOCOL_ERROR"
