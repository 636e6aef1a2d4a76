"""What every transport must do, whatever it is made of."""

from __future__ import annotations

import asyncio
import gzip
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path
from time import monotonic_ns
from typing import Any, ClassVar

import msgspec
import pytest

from aiperf.engine.contract import Exchange, Shape, Transport, TransportSettings
from aiperf.journal import RECONNECTED, REUSED, STREAMED
from aiperf.model import ErrorDetails
from aiperf.plan import TlsPlan
from aiperf.testing.manifests import check_row
from aiperf.testing.server import (
    Certificate,
    Expect,
    Fin,
    Reset,
    Scripted,
    Send,
    Sleep,
    Step,
    UntilClosed,
    answer,
    chunk,
    chunked_head,
)

_PATIENCE_S = 5.0


class Ear:
    """A sink that remembers.  *on_done* is called for each exchange that ends, from inside ``done``."""

    def __init__(self) -> None:
        self.chunks: dict[int, list[tuple[bytes, int, int, int]]] = {}
        self.heads: dict[int, tuple[int, str, dict[str, str]]] = {}
        self.ends: dict[int, list[ErrorDetails | None]] = {}
        self.whole: list[int] = []
        self.on_done: Callable[[Exchange], None] = lambda exchange: None
        self._changed = asyncio.Event()

    def chunk(self, exchange: Exchange, body: bytes, kernel_ns: int, read_ns: int, hidden: int) -> None:
        assert exchange.request not in self.ends, "a chunk came after done"
        self.chunks.setdefault(exchange.request, []).append((bytes(body), kernel_ns, read_ns, hidden))
        self._changed.set()

    def head(self, exchange: Exchange, status: int, reason: str, headers: list[tuple[str, str]]) -> None:
        assert exchange.request not in self.heads, "two heads came for one exchange"
        parts = [reason, *(part for header in headers for part in header)]
        assert {type(part) for part in parts} == {str}, "a head goes to the journal, which knows plain strings alone"
        self.heads[exchange.request] = (status, reason, {name.lower(): value for name, value in headers})

    def written(self, exchange: Exchange) -> None:
        assert exchange.armed, "nobody asked when this one was written"
        assert exchange.sent_end_ns > 0
        self.whole.append(exchange.request)
        self._changed.set()

    def done(self, exchange: Exchange, error: ErrorDetails | None) -> None:
        self.ends.setdefault(exchange.request, []).append(error)
        self._changed.set()
        self.on_done(exchange)

    def body(self, exchange: Exchange) -> bytes:
        return b"".join(each[0] for each in self.chunks.get(exchange.request, ()))

    async def until(self, true: Callable[[], bool]) -> None:
        """Wait until *true* holds; it is asked whenever the sink hears something."""
        while not true():
            self._changed.clear()
            await asyncio.wait_for(self._changed.wait(), _PATIENCE_S)


class Stage:
    """A transport, the scripted server it talks to, and the sink that hears it."""

    def __init__(self, transport: Transport, server: Scripted, ear: Ear) -> None:
        self.transport, self.server, self.ear = transport, server, ear
        self._made = 0
        self._shapes: dict[tuple[str, str], Shape] = {}

    def exchange(self, body: bytes = b"{}", *, method: str = "POST", url: str | None = None) -> Exchange:
        """A new request; those of one URL and method share a shape, as in a run."""
        key = (url or f"{self.server.url}/v1/x?a=1&b=%20", method)
        if key not in self._shapes:
            headers = {"User-Agent": "contract/1", "Content-Type": "application/json", "X-Own": "a: b"}
            self._shapes[key] = Shape(key[0], headers, ("X-Correlation-ID", "X-Session-Affinity"), method)
        number = self._made
        self._made = number + 1
        return Exchange(number, self._shapes[key], body, f"request-{number}", f"session-{number}", monotonic_ns())

    async def over(self, exchange: Exchange) -> ErrorDetails | None:
        """How the exchange ended."""
        await self.ear.until(lambda: exchange.request in self.ear.ends)
        return self.ear.ends[exchange.request][0]

    async def ask(self, body: bytes = b"{}", *, method: str = "POST", url: str | None = None) -> Exchange:
        """Send a request and wait for its whole answer; AssertionError if it fails."""
        exchange = self.exchange(body, method=method, url=url)
        self.transport.send(exchange)
        error = await self.over(exchange)
        assert error is None, error
        return exchange

    async def fail(self, body: bytes = b"{}", *, url: str | None = None) -> tuple[Exchange, ErrorDetails]:
        """Send a request that must end in an error."""
        exchange = self.exchange(body, url=url)
        self.transport.send(exchange)
        error = await self.over(exchange)
        assert error is not None, f"status {exchange.status} and no error"
        assert error.type, "an error says its type"
        assert error.message, "an error says what happened"
        return exchange, error


