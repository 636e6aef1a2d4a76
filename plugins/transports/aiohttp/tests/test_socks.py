"""Through SOCKS proxies: microsocks, of the Debian package of that name."""

from __future__ import annotations

import asyncio
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator

import pytest
from aiperf import ConfigError
from aiperf.sdk.plan import TlsPlan
from aiperf.sdk.transport import REFUSED, REUSED, TransportSettings
from aiperf_testing.server import Expect, Send, Step, UntilClosed, answer
from aiperf_testing.transports import Ear, Stage, play
from aiperf_transport_aiohttp import AiohttpTransport, socks

pytest.importorskip("python_socks", reason="needs the extra socks")
MICROSOCKS = shutil.which("microsocks")
OK: list[Step] = [Expect(), Send(answer(b'{"a":1}'))]


@pytest.fixture
def proxy() -> Iterator[Callable[..., int]]:
    """Starts a proxy with these further words; gives its port."""
    if MICROSOCKS is None:
        pytest.skip("microsocks is not installed")
    running: list[subprocess.Popen[bytes]] = []

    def start(*words: str) -> int:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = int(free.getsockname()[1])
        running.append(subprocess.Popen(
            [str(MICROSOCKS), "-i", "127.0.0.1", "-p", str(port), *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ))  # fmt: skip
        until_s = time.monotonic() + 60
        while time.monotonic() < until_s:
            try:
                socket.create_connection(("127.0.0.1", port), 5).close()
                return port
            except OSError:
                time.sleep(0.01)
        raise TimeoutError("microsocks does not listen")

    yield start
    for process in running:
        process.kill()
        process.wait()


@pytest.fixture
def through(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Sets the environment's proxy."""

    def through(url: str) -> None:
        for name in ("http_proxy", "https_proxy", "no_proxy"):
            monkeypatch.delenv(name, raising=False)
            monkeypatch.delenv(name.upper(), raising=False)
        monkeypatch.setenv("all_proxy", url)

    return through


@pytest.mark.parametrize("scheme", ["socks5", "socks5h"])
def test_requests_go_through_the_proxy_on_one_connection(
    scheme: str, proxy: Callable[..., int], through: Callable[[str], None]
) -> None:
    port = proxy()
    through(f"{scheme}://127.0.0.1:{port}")

    async def scene(stage: Stage) -> None:
        first, second = await stage.ask(), await stage.ask()
        assert stage.ear.body(first) == stage.ear.body(second) == b'{"a":1}'
        assert second.flags & REUSED and 0 < first.connected_ns <= first.sent_ns
        (link,) = stage.server.links
        assert len(stage.server.requests) == 2 and link.sock.getpeername()[1] != 0

    play(AiohttpTransport, scene, OK * 2 + [UntilClosed()], trust_env=True)


def test_name_and_password_are_given_to_the_proxy(proxy: Callable[..., int], through: Callable[[str], None]) -> None:
    port = proxy("-u", "me", "-P", "s3cret")

    async def good(stage: Stage) -> None:
        await stage.ask()

    async def bad(stage: Stage) -> None:
        exchange, error = await stage.fail()
        assert error.cause == REFUSED and "s3cret" not in error.message and "wrong" not in error.message
        assert not exchange.sent_ns and stage.server.requests == []

    through(f"socks5://me:s3cret@127.0.0.1:{port}")
    play(AiohttpTransport, good, OK, trust_env=True)
    through(f"socks5://me:wrong@127.0.0.1:{port}")
    play(AiohttpTransport, bad, OK, trust_env=True)


def test_a_server_that_the_proxy_cannot_reach_is_named(proxy: Callable[..., int], through: Callable[[str], None]) -> None:
    through(f"socks5://127.0.0.1:{proxy()}")

    async def scene(stage: Stage) -> None:
        _, error = await stage.fail(url="http://127.0.0.1:9/x")
        assert error.cause == REFUSED and error.message.startswith("127.0.0.1:9: the proxy socks5://127.0.0.1:")

    play(AiohttpTransport, scene, OK, trust_env=True)


def test_a_proxy_that_is_not_there_is_named(through: Callable[[str], None]) -> None:
    through("socks5://127.0.0.1:9")

    async def scene(stage: Stage) -> None:
        _, error = await stage.fail()
        assert error.cause == REFUSED and error.message == "the proxy socks5://127.0.0.1:9: Connection refused"

    play(AiohttpTransport, scene, OK, trust_env=True)


def test_without_the_extra_a_socks_proxy_is_refused(through: Callable[[str], None], monkeypatch: pytest.MonkeyPatch) -> None:
    through("socks5://me:s3cret@127.0.0.1:9")
    monkeypatch.setattr(socks.importlib.util, "find_spec", lambda name: None)

    async def go() -> None:
        settings = TransportSettings(("http://h",), TlsPlan(), trust_env=True)
        await AiohttpTransport(settings, Ear(), asyncio.get_running_loop()).open()

    with pytest.raises(ConfigError) as caught:
        asyncio.run(go())
    assert "aiperf-transport-aiohttp[socks]" in caught.value.message and "s3cret" not in caught.value.message
