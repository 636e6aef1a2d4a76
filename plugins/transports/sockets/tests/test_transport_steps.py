"""Many ready sockets and many whole answers leave room for due times between them."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from contextlib import ExitStack

import aiperf_transport_sockets
import pytest
import uvloop
from aiperf.sdk.model import ErrorDetails
from aiperf.sdk.plan import TlsPlan
from aiperf.sdk.transport import Exchange, Shape, TransportSettings
from aiperf_transport_sockets import KernelTransport, Origin, Poller
from aiperf_transport_sockets.connection import Connection

Loop = asyncio.AbstractEventLoop
COUNT = 40


class Clock:
    """A clock that moves only by hand, in ns."""

    def __init__(self) -> None:
        self.now_ns = 0

    def __call__(self) -> int:
        return self.now_ns


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(aiperf_transport_sockets, "monotonic_ns", clock)
    return clock


@pytest.fixture(params=[uvloop.new_event_loop, asyncio.new_event_loop], ids=["uvloop", "asyncio"])
def make_loop(request: pytest.FixtureRequest) -> Callable[[], Loop]:
    made: Callable[[], Loop] = request.param
    return made


def test_a_batch_of_ready_sockets_ends_before_all_are_served(make_loop: Callable[[], Loop]) -> None:
    batches, reads = list[int](), list[int]()

    async def scene() -> None:
        loop, all_read = asyncio.get_running_loop(), asyncio.Event()

        def after() -> None:
            batches.append(len(reads) - sum(batches))
            if len(reads) == COUNT:
                all_read.set()

        poller = Poller(loop, after)
        with ExitStack() as stack:
            for number in range(COUNT):
                near, far = socket.socketpair()
                stack.enter_context(near)
                stack.enter_context(far)
                far.send(bytes((number,)))
                poller.watch(near.fileno(), lambda near=near: reads.append(near.recv(1)[0]))  # type: ignore[misc]
            await asyncio.wait_for(all_read.wait(), 60)
            poller.close()

    with asyncio.Runner(loop_factory=make_loop) as runner:
        runner.run(scene())
    assert sorted(reads) == list(range(COUNT))
    assert max(batches) <= COUNT // 2


class Slow:
    """A sink that needs a millisecond for each answer; it notes the answer, and the connection that needs no peek."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.reported: list[tuple[int, Connection | None]] = []
        self.transport: KernelTransport | None = None

    def done(self, exchange: Exchange, error: ErrorDetails | None) -> None:
        assert self.transport is not None
        self.reported.append((exchange.request, self.transport.just_read))
        self.clock.now_ns += 1_000_000

    def chunk(self, exchange: Exchange, body: bytes, kernel_ns: int, read_ns: int, hidden: int) -> None: ...
    def message(self, exchange: Exchange, data: bytes, kernel_ns: int, read_ns: int, hidden: int = 0) -> None: ...
    def trailers(self, exchange: Exchange, trailers: list[tuple[str, str]]) -> None: ...
    def head(self, exchange: Exchange, status: int, reason: str, headers: list[tuple[str, str]]) -> None: ...
    def written(self, exchange: Exchange) -> None: ...


def test_slow_reports_let_the_loop_go_on_and_keep_their_order(clock: Clock, make_loop: Callable[[], Loop]) -> None:
    sink, shape = Slow(clock), Shape("http://127.0.0.1/ask", {}, ())

    async def scene() -> None:
        loop = asyncio.get_running_loop()
        transport = sink.transport = KernelTransport(TransportSettings((), TlsPlan()), sink, loop)
        connections = [Connection(transport, Origin("http", "127.0.0.1", 80)) for _ in range(4)]
        for number, connection in enumerate(connections):
            connection.fd = 0  # open; nothing is read from it
            exchange = Exchange(number, shape, b"", "", "", 0)
            exchange.final = False
            transport.finished.append((exchange, connection))
            if number == 2:
                transport.settle()
        assert sink.reported == [(0, connections[0])], "one, of which the socket is known to be empty"
        transport.settle()
        assert len(sink.reported) == 1, "the others wait for the loop"
        while transport.finished:
            await asyncio.sleep(0)
        assert sink.reported[1:] == [(1, None), (2, None), (3, None)], "sockets that may have been closed meanwhile"
        await transport.close()

    with asyncio.Runner(loop_factory=make_loop) as runner:
        runner.run(scene())
