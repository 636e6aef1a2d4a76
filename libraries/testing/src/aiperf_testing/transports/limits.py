"""Bounds of an answer: its status, the size and time of its head, its length, the end of its stream."""

from __future__ import annotations

import msgspec
import pytest
from aiperf.sdk.transport import REUSED

from aiperf_testing.findings import unlike
from aiperf_testing.server import (
    Expect,
    Send,
    Sleep,
    Step,
    UntilClosed,
    answer,
    chunk,
    chunked_head,
)
from aiperf_testing.transports.stage import EVENTS, OK, OnStage, Stage


class LimitTests(OnStage):
    """An answer beyond a bound is an error, or over."""

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

    def test_a_drained_answer_has_no_limit(self) -> None:
        async def scene(stage: Stage) -> None:
            exchange = stage.exchange()
            exchange.shape = msgspec.structs.replace(exchange.shape, drain=True)
            stage.transport.send(exchange)
            assert await stage.over(exchange) is None, "nobody keeps the bytes of a drained answer: don't bound them"
            assert exchange.bytes_received == 300_000, unlike(exchange.bytes_received, 300_000, "count them all")

        self.play(scene, [Expect(), Send(answer(b"x" * 300_000))], most_bytes=100_000)

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