Scene = Callable[[Stage], Awaitable[None]]


def play(
    make: type[Transport],
    scene: Scene,
    *scripts: list[Step],
    certificate: Certificate | None = None,
    loop_factory: Callable[[], asyncio.AbstractEventLoop] | None = None,
    **settings: Any,
) -> None:
    """Play *scene* with a transport made by *make* against a server of *scripts*, in a loop of its own.

    Fails too if an exchange ended twice or an error went unnoticed in the loop.
    """
    faults: list[str] = []

    async def whole() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, about: faults.append(f"{about['message']}: {about.get('exception')!r}"))
        async with Scripted(*scripts, certificate=certificate) as server:
            ear = Ear()
            given = TransportSettings(urls=(server.url,), tls=TlsPlan(ca_file=str(certificate.cert) if certificate else None))
            transport = make(msgspec.structs.replace(given, **settings), ear, loop)
            await transport.open()
            try:
                await asyncio.wait_for(scene(Stage(transport, server, ear)), _PATIENCE_S)
            finally:
                await transport.close()
            twice = {number: ends for number, ends in ear.ends.items() if len(ends) > 1}
            assert not twice, f"done was called more than once: {twice}"

    with asyncio.Runner(loop_factory=loop_factory) as runner:
        runner.run(whole())
    assert not faults, faults


OK: list[Step] = [Expect(), Send(answer(b'{"a":1}'))]
EVENTS = [b'data: {"n":%d}\n\n' % n for n in range(5)] + [b"data: [DONE]\n\n"]


