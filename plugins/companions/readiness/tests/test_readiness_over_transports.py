"""Questions that go over the run's transport: an endpoint's own, and those to a server of another scheme."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from aiperf.errors import AiperfError
from aiperf.sdk.asking import Ask
from aiperf.sdk.companion import CompanionContext
from aiperf.sdk.endpoint import Endpoint
from aiperf.sdk.model import HttpRequest, Turn
from aiperf.sdk.plan import Plan, Secrets
from aiperf.sdk.transport import Exchange, Shape, Sink, TransportSettings
from aiperf_companion_readiness import Readiness
from aiperf_companion_readiness.options import ReadinessOptions, ReadyMode
from aiperf_testing.journals import plan_for
from aiperf_testing.plans import sample_ref
from aiperf_testing.server import Expect, Scripted, Send, Step, UntilClosed, answer
from msgspec.structs import replace

if TYPE_CHECKING:
    from aiperf_transport_sockets import KernelTransport
else:
    KernelTransport = pytest.importorskip("aiperf_transport_sockets", reason="needs a transport").KernelTransport

ERROR: list[Step] = [Expect(), Send(answer(b"no", status=503, reason="Busy"))]


class Usual(Endpoint):
    def encode(self, turn: Turn) -> HttpRequest:
        return HttpRequest("/ask", json.dumps({"model": turn.model}).encode())


class Knowing(Usual):
    def unready(self, ask: Ask) -> str | None:
        reply = ask(HttpRequest("/health", b"", {}, "", "GET"))
        return None if reply.status == 200 else f"its health is {reply.status} at {ask.scheme}"


class Wired(KernelTransport):
    """Another scheme for HTTP: what the transport of the run alone can reach."""

    def __init__(self, settings: TransportSettings, sink: Sink, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(replace(settings, urls=tuple(url.replace("wired:", "http:") for url in settings.urls)), sink, loop)

    def send(self, exchange: Exchange) -> None:
        shape = exchange.shape
        exchange.shape = Shape(shape.url.replace("wired:", "http:"), shape.headers, shape.session_headers, shape.method)
        super().send(exchange)


def plan(url: str, dialect: str, transport: str = "aiperf_transport_sockets:KernelTransport") -> Plan:
    settled: dict[str, Any] = {"urls": (url,), "path": "/ask", "models": ("m",), "streaming": False}
    endpoint, over = sample_ref("endpoints", f"{__name__}:{dialect}"), sample_ref("transports", transport)
    return plan_for(Path(), **settled, endpoint=endpoint, transport=over)


async def waited(plan: Plan, mode: ReadyMode, *, timeout_s: float = 60.0, headers: dict[str, str] | None = None) -> None:
    """Wait as a run does.

    Raises:
        AiperfError: The server didn't get ready.
    """
    options = ReadinessOptions(timeout_s=timeout_s, mode=mode, interval_s=0.01)
    made = Readiness(options, CompanionContext(plan, Secrets(headers or {}), Path("log"), print))
    made.begin()
    while made.waiting() is not None:
        await asyncio.sleep(0.005)
    made.close()


def test_an_endpoint_that_knows_is_asked_in_place_of_the_usual_questions() -> None:
    async def go() -> None:
        async with Scripted(ERROR, [Expect(), Send(answer(b"ok"))]) as server:
            await waited(plan(server.url, "Knowing"), ReadyMode.BOTH, headers={"Authorization": "Bearer key"})
        assert [got.target for got in server.requests] == ["/health", "/health"]
        assert server.requests[0].header("Authorization") == "Bearer key"

    asyncio.run(go())


def test_what_an_endpoint_says_of_its_server_is_the_reason() -> None:
    async def go() -> str:
        async with Scripted(ERROR) as server:
            with pytest.raises(AiperfError) as caught:
                await waited(plan(server.url, "Knowing"), ReadyMode.INFERENCE, timeout_s=1)
            return caught.value.message

    assert "its health is 503 at http" in asyncio.run(go())


def test_a_server_of_another_scheme_is_asked_over_the_runs_transport() -> None:
    async def go() -> None:
        listed = answer(json.dumps({"data": [{"id": "m"}]}).encode())
        async with Scripted([Expect(), Send(listed), UntilClosed()], [Expect(), Send(answer(b"{}")), UntilClosed()]) as server:
            await waited(plan(server.url.replace("http:", "wired:"), "Usual", f"{__name__}:Wired"), ReadyMode.BOTH)
            for link in server.links:
                await asyncio.wait_for(link.closed.wait(), 60.0)  # no connection is left beside the load
        assert [got.target for got in server.requests] == ["/v1/models", "/ask"]

    asyncio.run(go())
