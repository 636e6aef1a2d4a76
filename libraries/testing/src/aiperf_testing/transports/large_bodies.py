"""Bodies of more bytes than a socket takes or gives at once."""

from __future__ import annotations

from aiperf.sdk.transport import REUSED

from aiperf_testing.findings import unlike
from aiperf_testing.server import (
    Expect,
    Send,
    UntilClosed,
    answer,
)
from aiperf_testing.transports.stage import OK, OnStage, Stage


class LargeBodyTests(OnStage):
    """All of a large body goes out and comes in, also where both happen at once."""

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
