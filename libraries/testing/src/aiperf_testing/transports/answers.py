"""Requests and answers: what is sent, and what comes back."""

from __future__ import annotations

import gzip

import pytest
from aiperf.sdk.transport import RECONNECTED, REUSED, STREAMED

from aiperf_testing.server import (
    Expect,
    Fin,
    Send,
    Sleep,
    Step,
    UntilClosed,
    answer,
    chunk,
    chunked_head,
)
from aiperf_testing.transports.stage import EVENTS, OK, OnStage, Stage


class AnswerTests(OnStage):
    """Requests and answers: what is sent, and what comes back."""

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

    def test_the_head_of_an_encoded_body_and_of_an_unusual_type_is_shown(self) -> None:
        async def scene(stage: Stage) -> None:
            shown = [(await stage.ask()).request in stage.ear.heads for _ in range(3)]
            assert shown == [True, True, False]

        encoded = answer(gzip.compress(b"{}", mtime=0), headers=["Content-Encoding: gzip"])
        page = answer(b"<html>", content_type="text/html; charset=utf-8")
        self.play(scene, [Expect(), Send(encoded), Expect(), Send(page), *OK])

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
