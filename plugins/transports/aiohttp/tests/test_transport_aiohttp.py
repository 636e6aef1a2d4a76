"""The aiohttp transport keeps the contract, and goes where plain sockets don't."""

import asyncio

import pytest
import uvloop
from aiperf import NO_STAMP
from aiperf.testing import HttpTransportContract
from aiperf_testing.server import Expect, Scripted, Send, Step, answer
from aiperf_testing.transports import Stage, play
from aiperf_transport_aiohttp import AiohttpTransport
from aiperf_transport_aiohttp.proxies import proxy_for
from yarl import URL


class TestAiohttpKeepsTheContract(HttpTransportContract):
    transport = AiohttpTransport


class TestAiohttpKeepsTheContractOnUvloop(HttpTransportContract):
    transport = AiohttpTransport
    loop_factory = uvloop.new_event_loop


OK: list[Step] = [Expect(), Send(answer(b'{"a":1}'))]


@pytest.mark.parametrize(
    ("environment", "proxy"),
    [
        ({}, None),
        ({"http_proxy": "http://p:3128"}, URL("http://p:3128")),
        ({"HTTP_PROXY": "p:3128"}, URL("http://p:3128")),
        ({"https_proxy": "http://p:3128"}, None),
        ({"all_proxy": "http://u:w@p:3128"}, URL("http://u:w@p:3128")),
        ({"http_proxy": "http://p:3128", "no_proxy": "other,host.test"}, None),
        ({"http_proxy": "http://p:3128", "no_proxy": "*"}, None),
    ],
)
def test_the_environment_names_the_proxy(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], proxy: URL | None
) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert proxy_for(URL("http://host.test:8000/v1")) == proxy


@pytest.mark.parametrize("trust_env", [True, False])
def test_a_proxy_is_used_where_the_environment_is_trusted(monkeypatch: pytest.MonkeyPatch, trust_env: bool) -> None:
    async def scene(stage: Stage) -> None:
        async with Scripted(OK) as proxy:
            monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{proxy.port}")
            monkeypatch.setenv("no_proxy", "")
            exchange = await stage.ask()
            assert stage.ear.body(exchange) == b'{"a":1}'
            through, direct = proxy.requests, stage.server.requests
            assert [got.target for got in through] == ([f"{stage.server.url}/v1/x?a=1&b=%20"] if trust_env else [])
            assert len(direct) == (0 if trust_env else 1)

    play(AiohttpTransport, scene, OK, trust_env=trust_env)


def test_reads_are_said_to_have_no_kernel_stamp() -> None:
    async def scene(stage: Stage) -> None:
        exchange = await stage.ask()
        assert exchange.flags & NO_STAMP
        assert [each[1] for each in stage.ear.chunks[exchange.request]] == [0]
        assert stage.transport.statistics["stamps_missing"] == stage.transport.statistics["reads"] == 1

    play(AiohttpTransport, scene, OK)


def test_nothing_is_left_behind_by_a_closed_transport() -> None:
    async def scene(stage: Stage) -> None:
        await stage.ask()
        await stage.transport.close()
        await asyncio.sleep(0)
        assert [task for task in asyncio.all_tasks() if "aiohttp" in repr(task.get_coro())] == []

    play(AiohttpTransport, scene, OK)
