"""Connections that one side ends before their answer is whole."""

from __future__ import annotations

import asyncio
from time import monotonic_ns

import pytest
from aiperf.sdk.model import ErrorDetails
from aiperf.sdk.transport import RECONNECTED, RESENT, REUSED, Exchange

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
    chunk,
    chunked_head,
)
from aiperf_testing.transports.stage import EVENTS, OK, PATIENCE_S, OnStage, Stage


class LossTests(OnStage):
    """What counts as failed, and what may be sent again; an abort is a loss that the client wants."""

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