class TransportContract:
    """Subclass with the transport's class, made as the kernel makes it::

        class TestMineKeepsTheContract(TransportContract):
            transport = Mine
    """

    transport: ClassVar[type[Transport]]
    loop_factory: ClassVar[Callable[[], asyncio.AbstractEventLoop] | None] = None

    def play(self, scene: Scene, *scripts: list[Step], certificate: Certificate | None = None, **settings: Any) -> None:
        own = type(self)
        play(own.transport, scene, *scripts, certificate=certificate, loop_factory=own.loop_factory, **settings)

    @pytest.fixture
    def certificate(self, tmp_path: Path) -> Certificate:
        try:
            return Certificate.made(tmp_path)
        except FileNotFoundError as error:
            pytest.skip(str(error))

    def test_its_manifest_says_what_it_is(self) -> None:
        check_row("transports", self.transport)

    def test_a_whole_answer_comes_back_with_its_times_in_order(self) -> None:
        async def scene(stage: Stage) -> None:
            exchange = await stage.ask(b'{"q":1}')
            assert stage.ear.body(exchange) == b'{"a":1}'
            assert (exchange.status, exchange.bytes_received) == (200, 7)
            assert not exchange.flags & (REUSED | RECONNECTED | STREAMED)
            read_ns = [each[2] for each in stage.ear.chunks[exchange.request]]
            times = [exchange.started_ns, exchange.connected_ns, exchange.sent_ns, exchange.sent_end_ns]
            assert times == sorted(times)
            assert [exchange.sent_ns, exchange.ack_ns, *read_ns] == sorted([exchange.sent_ns, exchange.ack_ns, *read_ns])
            assert exchange.connect_ns > 0
            assert stage.transport.statistics["opened"] == 1
            assert stage.transport.statistics["opened"] >= 1
            assert exchange.request not in stage.ear.heads

        self.play(scene, OK)

    def test_the_request_is_what_was_asked_for(self) -> None:
        async def scene(stage: Stage) -> None:
            await stage.ask(b'{"q":1}')
            got = stage.server.requests[0]
            assert (got.method, got.target, got.body) == ("POST", "/v1/x?a=1&b=%20", b'{"q":1}')
            expected = {
                "Host": f"127.0.0.1:{stage.server.port}",
                "Content-Length": "7",
                "Content-Type": "application/json",
                "User-Agent": "contract/1",
                "X-Own": "a: b",
                "X-Request-ID": "request-0",
                "X-Correlation-ID": "session-0",
                "X-Session-Affinity": "session-0",
                "Accept-Encoding": "identity",
            }
            assert {name: got.header(name) for name in expected} == expected
            known = {name.lower() for name in expected} | {"connection", "accept"}
            assert {name.lower() for name, _ in got.headers} <= known

        self.play(scene, OK)

    def test_an_empty_body_has_a_length_too(self) -> None:
        async def scene(stage: Stage) -> None:
            await stage.ask(b"")
            assert stage.server.requests[0].header("Content-Length") == "0"

        self.play(scene, OK)

    def test_a_streamed_answer_comes_in_pieces_without_its_framing(self) -> None:
        pieces: list[Step] = [step for event in EVENTS for step in (Send(chunk(event)), Sleep(0.002))]

        async def scene(stage: Stage) -> None:
            exchange = await stage.ask()
            assert stage.ear.body(exchange) == b"".join(EVENTS)
            assert exchange.flags & STREAMED
            assert len(stage.ear.chunks[exchange.request]) > 1
            read_ns = [each[2] for each in stage.ear.chunks[exchange.request]]
            assert read_ns == sorted(read_ns)
            assert exchange.bytes_received == len(b"".join(EVENTS))

        self.play(scene, [Expect(), Send(chunked_head()), *pieces, Send(chunk())])

    def test_a_chunked_answer_cut_anywhere_is_the_same(self) -> None:
        whole = chunked_head("application/json; charset=utf-8") + chunk(b'{"a":') + chunk(b"1}") + chunk()

        async def scene(stage: Stage) -> None:
            assert stage.ear.body(await stage.ask()) == b'{"a":1}'

        self.play(scene, [Expect(), Send(whole, cut=7)])

    def test_connections_are_used_again(self) -> None:
        async def scene(stage: Stage) -> None:
            exchanges = [await stage.ask() for _ in range(3)]
            assert [bool(each.flags & REUSED) for each in exchanges] == [False, True, True]
            assert [each.connect_ns > 0 for each in exchanges] == [True, False, False]
            assert all(each.connected_ns >= each.started_ns for each in exchanges)
            assert len(stage.server.links) == 1
            assert stage.transport.statistics["opened"] == 1

        self.play(scene, OK * 3)

    def test_a_session_of_its_own_keeps_its_connection_until_its_final_turn(self) -> None:
        async def scene(stage: Stage) -> None:
            for turn in range(3):
                asked = []
                for name in ("a", "b"):
                    exchange = stage.exchange()
                    exchange.session_id, exchange.final = name, turn == 2
                    stage.transport.send(exchange)
                    asked.append(exchange)
                for exchange in asked:
                    assert await stage.over(exchange) is None
            shared = {request.connection for request in stage.server.requests if request.header("X-Correlation-ID") == "a"}
            assert [len(shared), len(stage.server.links)] == [1, 2]
            for link in stage.server.links:
                await asyncio.wait_for(link.closed.wait(), _PATIENCE_S)

        self.play(scene, [*OK * 3, UntilClosed()], sticky=True)

    def test_who_asks_is_told_when_the_whole_request_is_written(self) -> None:
        async def scene(stage: Stage) -> None:
            exchange = stage.exchange(b"x" * 3_000_000)
            exchange.armed = True
            stage.transport.send(exchange)
            assert await stage.over(exchange) is None
            other = await stage.ask()
            assert stage.ear.whole == [exchange.request]
            assert exchange.sent_ns <= exchange.sent_end_ns
            assert other.sent_end_ns > 0

        self.play(scene, OK * 2)

    def test_without_reuse_every_request_has_a_connection_and_closes_it(self) -> None:
        async def scene(stage: Stage) -> None:
            exchanges = [await stage.ask() for _ in range(3)]
            assert not any(each.flags & REUSED for each in exchanges)
            assert len(stage.server.links) == 3
            for link in stage.server.links:
                await asyncio.wait_for(link.closed.wait(), _PATIENCE_S)

        self.play(scene, [*OK, UntilClosed()], reuse=False)

    def test_connections_can_be_opened_ahead(self) -> None:
        async def scene(stage: Stage) -> None:
            await stage.transport.warm(3)
            exchanges = [stage.exchange() for _ in range(4)]
            for exchange in exchanges:
                stage.transport.send(exchange)
            await stage.ear.until(lambda: len(stage.ear.ends) == 4)
            assert [bool(each.flags & REUSED) for each in exchanges] == [True, True, True, False]
            assert len(stage.server.links) == stage.transport.statistics["opened"] == 4

        self.play(scene, OK)

    def test_nothing_is_opened_ahead_where_nothing_is_kept(self) -> None:
        async def scene(stage: Stage) -> None:
            await stage.transport.warm(3)
            await stage.ask()
            assert len(stage.server.links) == 1

        self.play(scene, OK, reuse=False)

    def test_opening_ahead_leaves_errors_to_the_requests(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            url = f"http://127.0.0.1:{taken.getsockname()[1]}"

        async def scene(stage: Stage) -> None:
            await stage.transport.warm(3)
            assert stage.ear.ends == {}
            await stage.fail(url=f"{url}/v1")

        self.play(scene, OK, urls=(url,))

    def test_the_engine_may_send_from_inside_done(self) -> None:
        async def scene(stage: Stage) -> None:
            others = [stage.exchange() for _ in range(4)]
            stage.ear.on_done = lambda _: stage.transport.send(others.pop()) if others else None
            await stage.ask()
            await stage.ear.until(lambda: len(stage.ear.ends) == 5)
            assert [ends for ends in stage.ear.ends.values() if ends != [None]] == []
            assert len(stage.server.links) == 1

        self.play(scene, OK * 5)

    def test_many_requests_share_nothing_but_the_loop(self) -> None:
        async def scene(stage: Stage) -> None:
            exchanges = [stage.exchange(b"%d" % i) for i in range(50)]
            for exchange in exchanges:
                stage.transport.send(exchange)
            await stage.ear.until(lambda: len(stage.ear.ends) == 50)
            assert {ends[0] for ends in stage.ear.ends.values()} == {None}
            assert sorted(got.body for got in stage.server.requests) == sorted(each.body for each in exchanges)

        self.play(scene, OK)

    def test_a_failure_is_an_answer_and_shows_its_head(self) -> None:
        refused = answer(b'{"error":"busy"}', status=429, reason="Slow Down", headers=["Retry-After: 1"])

        async def scene(stage: Stage) -> None:
            exchange = await stage.ask()
            status, reason, headers = stage.ear.heads[exchange.request]
            assert (exchange.status, status, reason, headers["retry-after"]) == (429, 429, "Slow Down", "1")
            assert stage.ear.body(exchange) == b'{"error":"busy"}'

        self.play(scene, [Expect(), Send(refused)])

    def test_every_head_is_shown_where_asked(self) -> None:
        async def scene(stage: Stage) -> None:
            exchange = await stage.ask()
            assert stage.ear.heads[exchange.request][0] == 200

        self.play(scene, OK, keep_heads=True)

    def test_redirects_are_answers(self) -> None:
        async def scene(stage: Stage) -> None:
            exchange = await stage.ask()
            assert exchange.status == 307
            assert len(stage.server.requests) == 1

        self.play(scene, [Expect(), Send(answer(b"", status=307, reason="Elsewhere", headers=["Location: /"]))])

    def test_cookies_are_not_carried_from_one_request_to_the_next(self) -> None:
        async def scene(stage: Stage) -> None:
            for _ in range(2):
                await stage.ask()
            assert stage.server.requests[1].header("Cookie") is None

        self.play(scene, [Expect(), Send(answer(headers=["Set-Cookie: a=1"])), *OK])

    def test_an_encoded_body_is_left_as_it_came(self) -> None:
        packed = gzip.compress(b'{"a":1}', mtime=0)

        async def scene(stage: Stage) -> None:
            assert stage.ear.body(await stage.ask()) == packed

        self.play(scene, [Expect(), Send(answer(packed, headers=["Content-Encoding: gzip"]))])

    def test_interim_answers_are_skipped(self) -> None:
        interim = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"

        async def scene(stage: Stage) -> None:
            for _ in range(2):
                exchange = await stage.ask()
                assert (exchange.status, stage.ear.body(exchange)) == (200, b'{"a":1}')

        self.play(scene, [Expect(), Send(interim), Send(answer(b'{"a":1}')), Expect(), Send(interim + answer(b'{"a":1}'))])

    def test_an_answer_without_length_ends_with_the_connection(self) -> None:
        async def scene(stage: Stage) -> None:
            exchange = await stage.ask()
            assert stage.ear.body(exchange) == b"all of it"
            await stage.ask()
            assert len(stage.server.links) == 2

        self.play(scene, [Expect(), Send(b"HTTP/1.1 200 OK\r\n\r\nall "), Send(b"of it"), Fin()], OK)

    @pytest.mark.parametrize("status", [204, 304])
    def test_some_answers_have_no_body(self, status: int) -> None:
        async def scene(stage: Stage) -> None:
            exchange = await stage.ask()
            assert (exchange.status, stage.ear.body(exchange)) == (status, b"")
            assert (await stage.ask()).flags & REUSED

        self.play(scene, [Expect(), Send(b"HTTP/1.1 %d Fine\r\n\r\n" % status), *OK])

    def test_an_answer_to_head_has_a_length_and_no_body(self) -> None:
        async def scene(stage: Stage) -> None:
            exchange = await stage.ask(b"", method="HEAD")
            assert (exchange.status, stage.ear.body(exchange)) == (200, b"")

        self.play(scene, [Expect(), Send(b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n"), UntilClosed()])

    def test_an_upgrade_is_an_error(self) -> None:
        switch = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n"

        async def scene(stage: Stage) -> None:
            await stage.fail()

        self.play(scene, [Expect(), Send(switch), UntilClosed()])

    def test_what_is_not_http_is_an_error(self) -> None:
        async def scene(stage: Stage) -> None:
            await stage.fail()

        self.play(scene, [Expect(), Send(b"SSH-2.0-OpenSSH_9.6\r\n"), UntilClosed()])

    def test_a_refused_connection_is_an_error_that_names_the_server(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            url = f"http://127.0.0.1:{taken.getsockname()[1]}"

        async def scene(stage: Stage) -> None:
            exchange, error = await stage.fail(url=f"{url}/v1")
            assert (exchange.status, exchange.sent_ns) == (0, 0)
            assert url.rpartition(":")[2] in error.message

        self.play(scene, OK, urls=(url,))

    @pytest.mark.parametrize("host", ["a." * 40 + "invalid", "x" * 70 + ".invalid"], ids=["no such name", "no name at all"])
    def test_a_name_that_cannot_be_resolved_is_every_requests_error(self, host: str) -> None:
        async def scene(stage: Stage) -> None:
            for _ in range(2):
                await stage.fail(url=f"http://{host}:1/v1")

        self.play(scene, OK, urls=(f"http://{host}:1",))

    @pytest.mark.parametrize(
        "begun",
        [b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", chunked_head() + chunk(EVENTS[0]), b"HTTP/1.1 200 OK\r\nCont"],
        ids=["by length", "chunked", "in the head"],
    )
    @pytest.mark.parametrize("end", [Fin(), Reset()], ids=["FIN", "RST"])
    def test_an_answer_cut_short_is_an_error(self, begun: bytes, end: Step) -> None:
        async def scene(stage: Stage) -> None:
            exchange, _ = await stage.fail()
            assert len(stage.server.requests) == 1
            assert exchange.bytes_received == len(stage.ear.body(exchange))

        self.play(scene, [Expect(), Send(begun), Sleep(0.01), end])

    @pytest.mark.parametrize("end", [Fin(), Reset()], ids=["FIN", "RST"])
    def test_a_fresh_connection_without_an_answer_is_an_error_and_never_retried(self, end: Step) -> None:
        async def scene(stage: Stage) -> None:
            exchange, _ = await stage.fail()
            assert (exchange.status, exchange.flags & RECONNECTED) == (0, 0)
            assert len(stage.server.links) == 1

        self.play(scene, [Expect(), end], OK)

    def test_a_reused_connection_that_ends_without_an_answer_is_retried_once(self) -> None:
        async def scene(stage: Stage) -> None:
            await stage.ask()
            before = monotonic_ns()
            exchange = stage.exchange(b'{"again":1}')
            stage.transport.send(exchange)
            assert await stage.over(exchange) is None
            assert (exchange.status, exchange.flags & (REUSED | RECONNECTED)) == (200, RECONNECTED)
            assert before <= exchange.started_ns <= exchange.sent_ns
            assert [got.body for got in stage.server.requests] == [b"{}", b'{"again":1}', b'{"again":1}']
            assert stage.ear.body(exchange) == b'{"a":1}'

        self.play(scene, [*OK, Expect(), Fin()], OK)

    def test_a_retry_that_fails_is_the_end_of_it(self) -> None:
        async def scene(stage: Stage) -> None:
            await stage.ask()
            exchange, _ = await stage.fail()
            assert exchange.flags & RECONNECTED
            assert len(stage.server.links) == 2

        self.play(scene, [*OK, Expect(), Fin()], [Expect(), Fin()], OK)

    def test_a_reused_connection_that_ends_in_an_answer_is_not_retried(self) -> None:
        async def scene(stage: Stage) -> None:
            await stage.ask()
            exchange, _ = await stage.fail()
            assert exchange.flags & REUSED
            assert len(stage.server.links) == 1

        self.play(scene, [*OK, Expect(), Send(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf"), Fin()], OK)

    @pytest.mark.parametrize("idle_end", ["fin", "reset"])
    def test_an_idle_connection_that_the_server_closed_does_no_harm(self, idle_end: str) -> None:
        async def scene(stage: Stage) -> None:
            await stage.ask()
            link = stage.server.links[0]
            link.fin() if idle_end == "fin" else link.reset()
            exchange = await stage.ask()  # before the loop could notice
            assert (exchange.status, exchange.flags & REUSED) == (200, 0)
            assert len(stage.server.links) == 2

        self.play(scene, [*OK, Sleep(_PATIENCE_S)], OK)

    def test_an_abort_ends_the_exchange_at_once_and_closes_its_connection(self) -> None:
        async def scene(stage: Stage) -> None:
            exchange = stage.exchange()
            stage.transport.send(exchange)
            await stage.ear.until(lambda: exchange.request in stage.ear.chunks)
            error = ErrorDetails("too late", type="TimeoutError", code=504)
            stage.transport.abort(exchange, error)
            assert stage.ear.ends[exchange.request] == [error]
            await asyncio.wait_for(stage.server.links[0].closed.wait(), _PATIENCE_S)
            assert not (await stage.ask()).flags & REUSED

        self.play(scene, [Expect(), Send(chunked_head() + chunk(EVENTS[0])), UntilClosed()], OK)

    def test_an_abort_before_the_connection_is_there_ends_the_exchange_too(self) -> None:
        async def scene(stage: Stage) -> None:
            exchange = stage.exchange()
            stage.transport.send(exchange)
            stage.transport.abort(exchange, None)
            assert stage.ear.ends[exchange.request] == [None]
            await stage.ask()
            assert len(stage.ear.ends[exchange.request]) == 1

        self.play(scene, OK)

    def test_a_large_body_goes_out_whole(self) -> None:
        body = bytes(range(256)) * 78_125  # 20 MB

        async def scene(stage: Stage) -> None:
            exchange = await stage.ask(body)
            assert stage.server.requests[0].body == body
            assert exchange.sent_ns < exchange.sent_end_ns <= exchange.ack_ns

        self.play(scene, OK)

    def test_a_large_body_comes_in_whole(self) -> None:
        body = bytes(range(256)) * 78_125

        async def scene(stage: Stage) -> None:
            exchange = await stage.ask()
            assert stage.ear.body(exchange) == body
            assert exchange.bytes_received == len(body)
            assert (await stage.ask()).flags & REUSED

        self.play(scene, [Expect(), Send(answer(body)), *OK])

    def test_an_answer_that_comes_before_the_request_is_out_is_taken(self) -> None:
        async def scene(stage: Stage) -> None:
            exchange = stage.exchange(b"x" * 20_000_000)
            stage.transport.send(exchange)
            error = await stage.over(exchange)
            assert (exchange.status == 413 and error is None) or error is not None
            assert not (await stage.ask()).flags & REUSED

        self.play(scene, [Send(answer(b"", status=413, reason="Too Large")), UntilClosed()], OK)

    def test_tls_with_a_trusted_certificate_works_and_is_reused(self, certificate: Certificate) -> None:
        async def scene(stage: Stage) -> None:
            first, second = await stage.ask(), await stage.ask()
            assert stage.ear.body(first) == stage.ear.body(second) == b'{"a":1}'
            assert second.flags & REUSED
            assert stage.server.requests[0].header("Host") == f"127.0.0.1:{stage.server.port}"

        self.play(scene, OK * 2, certificate=certificate)

    def test_tls_takes_any_certificate_where_told_to(self, certificate: Certificate) -> None:
        async def scene(stage: Stage) -> None:
            await stage.ask()

        self.play(scene, OK, certificate=certificate, tls=TlsPlan(verify=False))

    def test_tls_with_an_unknown_certificate_is_an_error(self, certificate: Certificate) -> None:
        async def scene(stage: Stage) -> None:
            exchange, error = await stage.fail()
            assert exchange.status == 0
            assert "certificate" in f"{error.type} {error.message}".lower()

        self.play(scene, OK, certificate=certificate, tls=TlsPlan())

    def test_a_missing_certificate_file_is_every_requests_error(self, certificate: Certificate, tmp_path: Path) -> None:
        async def scene(stage: Stage) -> None:
            await stage.fail()

        self.play(scene, OK, certificate=certificate, tls=TlsPlan(ca_file=str(tmp_path / "none.pem")))

    def test_close_ends_what_is_open(self) -> None:
        async def scene(stage: Stage) -> None:
            await stage.ask()
            stage.transport.send(stage.exchange())
            await asyncio.sleep(0.01)
            await stage.transport.close()
            for link in stage.server.links:
                await asyncio.wait_for(link.closed.wait(), _PATIENCE_S)

        self.play(scene, [*OK, Expect(), UntilClosed()])


__all__ = ["Ear", "Scene", "Stage", "TransportContract", "play"]
