"""What every transport does, of whatever protocol, with a server that its author brings."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from time import monotonic_ns
from typing import Any, ClassVar

import msgspec
import pytest
from aiperf.sdk.model import ErrorDetails
from aiperf.sdk.plan import TlsPlan
from aiperf.sdk.transport import NO_STAMP, REFUSED, Exchange, Shape, Transport, TransportSettings

from aiperf_testing.findings import shown, unlike
from aiperf_testing.server import Expect, Fin, Scripted, Send, Step, UntilClosed, answer
from aiperf_testing.transports.stage import PATIENCE_S, Ear, OnStage

_SCRIPTS: dict[str, list[Step]] = {
    "answer": [Expect(), Send(answer(b'{"a":1}'))] * 100,
    "silence": [Expect(), UntilClosed()],
    "break": [Expect(), Send(answer(b'{"a":1}')[:-3]), Fin()],
}
_AT_ONCE = 20
"""Requests in flight together."""


class Act:
    """A transport, the sink that hears it, and the requests for its server."""

    def __init__(self, transport: Transport, ear: Ear, url: str, body: bytes) -> None:
        self.transport, self.ear = transport, ear
        self._shape, self.body = Shape(url, {"User-Agent": "contract/1"}, ("X-Correlation-ID",)), body
        self._made = 0

    def exchange(self) -> Exchange:
        number = self._made
        self._made = number + 1
        return Exchange(number, self._shape, self.body, f"request-{number}", f"session-{number}", monotonic_ns())

    async def over(self, exchange: Exchange) -> ErrorDetails | None:
        """How the exchange ended."""
        await self.ear.until(lambda: exchange.request in self.ear.ends)
        return self.ear.ends[exchange.request][0]

    async def ask(self) -> Exchange:
        """Send a request and wait for its whole answer; AssertionError if it fails."""
        exchange = self.exchange()
        self.transport.send(exchange)
        error = await self.over(exchange)
        assert error is None, f"a request failed on a good server: {error}"
        return exchange

    async def fail(self) -> tuple[Exchange, ErrorDetails]:
        """Send a request that must end in an error."""
        exchange = self.exchange()
        self.transport.send(exchange)
        error = await self.over(exchange)
        assert error is not None, f"status {exchange.status} and no error"
        assert error.type and error.message, "an error says its type and what happened"
        return exchange, error


class GeneralTests(OnStage):
    """Answers, stamps, aborts and failures.

    path, body: of each request.
    """

    path: ClassVar[str] = "/v1/x"
    body: ClassVar[bytes] = b"{}"

    @asynccontextmanager
    async def serve(self, behaviour: str) -> AsyncIterator[str]:
        """A server on this machine, by its base URL; unless overridden it speaks HTTP.

        *behaviour*: ``answer`` every request with something, take requests in ``silence``, or ``break`` the connection in the
        middle of an answer.
        """
        async with Scripted(*[_SCRIPTS[behaviour]] * _AT_ONCE) as server:
            yield server.url

    def act(self, behaviour: str, scene: Callable[[Act], Awaitable[None]], **settings: Any) -> None:
        """Play *scene* with the transport against a server of this behaviour, in a loop of its own.

        Fails too if an exchange ended twice or an error went unnoticed in the loop.  Without a behaviour nobody listens.
        """
        faults: list[str] = []

        async def whole() -> None:
            loop = asyncio.get_running_loop()
            loop.set_exception_handler(lambda _, about: faults.append(f"{about['message']}: {about.get('exception')!r}"))
            async with self.serve(behaviour or "answer") as url:
                if behaviour:
                    await self._perform(url, loop, scene, settings)
            if not behaviour:
                await self._perform(url, loop, scene, settings)

        with asyncio.Runner(loop_factory=type(self).loop_factory) as runner:
            runner.run(whole())
        assert not faults, f"the loop reports {shown(faults)}: no task may end with an exception"

    async def _perform(
        self, url: str, loop: asyncio.AbstractEventLoop, scene: Callable[[Act], Awaitable[None]], settings: dict[str, Any]
    ) -> None:
        ear = Ear()
        given = msgspec.structs.replace(TransportSettings(urls=(url,), tls=TlsPlan()), **settings)
        transport = type(self).transport(given, ear, loop)
        await transport.open()
        try:
            await asyncio.wait_for(scene(Act(transport, ear, f"{url}{self.path}", self.body)), PATIENCE_S)
        finally:
            await transport.close()
        twice = {number: ends for number, ends in ear.ends.items() if len(ends) > 1}
        assert not twice, f"done was called more than once: {twice}"

    def test_an_answer_comes_with_its_times(self) -> None:
        async def scene(act: Act) -> None:
            exchange = await act.ask()
            assert 200 <= exchange.status < 300, f"a good answer has a status from 200 to 299, not {exchange.status}"
            times = [exchange.started_ns, exchange.connected_ns, exchange.sent_ns, exchange.sent_end_ns, exchange.ack_ns]
            assert times == sorted(times), "these are not in their order: started, connected, sent, sent_end, ack"
            read_ns = [read for _, _, read, _ in act.ear.chunks[exchange.request]]
            assert read_ns == sorted(read_ns) and exchange.sent_ns <= read_ns[0] <= monotonic_ns(), (
                unlike(read_ns, "growing times behind sent_ns", "stamp each in its turn, with the monotonic clock")
            )
            assert exchange.bytes_received >= len(act.ear.body(exchange)) > 0, (
                unlike(exchange.bytes_received, "the bytes that came, more than 0", "count them")
            )

        self.act("answer", scene)

    def test_its_stamps_are_those_that_it_declares(self) -> None:
        declared = getattr(type(self).transport, "stamps", "kernel")
        assert declared in ("kernel", "read"), unlike(declared, "kernel or read", "say whose stamps they are")

        async def scene(act: Act) -> None:
            exchange = await act.ask()
            stamps = [kernel_ns for _, kernel_ns, _, _ in act.ear.chunks[exchange.request]]
            if declared == "read":
                assert not any(stamps), "it declares read stamps, and gives stamps of the kernel"
            else:
                assert all(stamps) or exchange.flags & NO_STAMP, "a read without a kernel stamp sets NO_STAMP"

        self.act("answer", scene)

    def test_requests_at_once_are_each_answered_once(self) -> None:
        async def scene(act: Act) -> None:
            exchanges = [act.exchange() for _ in range(_AT_ONCE)]
            for exchange in exchanges:
                act.transport.send(exchange)
            assert [await act.over(exchange) for exchange in exchanges] == [None] * _AT_ONCE, (
                f"not every exchange of {_AT_ONCE} ended with None: each is answered once"
            )
            assert all(act.ear.body(exchange) for exchange in exchanges), (
                "an exchange has no body: give each answer to the sink of its request"
            )

        self.act("answer", scene)

    def test_one_request_follows_another(self) -> None:
        async def scene(act: Act) -> None:
            for _ in range(3):
                await act.ask()

        self.act("answer", scene)

    def test_only_an_armed_exchange_hears_that_it_is_written(self) -> None:
        async def scene(act: Act) -> None:
            await act.ask()
            armed = act.exchange()
            armed.armed = True
            act.transport.send(armed)
            assert await act.over(armed) is None, "a request failed on a good server: its exchange must end with None"
            assert act.ear.whole == [armed.request], (
                unlike(act.ear.whole, [armed.request], "call written once, for an armed exchange alone")
            )

        self.act("answer", scene)

    def test_an_abort_ends_the_exchange_at_once(self) -> None:
        async def scene(act: Act) -> None:
            exchange, error = act.exchange(), ErrorDetails("given up", type="Abort")
            act.transport.send(exchange)
            while not exchange.sent_end_ns:
                await asyncio.sleep(0.001)
            act.transport.abort(exchange, error)
            assert act.ear.ends[exchange.request] == [error], (
                unlike(act.ear.ends[exchange.request], [error], "end the exchange once, with None or its error")
            )
            await asyncio.sleep(0.02)
            assert act.ear.ends[exchange.request] == [error], (
                unlike(act.ear.ends[exchange.request], [error], "end the exchange once, with None or its error")
            )

        self.act("silence", scene)

    def test_an_abort_ends_no_other_exchange(self) -> None:
        async def scene(act: Act) -> None:
            exchanges = [act.exchange() for _ in range(4)]
            for exchange in exchanges:
                act.transport.send(exchange)
            while not all(exchange.sent_end_ns for exchange in exchanges):
                await asyncio.sleep(0.001)
            act.transport.abort(exchanges[1], ErrorDetails("given up", type="Abort"))
            await asyncio.sleep(0.02)
            assert list(act.ear.ends) == [1], (
                unlike(list(act.ear.ends), [1], "end the exchange that is aborted, and leave those beside it")
            )

        self.act("silence", scene)

    def test_parts_are_sent_one_after_the_other(self) -> None:
        if not getattr(type(self).transport, "sends_parts", False):
            pytest.skip("its requests are of one piece: the class does not say sends_parts")

        async def scene(act: Act) -> None:
            exchange = act.exchange()
            exchange.body = act.body * 3
            size, wait_ns = len(act.body), 10_000_000
            exchange.shape = msgspec.structs.replace(exchange.shape, parts=((size, 0), (size, wait_ns), (size, wait_ns)))
            act.transport.send(exchange)
            assert await act.over(exchange) is None, "a request failed on a good server: its exchange must end with None"
            took_ns = exchange.sent_end_ns - exchange.sent_ns
            assert took_ns >= 2 * wait_ns, (
                unlike(took_ns, f"{2 * wait_ns} or more", "wait before each part, and stamp sent_end_ns when the last has left")
            )

        self.act("answer", scene)

    def test_an_abort_right_behind_the_send_ends_it_too(self) -> None:
        async def scene(act: Act) -> None:
            exchange = act.exchange()
            act.transport.send(exchange)
            act.transport.abort(exchange, None)
            assert act.ear.ends[exchange.request] == [None], (
                unlike(act.ear.ends[exchange.request], [None], "end the exchange once, with None or its error")
            )
            await act.ask()

        self.act("answer", scene)

    def test_an_answer_that_breaks_off_is_an_error(self) -> None:
        async def scene(act: Act) -> None:
            await act.fail()

        self.act("break", scene)

    def test_a_server_that_is_not_there_is_named(self) -> None:
        async def scene(act: Act) -> None:
            exchange, error = await act.fail()
            assert (exchange.status, exchange.sent_ns, error.cause) == (0, 0, REFUSED), (
                unlike(
                    (exchange.status, exchange.sent_ns, error.cause), (0, 0, REFUSED),
                    "end the exchange with a TransportError of that cause; nothing was sent",
                )
            )

        self.act("", scene)

    def test_an_answer_longer_than_the_most_is_an_error(self) -> None:
        async def scene(act: Act) -> None:
            await act.fail()

        self.act("answer", scene, most_bytes=1)
