"""A transport on stage: a scripted server at one end, a sink that records its calls at the other."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from time import monotonic_ns
from typing import Any, ClassVar

import msgspec
import pytest
from aiperf.sdk.model import ErrorDetails
from aiperf.sdk.plan import TlsPlan
from aiperf.sdk.transport import MESSAGES, Exchange, Shape, Transport, TransportSettings

from aiperf_testing.findings import shown
from aiperf_testing.server import (
    Certificate,
    Expect,
    Scripted,
    Send,
    Step,
    answer,
)

PATIENCE_S = 60.0


class Ear:
    """A sink that records its calls.  *on_done* is called for each exchange that ends, from inside ``done``."""

    def __init__(self) -> None:
        self.chunks: dict[int, list[tuple[bytes, int, int, int]]] = {}
        self.heads: dict[int, tuple[int, str, dict[str, str]]] = {}
        self.trails: dict[int, list[tuple[str, str]]] = {}
        self.ends: dict[int, list[ErrorDetails | None]] = {}
        self.whole: list[int] = []
        self.on_done: Callable[[Exchange], None] = lambda exchange: None
        self._changed = asyncio.Event()

    def chunk(self, exchange: Exchange, body: bytes, kernel_ns: int, read_ns: int, hidden: int) -> None:
        assert exchange.request not in self.ends, "a chunk came after done"
        self.chunks.setdefault(exchange.request, []).append((bytes(body), kernel_ns, read_ns, hidden))
        self._changed.set()

    def message(self, exchange: Exchange, data: bytes, kernel_ns: int, read_ns: int, hidden: int = 0) -> None:
        exchange.flags |= MESSAGES
        self.chunk(exchange, data, kernel_ns, read_ns, ~hidden)

    def trailers(self, exchange: Exchange, trailers: list[tuple[str, str]]) -> None:
        assert exchange.request not in self.ends, "trailers came after done"
        assert exchange.request not in self.trails, "trailers came twice for one exchange"
        assert {type(part) for pair in trailers for part in pair} <= {str}, "trailers are plain strings"
        self.trails[exchange.request] = trailers

    def head(self, exchange: Exchange, status: int, reason: str, headers: list[tuple[str, str]]) -> None:
        assert exchange.request not in self.heads, "two heads came for one exchange"
        parts = [reason, *(part for header in headers for part in header)]
        assert {type(part) for part in parts} == {str}, "a head goes to the journal, which knows plain strings alone"
        self.heads[exchange.request] = (status, reason, {name.lower(): value for name, value in headers})

    def written(self, exchange: Exchange) -> None:
        assert exchange.armed, "written is for armed exchanges alone"
        assert exchange.sent_end_ns > 0, "written was called before sent_end_ns was stamped"
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
            await asyncio.wait_for(self._changed.wait(), PATIENCE_S)


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
        assert error is None, f"a request failed on a good server: {error}"
        return exchange

    async def fail(
        self, body: bytes = b"{}", *, method: str = "POST", url: str | None = None
    ) -> tuple[Exchange, ErrorDetails]:
        """Send a request that must end in an error."""
        exchange = self.exchange(body, method=method, url=url)
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
    path: Path | None = None,
    **settings: Any,
) -> None:
    """Play *scene* with a transport made by *make* against a server of *scripts*, in a loop of its own.

    *path*: of the server's socket on this machine, in place of a port.
    Fails too if an exchange ended twice or an error went unnoticed in the loop.
    """
    faults: list[str] = []

    async def whole() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, about: faults.append(f"{about['message']}: {about.get('exception')!r}"))
        async with Scripted(*scripts, certificate=certificate, path=path) as server:
            ear = Ear()
            given = TransportSettings(urls=(server.url,), tls=TlsPlan(ca_file=str(certificate.cert) if certificate else None))
            transport = make(msgspec.structs.replace(given, **settings), ear, loop)
            await transport.open()
            try:
                await asyncio.wait_for(scene(Stage(transport, server, ear)), PATIENCE_S)
            finally:
                await transport.close()
            twice = {number: ends for number, ends in ear.ends.items() if len(ends) > 1}
            assert not twice, f"done was called more than once: {twice}"

    with asyncio.Runner(loop_factory=loop_factory) as runner:
        runner.run(whole())
    assert not faults, f"the loop reports {shown(faults)}: no task may end with an exception"


OK: list[Step] = [Expect(), Send(answer(b'{"a":1}'))]
EVENTS = [b'data: {"n":%d}\n\n' % n for n in range(5)] + [b"data: [DONE]\n\n"]


class OnStage:
    """Tests of one transport; subclasses of :class:`aiperf.testing.TransportContract` name it."""

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
