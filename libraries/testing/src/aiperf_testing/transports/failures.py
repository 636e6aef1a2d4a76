"""Failures of servers and networks, aborts and large bodies."""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import socket
from collections.abc import Iterator
from pathlib import Path
from time import monotonic_ns

import pytest
from aiperf.sdk.model import ErrorDetails
from aiperf.sdk.plan import TlsPlan
from aiperf.sdk.transport import EXHAUSTED, RECONNECTED, REFUSED, RESENT, REUSED, Exchange

from aiperf_testing.findings import unlike
from aiperf_testing.server import (
    Certificate,
    Expect,
    Fin,
    Reset,
    Send,
    Sleep,
    Step,
    UntilClosed,
    answer,
    chunk,
    chunked_head,
)
from aiperf_testing.transports.stage import EVENTS, OK, PATIENCE_S, OnStage, Stage


@contextlib.contextmanager
def no_file_left() -> Iterator[None]:
    """No file or socket can be opened in this process."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    taken = [os.open(os.devnull, os.O_RDONLY)]
    resource.setrlimit(resource.RLIMIT_NOFILE, (taken[0] + 64, before[1]))
    try:
        with contextlib.suppress(OSError):
            while True:
                taken.append(os.dup(taken[0]))
        yield
    finally:
        for fd in taken:
            os.close(fd)
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


class FailureTests(OnStage):
    """Failures of servers and networks, aborts and large bodies."""

    def test_a_refused_connection_is_an_error_that_names_the_server(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            url = f"http://127.0.0.1:{taken.getsockname()[1]}"

        async def scene(stage: Stage) -> None:
            exchange, error = await stage.fail(url=f"{url}/v1")
            assert (exchange.status, exchange.sent_ns, error.cause) == (0, 0, REFUSED), (
                unlike(
                    (exchange.status, exchange.sent_ns, error.cause), (0, 0, REFUSED),
                    "end the exchange with a TransportError of that cause; nothing was sent",
                )
            )
            assert url.rpartition(":")[2] in error.message, unlike(error.message, url, "name the server in the message")

        self.play(scene, OK, urls=(url,))

    def test_a_server_that_is_gone_refuses_the_new_connection(self) -> None:
        async def scene(stage: Stage) -> None:
            await stage.ask()
            stage.server.stop_listening()
            stage.server.links[0].fin()
            exchange, error = await stage.fail()  # perhaps before the loop notices
            assert not exchange.flags & REUSED, "a connection that the server closed must not be used: open a new one"
            assert (exchange.sent_ns, exchange.sent_end_ns, error.cause) == (0, 0, REFUSED), (
                unlike((exchange.sent_ns, exchange.sent_end_ns, error.cause), (0, 0, REFUSED), "nothing was sent: say so")
            )

        self.play(scene, [*OK, Sleep(PATIENCE_S)])

    def test_an_exhausted_client_is_no_fault_of_the_server(self) -> None:
        async def scene(stage: Stage) -> None:
            with no_file_left():
                exchange, error = await stage.fail()
            assert (exchange.status, exchange.sent_ns, error.cause) == (0, 0, EXHAUSTED), (
                unlike(
                    (exchange.status, exchange.sent_ns, error.cause), (0, 0, EXHAUSTED),
                    "end the exchange with a TransportError of that cause; nothing was sent",
                )
            )
            assert "ulimit -n" in error.message, (
                unlike(error.message, "a message with ulimit -n", "say what to raise when files run out")
            )
            await stage.ask()

        self.play(scene, OK)

    def test_a_silent_handshake_ends_soon(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as silent:
            url = f"https://127.0.0.1:{silent.getsockname()[1]}"

            async def scene(stage: Stage) -> None:
                exchange, error = await stage.fail(url=f"{url}/v1")
                assert (exchange.status, exchange.sent_ns, error.cause) == (0, 0, REFUSED), (
                    unlike((exchange.status, exchange.sent_ns, error.cause), (0, 0, REFUSED), "nothing was sent: say so")
                )
                assert exchange.connect_ns > 0 and exchange.connected_ns == 0, (
                    "set connect_ns when TCP is open, and connected_ns behind the handshake: these tell a silent server"
                )
                assert "nothing answers TLS" in error.message and "0.5 s" in error.message, (
                    unlike(error.message, "a message with nothing answers TLS and 0.5 s", "name the cause and the limit")
                )

            self.play(scene, OK, urls=(url,), connect_s=0.5)

    @pytest.mark.parametrize("status", [b"000", b"099"])
    def test_a_status_below_100_is_an_error(self, status: bytes) -> None:
        async def scene(stage: Stage) -> None:
            exchange, _ = await stage.fail()
            assert exchange.status == 0, unlike(exchange.status, 0, "a status below 100 is no answer: end with an error")

        self.play(scene, [Expect(), Send(b"HTTP/1.1 " + status + b" Odd\r\nContent-Length: 0\r\n\r\n"), UntilClosed()])

    @pytest.mark.parametrize(
        "begun",
        [b"HTTP/1.1 200 OK\r\n" + b"X-Field: value\r\n" * 100_000, b"HTTP/1.1 200 OK\r\nX-Field: " + b"v" * 1_000_000],
        ids=["many headers", "a long header"],
    )
    def test_endless_headers_are_an_error(self, begun: bytes) -> None:
        async def scene(stage: Stage) -> None:
            exchange, _ = await stage.fail()
            assert exchange.bytes_received == 0, (
                unlike(exchange.bytes_received, 0, "bound the size of a head, and end with an error")
            )

        self.play(scene, [Expect(), Send(begun), UntilClosed()])

    def test_a_head_that_trickles_ends_soon(self) -> None:
        async def scene(stage: Stage) -> None:
            exchange, error = await stage.fail()
            assert exchange.bytes_received == 0, (
                unlike(exchange.bytes_received, 0, "bound the time of a head, and end with an error")
            )
            assert "0.1 s" in error.message, unlike(error.message, "a message with 0.1 s", "name the limit in the message")

        pieces: list[Step] = [step for _ in range(600) for step in (Send(b"X-Field: value\r\n"), Sleep(0.02))]
        self.play(scene, [Expect(), Send(b"HTTP/1.1 200 OK\r\n"), *pieces, UntilClosed()], head_s=0.1)

    def test_a_head_behind_an_interim_answer_may_take_its_time(self) -> None:
        async def scene(stage: Stage) -> None:
            assert (await stage.ask()).status == 200, (
                "a head behind an interim answer failed: its time begins with the interim answer"
            )

        interim = Send(b"HTTP/1.1 102 Processing\r\n\r\n")
        self.play(scene, [Expect(), interim, Sleep(0.3), interim, Sleep(0.3), *OK[1:]], head_s=0.2)

    def test_endless_interim_answers_are_an_error(self) -> None:
        async def scene(stage: Stage) -> None:
            exchange, error = await stage.fail()
            assert (exchange.status, exchange.bytes_received) == (0, 0), (
                unlike((exchange.status, exchange.bytes_received), (0, 0), "bound the number of interim answers")
            )
            assert "interim answers" in error.message, unlike(error.message, "a message with interim answers", "name the cause")

        self.play(scene, [Expect(), Send(b"HTTP/1.1 102 Processing\r\n\r\n" * 20_000), UntilClosed()])

    def test_an_answer_beyond_the_limit_is_an_error(self) -> None:
        async def scene(stage: Stage) -> None:
            exchange, error = await stage.fail()
            assert exchange.bytes_received < 2_000_000, (
                unlike(exchange.bytes_received, "less than 2,000,000", "stop reading at the limit")
            )
            assert "100000" in error.message.replace(",", ""), (
                unlike(error.message, "a message with 100,000", "name the limit in the message")
            )

        self.play(scene, [Expect(), Send(answer(b"x" * 20_000_000)), UntilClosed()], most_bytes=100_000)

    def test_a_stream_left_open_behind_its_end_marker_is_over(self) -> None:
        async def scene(stage: Stage) -> None:
            exchange = await stage.ask()
            assert stage.ear.body(exchange) == EVENTS[0] + EVENTS[-1], (
                unlike(stage.ear.body(exchange), EVENTS[0] + EVENTS[-1], "a stream is over at its end marker")
            )
            assert not (await stage.ask()).flags & REUSED, "a connection behind such an answer can't be used again: close it"

        self.play(scene, [Expect(), Send(chunked_head() + chunk(EVENTS[0]) + chunk(EVENTS[-1])), UntilClosed()], OK, end_s=0.1)

    def test_a_stream_that_pauses_before_its_end_marker_is_not_over(self) -> None:
        async def scene(stage: Stage) -> None:
            for _ in range(2):
                exchange = await stage.ask()
                assert stage.ear.body(exchange) == EVENTS[0] + EVENTS[-1], (
                    unlike(stage.ear.body(exchange), EVENTS[0] + EVENTS[-1], "wait for the end marker, however long the pause")
                )

        rest = chunk(EVENTS[0]) + chunk(EVENTS[-1]) + chunk()
        pause: list[Step] = [Send(chunked_head()), Sleep(0.3), Send(rest)]
        self.play(scene, [Expect(), Send(chunked_head() + rest), Expect(), *pause], end_s=0.1)

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
            assert len(stage.server.requests) == 1, (
                unlike(len(stage.server.requests), 1, "never send again what was answered in part")
            )
            assert exchange.bytes_received == len(stage.ear.body(exchange)), (
                unlike(exchange.bytes_received, len(stage.ear.body(exchange)), "count what came, also of an answer cut short")
            )

        self.play(scene, [Expect(), Send(begun), Sleep(0.01), end])

    @pytest.mark.parametrize("end", [Fin(), Reset()], ids=["FIN", "RST"])
    def test_a_fresh_connection_without_an_answer_is_an_error_and_never_retried(self, end: Step) -> None:
        async def scene(stage: Stage) -> None:
            exchange, _ = await stage.fail()
            assert (exchange.status, exchange.flags & RECONNECTED) == (0, 0), (
                unlike((exchange.status, exchange.flags & RECONNECTED), (0, 0), "retry on reused connections alone")
            )
            assert len(stage.server.links) == 1, unlike(len(stage.server.links), 1, "retry on reused connections alone")

        self.play(scene, [Expect(), end], OK)

    @pytest.mark.parametrize("method", ["POST", "GET"])
    @pytest.mark.parametrize("end", [Fin(), Reset()], ids=["FIN", "RST"])
    @pytest.mark.parametrize("encrypted", [False, True], ids=["plain", "TLS"])
    def test_what_the_server_has_read_is_never_sent_again(
        self, encrypted: bool, end: Step, method: str, certificate: Certificate
    ) -> None:
        async def scene(stage: Stage) -> None:
            await stage.ask()
            exchange, _ = await stage.fail(b"" if method == "GET" else b'{"q":1}', method=method)
            assert (exchange.status, exchange.flags & (REUSED | RECONNECTED | RESENT)) == (0, REUSED), (
                unlike(
                    (exchange.status, exchange.flags), (0, REUSED),
                    "never send again what may have been received: that is retried before anything was written alone",
                )
            )
            assert exchange.sent_ns > 0, (
                unlike(exchange.sent_ns, "more than 0", "stamp what was sent, also where no answer comes")
            )
            assert [len(stage.server.requests), len(stage.server.links)] == [2, 1], (
                unlike(
                    [len(stage.server.requests), len(stage.server.links)], [2, 1],
                    "never send again what may have been received: that is retried before anything was written alone",
                )
            )

        self.play(scene, [*OK, Expect(), end], OK, certificate=certificate if encrypted else None)

    @pytest.mark.parametrize("end", [Fin(), Reset()], ids=["FIN", "RST"])
    def test_what_the_server_has_read_on_a_connection_opened_ahead_is_never_sent_again(self, end: Step) -> None:
        async def scene(stage: Stage) -> None:
            await stage.transport.warm(1)
            exchange, _ = await stage.fail()
            assert exchange.flags & (REUSED | RECONNECTED | RESENT) == REUSED, (
                unlike(
                    exchange.flags, REUSED,
                    "never send again what may have been received: that is retried before anything was written alone",
                )
            )
            assert len(stage.server.requests) == 1, (
                unlike(
                    len(stage.server.requests), 1,
                    "never send again what may have been received: that is retried before anything was written alone",
                )
            )

        self.play(scene, [Expect(), end], OK)

    @pytest.mark.parametrize("encrypted", [False, True], ids=["plain", "TLS"])
    def test_a_close_that_crosses_the_request_does_no_harm(self, encrypted: bool, certificate: Certificate) -> None:
        async def scene(stage: Stage) -> None:
            await stage.ask()
            ended = asyncio.Event()

            def close(_: Exchange) -> None:
                stage.ear.on_done = lambda exchange: ended.set()
                stage.server.links[0].fin()
                stage.transport.send(again)  # inside the turn that read the answer before

            again = stage.exchange(b'{"again":1}')
            stage.ear.on_done = close
            await stage.ask()
            await asyncio.wait_for(ended.wait(), PATIENCE_S)
            assert stage.ear.ends[again.request] == [None], (
                unlike(stage.ear.ends[again.request], [None], "end the exchange once, with None or its error")
            )
            assert (again.status, again.flags & REUSED) == (200, 0), (
                unlike(
                    (again.status, again.flags & REUSED), (200, 0),
                    "a connection that the server closed must not be used: open a new one",
                )
            )
            assert not (again.flags & RECONNECTED and again.flags & RESENT), (
                "an exchange is marked RECONNECTED and RESENT: it is one of both"
            )
            assert [got.body for got in stage.server.requests] == [b"{}", b"{}", b'{"again":1}'], (
                "the server got other requests: each is sent once, on a connection that is open"
            )

        script = [*OK * 2, Sleep(PATIENCE_S)]
        self.play(scene, script, OK, certificate=certificate if encrypted else None)

    def test_a_second_connection_that_fails_is_the_end_of_it(self) -> None:
        async def scene(stage: Stage) -> None:
            await stage.ask()
            stage.server.links[0].fin()
            exchange, _ = await stage.fail()
            assert not exchange.flags & REUSED, "a connection that the server closed must not be used: open a new one"
            assert len(stage.server.links) == 2, unlike(len(stage.server.links), 2, "try one new connection, and no more")

        self.play(scene, [*OK, Sleep(PATIENCE_S)], [Expect(), Fin()], OK)

    @pytest.mark.parametrize("begun", [b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", b"HTTP/1.1 200 OK\r\nCont"])
    @pytest.mark.parametrize("end", [Fin(), Reset()], ids=["FIN", "RST"])
    def test_a_reused_connection_that_ends_in_an_answer_is_not_retried(self, begun: bytes, end: Step) -> None:
        async def scene(stage: Stage) -> None:
            await stage.ask()
            exchange, _ = await stage.fail()
            assert exchange.flags & REUSED, "the exchange on a reused connection lacks REUSED"
            assert len(stage.server.links) == 1, (
                unlike(len(stage.server.links), 1, "never send again what was answered in part")
            )

        self.play(scene, [*OK, Expect(), Send(begun), Sleep(0.01), end], OK)

    @pytest.mark.parametrize("idle_end", ["fin", "reset"])
    def test_an_idle_connection_that_the_server_closed_does_no_harm(self, idle_end: str) -> None:
        async def scene(stage: Stage) -> None:
            await stage.ask()
            link = stage.server.links[0]
            link.fin() if idle_end == "fin" else link.reset()
            before = monotonic_ns()
            exchange = await stage.ask()  # perhaps before the loop notices
            assert (exchange.status, exchange.flags & REUSED) == (200, 0), (
                unlike(
                    (exchange.status, exchange.flags & REUSED), (200, 0),
                    "a connection that the server closed must not be used: open a new one",
                )
            )
            assert before <= exchange.started_ns <= exchange.sent_ns, (
                "started_ns and sent_ns are not in their order: stamp each in its turn, with the monotonic clock"
            )
            assert [len(stage.server.requests), len(stage.server.links)] == [2, 2], (
                unlike(
                    [len(stage.server.requests), len(stage.server.links)], [2, 2],
                    "a connection that the server closed must not be used: open a new one",
                )
            )

        self.play(scene, [*OK, Sleep(PATIENCE_S)], OK)

    def test_an_abort_ends_the_exchange_at_once_and_closes_its_connection(self) -> None:
        async def scene(stage: Stage) -> None:
            exchange = stage.exchange()
            stage.transport.send(exchange)
            await stage.ear.until(lambda: exchange.request in stage.ear.chunks)
            error = ErrorDetails("too late", type="TimeoutError", code=504)
            stage.transport.abort(exchange, error)
            assert stage.ear.ends[exchange.request] == [error], (
                unlike(stage.ear.ends[exchange.request], [error], "end the exchange once, with None or its error")
            )
            await asyncio.wait_for(stage.server.links[0].closed.wait(), PATIENCE_S)
            assert not (await stage.ask()).flags & REUSED, "a connection behind such an answer can't be used again: close it"

        self.play(scene, [Expect(), Send(chunked_head() + chunk(EVENTS[0])), UntilClosed()], OK)

    def test_an_abort_before_the_connection_is_there_ends_the_exchange_too(self) -> None:
        async def scene(stage: Stage) -> None:
            exchange = stage.exchange()
            stage.transport.send(exchange)
            stage.transport.abort(exchange, None)
            assert stage.ear.ends[exchange.request] == [None], (
                unlike(stage.ear.ends[exchange.request], [None], "end the exchange once, with None or its error")
            )
            await stage.ask()
            assert len(stage.ear.ends[exchange.request]) == 1, (
                unlike(stage.ear.ends[exchange.request], "one end", "end the exchange once, with None or its error")
            )

        self.play(scene, OK)

    def test_a_large_body_goes_out_whole(self) -> None:
        body = bytes(range(256)) * 78_125  # 20 MB

        async def scene(stage: Stage) -> None:
            exchange = await stage.ask(body)
            assert stage.server.requests[0].body == body, (
                "the server got another body: write all of it, also where the socket takes a part"
            )
            assert exchange.sent_ns < exchange.sent_end_ns <= exchange.ack_ns, (
                unlike(
                    (exchange.sent_ns, exchange.sent_end_ns, exchange.ack_ns), "times in their order",
                    "stamp each in its turn, with the monotonic clock",
                )
            )

        self.play(scene, OK)

    def test_a_large_body_comes_in_whole(self) -> None:
        body = bytes(range(256)) * 78_125

        async def scene(stage: Stage) -> None:
            exchange = await stage.ask()
            assert stage.ear.body(exchange) == body, "another body came than was sent: give all of it to the sink"
            assert exchange.bytes_received == len(body), (
                unlike(exchange.bytes_received, len(body), "count the bytes of the body")
            )
            assert (await stage.ask()).flags & REUSED, "use a connection again, and set REUSED then alone: it was opened again"

        self.play(scene, [Expect(), Send(answer(body)), *OK])

    def test_an_answer_that_comes_before_the_request_is_out_is_taken(self) -> None:
        async def scene(stage: Stage) -> None:
            exchange = stage.exchange(b"x" * 20_000_000)
            stage.transport.send(exchange)
            error = await stage.over(exchange)
            assert (exchange.status == 413 and error is None) or error is not None, (
                unlike(exchange.status, "413, or an error", "read while the request is written")
            )
            assert not (await stage.ask()).flags & REUSED, "a connection behind such an answer can't be used again: close it"

        self.play(scene, [Send(answer(b"", status=413, reason="Too Large")), UntilClosed()], OK)

    def test_tls_with_an_unknown_certificate_is_an_error(self, certificate: Certificate) -> None:
        async def scene(stage: Stage) -> None:
            exchange, error = await stage.fail()
            assert exchange.status == 0, (
                unlike(exchange.status, 0, "a certificate that nobody knows ends the exchange with an error")
            )
            assert "certificate" in f"{error.type} {error.message}".lower(), (
                unlike(f"{error.type} {error.message}", "a message with certificate", "say what is wrong with it")
            )

        self.play(scene, OK, certificate=certificate, tls=TlsPlan())

    def test_a_missing_certificate_file_is_every_requests_error(self, certificate: Certificate, tmp_path: Path) -> None:
        async def scene(stage: Stage) -> None:
            await stage.fail()

        self.play(scene, OK, certificate=certificate, tls=TlsPlan(ca_file=str(tmp_path / "none.pem")))
