"""Quirks of real servers, one row each, for the kernel's transport on both loops.

What every transport must do is in :class:`aiperf.testing.TransportContract`; here is what depends on sockets being ours.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Iterator
from time import monotonic_ns, sleep, time_ns

import pytest
import uvloop
from aiperf.sdk.plan import TlsPlan
from aiperf.sdk.transport import NO_STAMP, RECONNECTED, RESENT, REUSED, STREAMED, Exchange, TransportSettings
from aiperf_testing.server import (
    Certificate,
    Cut,
    Expect,
    Fin,
    HalfClose,
    Reset,
    Send,
    Sleep,
    Step,
    UntilClosed,
    answer,
    chunk,
    chunked_head,
)
from aiperf_testing.transports import Scene, Stage, play
from aiperf_transport_sockets import KernelTransport
from aiperf_transport_sockets.counts import SO_TIMESTAMPNS

BODY = b'{"a":1}'
ANSWER = answer(BODY)
OK: list[Step] = [Expect(), Send(ANSWER)]
BIG = bytes(range(256)) * 78_125  # 20 MB
HEADLESS = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n"  # neither length nor chunks

Play = Callable[..., None]


@pytest.fixture(params=[uvloop.new_event_loop, asyncio.new_event_loop], ids=["uvloop", "asyncio"])
def stage_play(request: pytest.FixtureRequest) -> Play:
    def run(scene: Scene, *scripts: list[Step], certificate: Certificate | None = None, **settings: object) -> None:
        play(KernelTransport, scene, *scripts, certificate=certificate, loop_factory=request.param, **settings)

    return run


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    try:
        return Certificate.made(tmp_path_factory.mktemp("tls"))
    except FileNotFoundError as error:
        pytest.skip(str(error))


class Row:
    """What a server does on its first connection, and what must come of the first two requests.

    first: the first answer's body, None if it must be an error.  second: whether the second request, answered rightly
    wherever it arrives, uses the connection again.
    """

    def __init__(self, *steps: Step, first: bytes | None = BODY, second: bool = False, method: str = "POST"):
        self.steps, self.first, self.second, self.method = list(steps), first, second, method


ROWS = {
    "100 before the answer": Row(Expect(), Send(b"HTTP/1.1 100 Continue\r\n\r\n" + ANSWER), *OK, second=True),
    "100, then the answer later": Row(
        Expect(), Send(b"HTTP/1.1 100 Continue\r\n\r\n"), Sleep(0.005), Send(ANSWER), *OK, second=True
    ),
    "102 and 103 with headers": Row(
        Expect(),
        Send(
            b"HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </x>; rel=preload\r\nContent-Length: 3\r\n\r\n"
        ),
        Send(ANSWER),
        *OK,
        second=True,
    ),
    "interim answer cut in pieces": Row(
        Expect(), Send(b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" + ANSWER, cut=9), *OK, second=True
    ),
    "HEAD with a length": Row(
        Expect(), Send(b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n"), *OK, first=b"", second=True, method="HEAD"
    ),
    "HEAD with chunks announced": Row(
        Expect(), Send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"), *OK, first=b"", second=True, method="HEAD"
    ),
    "HEAD that closes": Row(
        Expect(), Send(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 9\r\n\r\n"), Fin(), first=b"", method="HEAD"
    ),
    "204": Row(Expect(), Send(b"HTTP/1.1 204 No Content\r\n\r\n"), *OK, first=b"", second=True),
    "304 with a length": Row(
        Expect(), Send(b"HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n"), *OK, first=b"", second=True
    ),
    "body ended by FIN": Row(Expect(), Send(HEADLESS + BODY), Fin()),
    "body ended by FIN, later": Row(
        Expect(), Send(HEADLESS), Sleep(0.005), Send(BODY[:3]), Sleep(0.005), Send(BODY[3:]), Fin()
    ),
    "body ended by half a close": Row(Expect(), Send(HEADLESS + BODY), HalfClose(), UntilClosed()),
    "no body, ended by FIN": Row(Expect(), Send(HEADLESS), Fin(), first=b""),
    "body by end of connection, ended by RST": Row(Expect(), Send(HEADLESS + BODY[:3]), Sleep(0.005), Reset(), first=None),
    "HTTP/1.0": Row(Expect(), Send(b"HTTP/1.0 200 OK\r\nContent-Length: 7\r\n\r\n" + BODY), Fin()),
    "HTTP/1.0 keep-alive": Row(
        Expect(), Send(b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 7\r\n\r\n" + BODY), *OK, second=True
    ),
    "Connection: close, though it stays open": Row(Expect(), Send(answer(BODY, headers=["Connection: close"])), UntilClosed()),
    "a whole second answer nobody asked for": Row(Expect(), Send(ANSWER + answer(b"stray")), UntilClosed()),
    "half a second answer": Row(Expect(), Send(ANSWER + b"HTTP/1.1 200"), UntilClosed()),
    "garbage behind an answer": Row(Expect(), Send(ANSWER + b"\x00\x01garbage"), UntilClosed()),
    "bytes behind an answer, later": Row(Expect(), Send(ANSWER), Sleep(0.005), Send(b"stray"), UntilClosed()),
    "empty lines behind an answer": Row(Expect(), Send(ANSWER + b"\r\n"), *OK, second=True),
    "upgrade to a websocket": Row(
        Expect(),
        Send(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n"),
        UntilClosed(),
        first=None,
    ),
    "upgrade offered with an answer": Row(
        Expect(), Send(answer(BODY, headers=["Upgrade: h2c", "Connection: Upgrade"])), *OK, second=True
    ),
    "length longer than the body": Row(
        Expect(), Send(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n" + BODY), Fin(), first=None
    ),
    "half an answer and RST at once": Row(
        Expect(), Send(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf"), Reset(), first=None
    ),
    "half a stream and RST at once": Row(Expect(), Send(chunked_head() + chunk(b"data: 1\n\n")), Reset(), first=None),
    "chunks without an end": Row(Expect(), Send(chunked_head("application/json") + chunk(BODY)), Fin(), first=None),
    "chunks with extensions and trailers": Row(
        Expect(),
        Send(chunked_head("application/json") + b"7;x=y\r\n" + BODY + b"\r\n0\r\nX-T: 1\r\n\r\n", cut=11),
        *OK,
        second=True,
    ),
    "a chunk size that is none": Row(Expect(), Send(chunked_head("application/json") + b"zz\r\n"), UntilClosed(), first=None),
    "two lengths that differ": Row(
        Expect(), Send(b"HTTP/1.1 200 OK\r\nContent-Length: 7\r\nContent-Length: 8\r\n\r\n" + BODY), UntilClosed(), first=None
    ),
    "not HTTP": Row(Expect(), Send(b"SSH-2.0-OpenSSH_9.6\r\n"), UntilClosed(), first=None),
    "closed without a word": Row(Expect(), Fin(), first=None),
    "reset without a word": Row(Expect(), Reset(), first=None),
    "FIN right behind the answer": Row(Expect(), Send(ANSWER), Fin()),
    "RST right behind the answer": Row(Expect(), Send(ANSWER), Reset()),
    "byte by byte": Row(Expect(), Send(ANSWER, cut=1), *OK, second=True),
    "no reason phrase": Row(Expect(), Send(b"HTTP/1.1 200\r\nContent-Length: 7\r\n\r\n" + BODY), *OK, second=True),
    "headers folded in case and space": Row(
        Expect(), Send(b"HTTP/1.1 200 OK\r\ncOnTeNt-LeNgTh:    7   \r\n\r\n" + BODY), *OK, second=True
    ),
    "60 kB of headers": Row(
        Expect(), Send(answer(BODY, headers=[f"X-{i}: {'y' * 1000}" for i in range(60)])), *OK, second=True
    ),
}


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS.keys())
@pytest.mark.parametrize("secure", [False, True], ids=["plain", "TLS"])
def test_quirk(row: Row, secure: bool, stage_play: Play, request: pytest.FixtureRequest) -> None:
    async def scene(stage: Stage) -> None:
        first = stage.exchange(method=row.method)
        stage.transport.send(first)
        error = await stage.over(first)
        if row.first is None:
            assert error is not None and error.message and error.type
        else:
            assert error is None, error
            assert stage.ear.body(first) == row.first
            assert first.bytes_received == len(row.first)
        await asyncio.sleep(0.02)  # what the server does behind its answer happens while the connection is idle
        second = await stage.ask(b'{"second":1}')
        assert stage.ear.body(second) == BODY
        assert not second.flags & RESENT
        assert bool(second.flags & REUSED) == row.second
        assert len(stage.server.links) == (1 if row.second else 2)
        assert second.status == 200

    stage_play(scene, row.steps, OK, certificate=request.getfixturevalue("certificate") if secure else None)


@pytest.mark.parametrize("end", [Fin(), Reset()], ids=["FIN", "RST"])
def test_a_connection_that_closes_behind_its_answer_may_be_taken_at_once(end: Step, stage_play: Play) -> None:
    async def scene(stage: Stage) -> None:
        second = stage.exchange(b'{"second":1}')
        waiting = [second]
        stage.ear.on_done = lambda _: stage.transport.send(waiting.pop()) if waiting else None
        await stage.ask()
        assert await stage.over(second) is None
        assert stage.ear.body(second) == BODY
        assert len(stage.server.links) == 2

    stage_play(scene, [*OK, end], OK)


@pytest.mark.parametrize("end", ["fin", "reset"])
def test_a_pooled_connection_is_looked_at_before_use(end: str, stage_play: Play) -> None:
    async def scene(stage: Stage) -> None:
        await stage.ask()
        link = stage.server.links[0]
        link.fin() if end == "fin" else link.reset()
        second = stage.exchange()
        stage.transport.send(second)  # the loop has not run since: only a look at the socket can tell
        assert await stage.over(second) is None
        assert second.flags & (REUSED | RECONNECTED | RESENT) == RECONNECTED

    stage_play(scene, [*OK, Sleep(20)], OK)


@pytest.mark.parametrize("secure", [False, True], ids=["plain", "TLS"])
@pytest.mark.parametrize("body", [b"{}", BIG], ids=["short", "20 MB"])
def test_a_close_that_the_peek_missed_does_no_harm(
    body: bytes, secure: bool, stage_play: Play, request: pytest.FixtureRequest
) -> None:
    async def scene(stage: Stage) -> None:
        second = stage.exchange(body)
        link = stage.server.links

        def again(_: Exchange) -> None:
            stage.ear.on_done = lambda _: None
            link[0].fin()
            stage.transport.send(second)

        stage.ear.on_done = again
        await stage.ask()
        assert await stage.over(second) is None
        assert second.flags & (REUSED | RECONNECTED | RESENT) == RESENT
        assert [got.body for got in stage.server.requests] == [b"{}", body]

    script = [*OK, Sleep(20)]
    stage_play(scene, script, OK, certificate=request.getfixturevalue("certificate") if secure else None)


@pytest.mark.parametrize("secure", [False, True], ids=["plain", "TLS"])
def test_a_request_half_acknowledged_is_not_sent_again(
    secure: bool, stage_play: Play, request: pytest.FixtureRequest
) -> None:
    async def scene(stage: Stage) -> None:
        await stage.ask()
        second = stage.exchange(BIG)
        stage.transport.send(second)
        await asyncio.sleep(0.05)
        stage.server.links[0].half_close()
        error = await stage.over(second)
        assert error is not None and second.flags & (REUSED | RECONNECTED | RESENT) == REUSED
        assert len(stage.server.links) == 1

    stage_play(scene, [*OK, Sleep(20)], OK, certificate=request.getfixturevalue("certificate") if secure else None)


def test_a_close_notify_without_an_end_of_tcp_is_a_failure(stage_play: Play, certificate: Certificate) -> None:
    async def scene(stage: Stage) -> None:
        second = stage.exchange()

        def again(_: Exchange) -> None:
            stage.ear.on_done = lambda _: None
            link = stage.server.links[0]
            link.notify()
            stage.transport.send(second)

        stage.ear.on_done = again
        await stage.ask()
        error = await stage.over(second)
        assert error is not None and second.flags & (REUSED | RECONNECTED | RESENT) == REUSED

    stage_play(scene, [*OK, Sleep(20)], OK, certificate=certificate)


def test_a_pooled_connection_with_unasked_bytes_is_not_used(stage_play: Play) -> None:
    async def scene(stage: Stage) -> None:
        await stage.ask()
        stage.server.links[0].sock.send(answer(b"stray"))
        second = stage.exchange()
        stage.transport.send(second)
        assert await stage.over(second) is None
        assert stage.ear.body(second) == BODY

    stage_play(scene, [*OK, Sleep(20)], OK)


def test_several_dead_connections_cost_one_new_one(stage_play: Play) -> None:
    async def scene(stage: Stage) -> None:
        exchanges = [stage.exchange() for _ in range(3)]
        for exchange in exchanges:
            stage.transport.send(exchange)
        await stage.ear.until(lambda: len(stage.ear.ends) == 3)
        for link in stage.server.links:
            link.fin()
        last = await stage.ask()
        assert last.flags & (REUSED | RECONNECTED | RESENT) == RECONNECTED
        assert len(stage.server.links) == 4

    stage_play(scene, [*OK, Sleep(20)], [*OK, Sleep(20)], [*OK, Sleep(20)], OK)


@pytest.mark.parametrize("secure", [False, True], ids=["plain", "TLS"])
def test_20_megabytes_go_out_and_come_in(secure: bool, stage_play: Play, request: pytest.FixtureRequest) -> None:
    async def scene(stage: Stage) -> None:
        exchange = await stage.ask(BIG)
        assert stage.server.requests[0].body == BIG
        assert stage.ear.body(exchange) == BIG
        assert exchange.started_ns <= exchange.sent_ns < exchange.sent_end_ns <= exchange.ack_ns
        assert (await stage.ask(BIG)).flags & REUSED

    script = [Expect(), Send(answer(BIG)), *OK]
    stage_play(scene, script, certificate=request.getfixturevalue("certificate") if secure else None)


@pytest.mark.parametrize("secure", [False, True], ids=["plain", "TLS"])
def test_an_answer_while_the_body_still_goes_out_spoils_the_connection(
    secure: bool, stage_play: Play, request: pytest.FixtureRequest
) -> None:
    async def scene(stage: Stage) -> None:
        exchange = stage.exchange(BIG)
        stage.transport.send(exchange)
        assert await stage.over(exchange) is None
        assert exchange.status == 413
        second = await stage.ask()
        assert not second.flags & REUSED

    early = [Sleep(0.02), Send(answer(b"", status=413, reason="Too Large")), UntilClosed()]
    stage_play(scene, early, OK, certificate=request.getfixturevalue("certificate") if secure else None)


# TLS


@pytest.mark.parametrize("cut", [1, 7, 300])
def test_records_that_come_in_pieces_are_whole_answers(cut: int, stage_play: Play, certificate: Certificate) -> None:
    async def scene(stage: Stage) -> None:
        exchange = await stage.ask()
        assert stage.ear.body(exchange) == BODY
        assert (await stage.ask()).flags & REUSED

    stage_play(scene, [Expect(), Send(ANSWER, cut=cut), *OK], certificate=certificate)


def test_a_large_record_stream_in_odd_pieces_is_whole(stage_play: Play, certificate: Certificate) -> None:
    body = bytes(range(256)) * 400

    async def scene(stage: Stage) -> None:
        assert stage.ear.body(await stage.ask()) == body

    stage_play(scene, [Expect(), Send(answer(body), cut=9_973)], certificate=certificate)


def test_session_tickets_are_no_answer_and_no_stray_bytes(stage_play: Play, certificate: Certificate) -> None:
    async def scene(stage: Stage) -> None:
        for n in range(3):
            exchange = await stage.ask()
            assert stage.ear.body(exchange) == BODY
            assert bool(exchange.flags & REUSED) == (n > 0)
        assert exchange.tls_ns == 0

    stage_play(scene, [Expect(), Sleep(0.01), Send(ANSWER), *OK, *OK], certificate=certificate)


ENDS: dict[str, tuple[bytes, Step, bytes | None]] = {
    "by length, then close_notify": (ANSWER, Fin(), BODY),
    "by length, then no close_notify": (ANSWER, Cut(), BODY),
    "by end, with close_notify": (HEADLESS + BODY, Fin(), BODY),
    "by end, without close_notify": (HEADLESS + BODY, Cut(), None),
    "length not reached, without close_notify": (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", Cut(), None),
    "chunks not ended, with close_notify": (chunked_head() + chunk(b"data: x\n\n"), Fin(), None),
    "nothing, without close_notify": (b"", Cut(), None),
}


@pytest.mark.parametrize(("sent", "end", "body"), ENDS.values(), ids=ENDS.keys())
def test_only_a_proper_end_of_tls_delimits_an_answer(
    sent: bytes, end: Step, body: bytes | None, stage_play: Play, certificate: Certificate
) -> None:
    async def scene(stage: Stage) -> None:
        exchange = stage.exchange()
        stage.transport.send(exchange)
        error = await stage.over(exchange)
        assert (error is None) == (body is not None), error
        if body is not None:
            assert stage.ear.body(exchange) == body
        await asyncio.sleep(0.02)
        assert (await stage.ask()).flags & REUSED == 0  # on another connection, whenever the end was noticed

    stage_play(scene, [Expect(), Send(sent), Sleep(0.005), end], OK, certificate=certificate)


def test_a_tls_handshake_with_something_else_is_an_error(stage_play: Play, certificate: Certificate) -> None:
    async def scene(stage: Stage) -> None:
        plain = stage.server.url
        other = KernelTransport(
            TransportSettings(urls=(plain.replace("http:", "https:"),), tls=TlsPlan(ca_file=str(certificate.cert))),
            stage.ear,
            asyncio.get_running_loop(),
        )
        await other.open()
        exchange = stage.exchange(url=plain.replace("http:", "https:"))
        other.send(exchange)
        error = await stage.over(exchange)
        assert error is not None and "TLS" in error.message
        await other.close()

    stage_play(scene, [Send(b"220 mail ready\r\n"), UntilClosed()])


# Stamps


@pytest.fixture
def stamping() -> Iterator[None]:
    """Linux switches stamping on for the whole machine, a moment after the first socket asks: hold it on, and wait for it."""
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as ours:
        theirs, _ = server.accept()
        with theirs:
            ours.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
            for _ in range(2000):
                theirs.send(b"?")
                if ours.recvmsg(1, 64)[1]:
                    yield
                    return
                sleep(0.001)
    pytest.skip("this machine stamps nothing")


@pytest.mark.skipif(not SO_TIMESTAMPNS, reason="no receive stamps on this platform")
def test_every_read_of_a_stream_has_the_kernels_stamp(stage_play: Play, stamping: None) -> None:
    events = [Send(chunk(b"data: %d\n\n" % n)) for n in range(5)]
    steps = [step for event in events for step in (event, Sleep(0.003))]

    async def scene(stage: Stage) -> None:
        before = time_ns()
        exchange = await stage.ask()
        after = time_ns()
        kernel = [each[1] for each in stage.ear.chunks[exchange.request]]
        assert exchange.flags & (STREAMED | NO_STAMP) == STREAMED
        assert kernel == sorted(kernel)
        assert before <= kernel[0] and kernel[-1] <= after
        assert 1 <= len(kernel) <= 5, "a busy machine may read two events at once"
        assert stage.transport.statistics["stamps_missing"] == 0

    stage_play(scene, [Expect(), Send(chunked_head()), Sleep(0.003), *steps, Send(chunk())])


def test_without_stamps_the_read_stamp_serves(stage_play: Play) -> None:
    async def scene(stage: Stage) -> None:
        exchange = await stage.ask()
        assert [each[1] for each in stage.ear.chunks[exchange.request]] == [0]
        assert all(each[2] > 0 for each in stage.ear.chunks[exchange.request])

    stage_play(scene, OK, stamps=False)


def _merged(stage: Stage, exchange: Exchange) -> list[int]:
    return [each[3] for each in stage.ear.chunks[exchange.request]]


def test_events_that_were_sent_together_hide_no_segment(stage_play: Play) -> None:
    async def scene(stage: Stage) -> None:
        exchange = await stage.ask()
        assert set(_merged(stage, exchange)) == {0}
        assert stage.transport.statistics["coalesced_reads"] == 0

    pair = chunk(b"data: 1\n\ndata: 2\n\n")
    stage_play(scene, [Expect(), Send(chunked_head()), Sleep(0.005), Send(pair), Sleep(0.005), Send(pair + chunk())])


@pytest.mark.parametrize("before", [[chunked_head(), chunk(b"data: 0\n\n")], [chunked_head() + chunk(b"data: 0\n\n")]])
def test_a_head_in_a_segment_of_its_own_hides_no_event(stage_play: Play, before: list[bytes]) -> None:
    async def scene(stage: Stage) -> None:
        for number in range(2):  # the second answer comes behind the end of the first, which has a segment of its own
            exchange = stage.exchange()
            stage.transport.send(exchange)
            while len(stage.server.requests) <= number:
                await asyncio.sleep(0.001)
            sock = stage.server.links[0].sock
            for part in before:  # before the loop runs again
                sock.send(part)
            await stage.ear.until(lambda asked=exchange.request: asked in stage.ear.chunks)  # type: ignore[misc]
            sock.send(chunk(b"data: 1\n\ndata: 2\n\n"))
            await stage.ear.until(lambda asked=exchange.request: len(stage.ear.chunks[asked]) == 2)  # type: ignore[misc]
            sock.send(chunk(b"data: 3\n\n"))
            sock.send(chunk())
            assert await stage.over(exchange) is None
            assert set(_merged(stage, exchange)) == {0}
            await asyncio.sleep(0.01)  # the connection rests behind the first stream
        assert stage.transport.statistics["coalesced_reads"] == 0

    stage_play(scene, [Expect(), Expect(), Sleep(20)])


@pytest.mark.parametrize(("before", "mark"), [(b"data: ", None), (b"", b"\n"), (b"", b"")])
def test_segments_that_were_read_together_are_counted(stage_play: Play, before: bytes, mark: bytes | None) -> None:
    after, kind = (b"\n\n", "text/event-stream") if mark is None else (b"\n", "application/x-ndjson")

    async def scene(stage: Stage) -> None:
        exchange = stage.exchange()
        stage.transport.send(exchange)
        while not stage.server.requests:
            await asyncio.sleep(0.001)
        sock = stage.server.links[0].sock
        sock.send(chunked_head(kind) + chunk(before + b"0" + after))
        await stage.ear.until(lambda: exchange.request in stage.ear.chunks)
        for n in (1, 2, 3):  # three segments before the loop runs again
            sock.send(chunk(b"%b%d%b" % (before, n, after)))
        sock.send(chunk())
        assert await stage.over(exchange) is None
        assert sum(_merged(stage, exchange)) == 3
        assert stage.transport.statistics["coalesced_reads"] == 1

    stage_play(scene, [Expect(), Sleep(20)], event_mark=mark)


def test_what_comes_right_behind_a_read_is_later_than_it_and_counted(stage_play: Play) -> None:
    """As on a busy machine, where another program has the core between a read and what follows it."""

    async def scene(stage: Stage) -> None:
        exchange = stage.exchange()
        stage.transport.send(exchange)
        while not stage.server.requests:
            await asyncio.sleep(0.001)
        sock, sent_ns = stage.server.links[0].sock, list[int]()
        read = exchange.connection._recv  # type: ignore[attr-defined]

        def recv(size: int, room: int) -> object:
            if sent_ns:
                sock.send(chunk(b"data: 2\n\n") + chunk())
                return read(size, room)
            head = read(size, room)
            sent_ns.append(monotonic_ns())
            sock.send(chunk(b"data: 1\n\n"))
            return head

        exchange.connection._recv = recv  # type: ignore[attr-defined]
        sock.send(chunked_head())
        assert await stage.over(exchange) is None
        assert exchange.ack_ns <= sent_ns[0]
        assert _merged(stage, exchange) == [1]

    stage_play(scene, [Expect(), Sleep(20)])


def test_a_name_with_several_addresses_is_tried_until_one_answers(stage_play: Play) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        dead = taken.getsockname()

    async def scene(stage: Stage) -> None:
        transport = stage.transport
        assert isinstance(transport, KernelTransport)
        origin = next(iter(transport._origins))
        origin.addresses.insert(0, (socket.AF_INET, dead))
        exchange = await stage.ask()
        assert stage.ear.body(exchange) == BODY

    stage_play(scene, OK)
