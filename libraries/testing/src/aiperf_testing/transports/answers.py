"""Requests and answers: what is sent, and what comes back."""

from __future__ import annotations

import gzip

import pytest
from aiperf.sdk.transport import RECONNECTED, REUSED, STREAMED

from aiperf_testing.findings import unlike
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
            assert stage.ear.body(exchange) == b'{"a":1}', (
                unlike(
                    stage.ear.body(exchange), b'{"a":1}',
                    "give the bytes of the body to the sink as they came, without framing",
                )
            )
            assert (exchange.status, exchange.bytes_received) == (200, 7), (
                unlike((exchange.status, exchange.bytes_received), (200, 7), "set both from the answer")
            )
            assert not exchange.flags & (REUSED | RECONNECTED | STREAMED), (
                unlike(exchange.flags, "neither REUSED, RECONNECTED nor STREAMED", "set flags for what happened alone")
            )
            read_ns = [each[2] for each in stage.ear.chunks[exchange.request]]
            times = [exchange.started_ns, exchange.connected_ns, exchange.sent_ns, exchange.sent_end_ns]
            assert times == sorted(times), unlike(times, sorted(times), "stamp each in its turn, with the monotonic clock")
            assert [exchange.sent_ns, exchange.ack_ns, *read_ns] == sorted([exchange.sent_ns, exchange.ack_ns, *read_ns]), (
                unlike(
                    read_ns, f"times behind {exchange.sent_ns} and {exchange.ack_ns}",
                    "stamp each in its turn, with the monotonic clock",
                )
            )
            assert exchange.connect_ns > 0, (
                unlike(exchange.connect_ns, "more than 0", "it is the time that a new connection took")
            )
            assert stage.transport.statistics["opened"] == 1, (
                unlike(stage.transport.statistics["opened"], 1, "count opened connections")
            )
            assert stage.transport.statistics["opened"] >= 1, (
                unlike(stage.transport.statistics["opened"], "1 or more", "count opened connections")
            )
            assert exchange.request not in stage.ear.heads, (
                "the head of a good answer was shown: show it for failures, or where it is asked for"
            )

        self.play(scene, OK)

    def test_the_request_is_what_was_asked_for(self) -> None:
        async def scene(stage: Stage) -> None:
            await stage.ask(b'{"q":1}')
            got = stage.server.requests[0]
            assert (got.method, got.target, got.body) == ("POST", "/v1/x?a=1&b=%20", b'{"q":1}'), (
                unlike((got.method, got.target, got.body), "POST /v1/x?a=1&b=%20 with its body", "send the request as it is")
            )
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
            assert {name: got.header(name) for name in expected} == expected, (
                unlike(got.headers, expected, "send the given headers, and those that HTTP needs")
            )
            known = {name.lower() for name in expected} | {"connection", "accept"}
            assert {name.lower() for name, _ in got.headers} <= known, (
                unlike(got.headers, known, "send no header that nobody asked for")
            )

        self.play(scene, OK)

    def test_an_empty_body_has_a_length_too(self) -> None:
        async def scene(stage: Stage) -> None:
            await stage.ask(b"")
            assert stage.server.requests[0].header("Content-Length") == "0", (
                unlike(stage.server.requests[0].header("Content-Length"), "0", "send the length of an empty body, too")
            )

        self.play(scene, OK)

    def test_a_streamed_answer_comes_in_pieces_without_its_framing(self) -> None:
        pieces: list[Step] = [step for event in EVENTS for step in (Send(chunk(event)), Sleep(0.002))]

        async def scene(stage: Stage) -> None:
            exchange = await stage.ask()
            assert stage.ear.body(exchange) == b"".join(EVENTS), (
                unlike(
                    stage.ear.body(exchange), b"".join(EVENTS),
                    "give the bytes of the body to the sink as they came, without framing",
                )
            )
            assert exchange.flags & STREAMED, "a streamed answer lacks the flag STREAMED"
            assert len(stage.ear.chunks[exchange.request]) > 1, (
                unlike(
                    len(stage.ear.chunks[exchange.request]), "more than 1 piece",
                    "give each piece to the sink when it comes",
                )
            )
            read_ns = [each[2] for each in stage.ear.chunks[exchange.request]]
            assert read_ns == sorted(read_ns), (
                unlike(read_ns, sorted(read_ns), "stamp each in its turn, with the monotonic clock")
            )
            assert exchange.bytes_received == len(b"".join(EVENTS)), (
                unlike(exchange.bytes_received, len(b"".join(EVENTS)), "count the bytes of the body, without framing")
            )

        self.play(scene, [Expect(), Send(chunked_head()), *pieces, Send(chunk())])

    def test_a_chunked_answer_cut_anywhere_is_the_same(self) -> None:
        whole = chunked_head("application/json; charset=utf-8") + chunk(b'{"a":') + chunk(b"1}") + chunk()

        async def scene(stage: Stage) -> None:
            assert stage.ear.body(await stage.ask()) == b'{"a":1}', (
                "a chunked answer that was cut anywhere gave another body: keep the decoder's state between reads"
            )

        self.play(scene, [Expect(), Send(whole, cut=7)])

    def test_a_failure_is_an_answer_and_shows_its_head(self) -> None:
        refused = answer(b'{"error":"busy"}', status=429, reason="Slow Down", headers=["Retry-After: 1"])

        async def scene(stage: Stage) -> None:
            exchange = await stage.ask()
            status, reason, headers = stage.ear.heads[exchange.request]
            assert (exchange.status, status, reason, headers["retry-after"]) == (429, 429, "Slow Down", "1"), (
                unlike(
                    (exchange.status, status, reason), (429, 429, "Slow Down"),
                    "show the head of a failure, with all its headers",
                )
            )
            assert stage.ear.body(exchange) == b'{"error":"busy"}', (
                unlike(
                    stage.ear.body(exchange), b'{"error":"busy"}',
                    "give the bytes of the body to the sink as they came, without framing",
                )
            )

        self.play(scene, [Expect(), Send(refused)])

    def test_every_head_is_shown_where_asked(self) -> None:
        async def scene(stage: Stage) -> None:
            exchange = await stage.ask()
            assert stage.ear.heads[exchange.request][0] == 200, (
                unlike(stage.ear.heads[exchange.request][0], 200, "show the head of every answer where the plan asks for it")
            )

        self.play(scene, OK, keep_heads=True)

    def test_the_head_of_an_encoded_body_and_of_an_unusual_type_is_shown(self) -> None:
        async def scene(stage: Stage) -> None:
            shown = [(await stage.ask()).request in stage.ear.heads for _ in range(3)]
            assert shown == [True, True, False], (
                unlike(shown, [True, True, False], "show the head of encoded bodies and unusual types")
            )

        encoded = answer(gzip.compress(b"{}", mtime=0), headers=["Content-Encoding: gzip"])
        page = answer(b"<html>", content_type="text/html; charset=utf-8")
        self.play(scene, [Expect(), Send(encoded), Expect(), Send(page), *OK])

    def test_redirects_are_answers(self) -> None:
        async def scene(stage: Stage) -> None:
            exchange = await stage.ask()
            assert exchange.status == 307, unlike(exchange.status, 307, "a redirect is an answer: don't follow it")
            assert len(stage.server.requests) == 1, (
                unlike(len(stage.server.requests), 1, "a redirect is an answer: don't follow it")
            )

        self.play(scene, [Expect(), Send(answer(b"", status=307, reason="Elsewhere", headers=["Location: /"]))])

    def test_cookies_are_not_carried_from_one_request_to_the_next(self) -> None:
        async def scene(stage: Stage) -> None:
            for _ in range(2):
                await stage.ask()
            assert stage.server.requests[1].header("Cookie") is None, (
                unlike(stage.server.requests[1].header("Cookie"), None, "keep no cookies")
            )

        self.play(scene, [Expect(), Send(answer(headers=["Set-Cookie: a=1"])), *OK])

    def test_an_encoded_body_is_left_as_it_came(self) -> None:
        packed = gzip.compress(b'{"a":1}', mtime=0)

        async def scene(stage: Stage) -> None:
            assert stage.ear.body(await stage.ask()) == packed, "an encoded body was changed: leave it as it came"

        self.play(scene, [Expect(), Send(answer(packed, headers=["Content-Encoding: gzip"]))])

    def test_interim_answers_are_skipped(self) -> None:
        interim = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"

        async def scene(stage: Stage) -> None:
            for _ in range(2):
                exchange = await stage.ask()
                assert (exchange.status, stage.ear.body(exchange)) == (200, b'{"a":1}'), (
                    unlike(exchange.status, 200, "skip interim answers (1xx)")
                )

        self.play(scene, [Expect(), Send(interim), Send(answer(b'{"a":1}')), Expect(), Send(interim + answer(b'{"a":1}'))])

    def test_an_answer_without_length_ends_with_the_connection(self) -> None:
        async def scene(stage: Stage) -> None:
            exchange = await stage.ask()
            assert stage.ear.body(exchange) == b"all of it", (
                unlike(
                    stage.ear.body(exchange), b"all of it",
                    "give the bytes of the body to the sink as they came, without framing",
                )
            )
            await stage.ask()
            assert len(stage.server.links) == 2, (
                unlike(len(stage.server.links), 2, "close what can't be used again, and open no more than needed")
            )

        self.play(scene, [Expect(), Send(b"HTTP/1.1 200 OK\r\n\r\nall "), Send(b"of it"), Fin()], OK)

    @pytest.mark.parametrize("status", [204, 304])
    def test_some_answers_have_no_body(self, status: int) -> None:
        async def scene(stage: Stage) -> None:
            exchange = await stage.ask()
            assert (exchange.status, stage.ear.body(exchange)) == (status, b""), (
                unlike(
                    (exchange.status, stage.ear.body(exchange)), (status, b""),
                    "such an answer has no body, whatever its headers say",
                )
            )
            assert (await stage.ask()).flags & REUSED, "use a connection again, and set REUSED then alone: it was opened again"

        self.play(scene, [Expect(), Send(b"HTTP/1.1 %d Fine\r\n\r\n" % status), *OK])

    def test_an_answer_to_head_has_a_length_and_no_body(self) -> None:
        async def scene(stage: Stage) -> None:
            exchange = await stage.ask(b"", method="HEAD")
            assert (exchange.status, stage.ear.body(exchange)) == (200, b""), (
                unlike((exchange.status, stage.ear.body(exchange)), (200, b""), "an answer to HEAD has no body")
            )

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
