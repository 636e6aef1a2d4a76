"""The guard, by hostile bytes on a socket: hosts, origins, the token, limits, and what answers look like."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import os
import socket
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
from aiohttp import web
from aiperf import AiperfError, ConfigError
from aiperf_pages.assets import STATIC, Assets
from aiperf_pages.guard import POLICY, Guard, Refusal, host_of, is_loopback
from aiperf_pages.ports import address_of, listen
from aiperf_pages.server import Doors, Server, application
from aiperf_pages.tokens import token_of_environment as token_of

TOKEN = "a-token-of-twenty-characters"


async def hello(request: web.Request) -> web.Response:
    return web.json_response({"hello": request.method})


begun: list[str] = []


async def slow(request: web.Request) -> web.Response:
    begun.append(request.path)
    await asyncio.sleep(3600)
    return web.Response()


@contextlib.asynccontextmanager
async def served(bound: str = "127.0.0.1", doors: Doors | None = None, named: str | None = None) -> AsyncIterator[int]:
    """The port of a server that listens on *bound*; *named*: the name that its guard knows."""
    app = application()
    app.router.add_get("/hello", hello)
    app.router.add_post("/hello", hello)
    app.router.add_get("/slow", slow)
    app.router.add_get("/open", hello)
    app.router.add_get("/static/{name:.+}", Assets(STATIC).answer)
    listening = listen(bound, 0)
    server = Server(app, Guard(named or bound, TOKEN, frozenset(("/open",))), listening, doors)
    await server.start()
    try:
        yield listening.getsockname()[1]
    finally:
        await server.stop()


async def answer(port: int, request: bytes) -> tuple[int, dict[str, str], bytes]:
    """Status, headers in lower case, and body of what bytes on a new connection get; 0 where nothing comes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    async with asyncio.timeout(60):
        whole = await reader.read()
    writer.close()
    head, _, body = whole.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    return int(first.split()[1]) if first else 0, headers, body


def of(path: str = "/hello", method: str = "GET", host: str | None = "127.0.0.1", *more: str) -> bytes:
    lines = [f"{method} {path} HTTP/1.1", *([] if host is None else [f"Host: {host}"]), *more, "Connection: close", "", ""]
    return "\r\n".join(lines).encode("latin-1")


def run(check: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(check(), 120))


@pytest.mark.parametrize(("host", "status"), [
    ("127.0.0.1", 200), ("127.0.0.1:1234", 200), ("LOCALHOST:80", 200), ("localhost.", 200), ("[::1]:80", 200),
    ("evil.example", 403), ("evil.example:80", 403), ("127.0.0.1.evil.example", 403), ("user@127.0.0.1", 400), ("", 400),
    (None, 400), ("127.0.0.1:port", 400), ("127.0.0.1/..", 400), ("0.0.0.0", 403),
])  # fmt: skip
def test_only_names_of_this_server_are_answered(host, status):
    async def check():
        async with served() as port:
            code, headers, body = await answer(port, of(host=host))
            assert code == status
            if status == 403:
                assert json.loads(body)["detail"]
                assert headers["content-security-policy"] == POLICY
            assert body

    run(check)


def test_two_hosts_are_refused():
    async def check():
        async with served() as port:
            code, _, _ = await answer(port, of("/hello", "GET", "127.0.0.1", "Host: evil.example"))
            assert code == 400

    run(check)


@pytest.mark.parametrize(("method", "headers", "status"), [
    ("GET", (), 200), ("POST", (), 401), ("POST", ("Authorization: Bearer wrong",), 401),
    ("POST", (f"Authorization: Basic {TOKEN}",), 401), ("POST", (f"Authorization: Bearer {TOKEN}",), 200),
    ("POST", (f"Authorization: bearer {TOKEN}", "Origin: http://127.0.0.1"), 200),
    ("POST", (f"Authorization: Bearer {TOKEN}", "Origin: http://evil.example"), 403),
    ("POST", (f"Authorization: Bearer {TOKEN}", "Origin: null"), 403),
    ("GET", ("Origin: http://127.0.0.1:99",), 403), ("DELETE", (f"Authorization: Bearer {TOKEN}",), 405),
])  # fmt: skip
def test_what_changes_something_needs_the_token_and_this_origin(method, headers, status):
    async def check():
        async with served() as port:
            code, answered, body = await answer(port, of("/hello", method, "127.0.0.1", *headers))
            assert code == status
            assert status in (200, 405) or json.loads(body)["detail"].endswith((".", "TOKEN", "server"))
            assert "access-control-allow-origin" not in answered

    run(check)


def test_beyond_loopback_reading_needs_the_token():
    async def check():
        async with served("0.0.0.0") as port:
            assert (await answer(port, of()))[0] == 401
            assert (await answer(port, of("/open")))[0] == 200
            assert (await answer(port, of("/hello", "GET", "127.0.0.1", f"Authorization: Bearer {TOKEN}")))[0] == 200
            assert (await answer(port, of("/open", "GET", "evil.example")))[0] == 403

    run(check)


@pytest.mark.parametrize("bytes_", [
    b"\x00\x01\x02\r\n\r\n", b"GET / HTTP/9.9\r\nHost: a\r\n\r\n", b"GET /" + b"a" * 20_000 + b" HTTP/1.1\r\n\r\n",
    b"GET /hello HTTP/1.1\r\nHost: 127.0.0.1\r\n" + b"X: " + b"a" * 20_000 + b"\r\n\r\n",
    b"POST /hello HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: -4\r\n\r\n", b"GET /hello HTTP/1.1\nHost:\n 127.0.0.1\n\n",
])  # fmt: skip
def test_garbage_gets_a_client_error_and_harms_nobody(bytes_):
    async def check():
        async with served() as port:
            code, _, _ = await answer(port, bytes_)
            assert code in (0, 400, 403, 414, 431)
            assert (await answer(port, of()))[0] == 200

    run(check)


def test_an_unknown_path_is_answered_with_a_sentence():
    async def check():
        async with served() as port:
            code, headers, body = await answer(port, of("/<script>"))
            assert code == 404
            assert headers["content-type"].startswith("application/json")
            assert headers["x-content-type-options"] == "nosniff"
            assert "openapi.json" in json.loads(body)["detail"]

    run(check)


def test_one_connection_too_many_is_told_so():
    async def check():
        async with served(doors=Doors(most=3)) as port:
            held = [await asyncio.open_connection("127.0.0.1", port) for _ in range(3)]
            for _, writer in held:
                writer.write(of("/slow"))
            code, _, body = await answer(port, of())
            assert code == 503
            assert "3 connections" in json.loads(body)["detail"]
            held[0][1].close()
            while (await answer(port, of()))[0] != 200:
                await asyncio.sleep(0.01)
            for _, writer in held:
                writer.close()

    run(check)


@pytest.mark.parametrize("bytes_", [b"", b"GET /hello HT", of()[:-2]])
def test_a_request_that_never_ends_is_closed(bytes_):
    async def check():
        async with served(doors=Doors(request_s=0.2)) as port:
            code, _, body = await answer(port, bytes_)
            assert code == 408
            assert "0.2 s" in json.loads(body)["detail"]

    run(check)


def test_the_end_waits_for_no_client():
    begun.clear()

    async def check():
        async with served() as port:  # its end is bounded by the whole check's limit
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(of("/slow"))
            while not begun:
                await asyncio.sleep(0.01)
        assert await reader.read() == b""
        writer.close()

    run(check)


def test_assets_are_packed_tagged_and_never_left():
    async def check():
        async with served() as port:
            path = "/static/vendor/uPlot.iife.min.js"
            _, plain, _ = await answer(port, of(path))
            code, packed, body = await answer(port, of(path, "GET", "127.0.0.1", "Accept-Encoding: gzip"))
            assert code == 200
            assert packed["content-encoding"] == "gzip"
            assert len(body) < int(plain["content-length"])
            assert (await answer(port, of(path, "GET", "127.0.0.1", f"If-None-Match: {plain['etag']}")))[0] == 304
            for outside in ("../tokens.py", "%2e%2e/tokens.py", "..%2ftokens.py", "/etc/passwd", "vendor/", "x.js"):
                assert (await answer(port, of(f"/static/{outside}")))[0] == 404

    run(check)


def test_a_taken_port_and_an_unknown_host_are_refused_with_a_way_out():
    taken = listen("127.0.0.1", 0)
    with taken, pytest.raises(AiperfError, match="in use by another program") as caught:
        listen("127.0.0.1", taken.getsockname()[1])
    assert "0 for a free one" in caught.value.lines()[1]
    with pytest.raises(AiperfError, match="no address of this machine"):
        listen("no such host", 0)


def test_an_address_is_a_url():
    with listen("::1", 0) if socket.has_ipv6 else listen("127.0.0.1", 0) as listening:
        bound = "::1" if listening.family is socket.AF_INET6 else "127.0.0.1"
        assert address_of(bound, listening) == f"http://[::1]:{listening.getsockname()[1]}".replace(
            "[::1]", "[::1]" if bound == "::1" else bound
        )


@pytest.mark.parametrize(("host", "loopback"), [
    ("127.0.0.1", True), ("127.8.8.8", True), ("::1", True), ("localhost", True), ("0.0.0.0", False), ("example", False),
])  # fmt: skip
def test_loopback_is_this_machine_alone(host, loopback):
    assert is_loopback(host) is loopback


@pytest.mark.parametrize(("header", "host"), [
    ("a:1", "a"), ("[::1]", "::1"), ("[::1]:2", "::1"), ("A.b.", "a.b"), ("a:x", None), ("a@b", None), ("a:0", None),
])  # fmt: skip
def test_a_host_header_is_read(header, host):
    assert host_of(header) == host


class TestTheToken:
    def test_it_comes_from_the_environment(self, monkeypatch):
        monkeypatch.setenv("AIPERF_API_TOKEN", TOKEN)
        assert token_of() == TOKEN

    @pytest.mark.parametrize("token", ["short", "with a blank in the middle", "täglich-ein-neues-token"])
    def test_a_weak_one_is_refused(self, monkeypatch, token):
        monkeypatch.setenv("AIPERF_API_TOKEN", token)
        with pytest.raises(ConfigError, match="AIPERF_API_TOKEN") as caught:
            token_of()
        assert token not in str(caught.value)

    def test_its_file_is_made_for_the_owner_alone_and_read_again(self, monkeypatch, tmp_path):
        path = tmp_path / "token"
        monkeypatch.delenv("AIPERF_API_TOKEN", raising=False)
        monkeypatch.setenv("AIPERF_API_TOKEN_FILE", str(path))
        token = token_of()
        assert path.stat().st_mode & 0o777 == 0o600
        assert token_of() == token == path.read_text().strip()

    def test_a_file_that_others_may_read_is_refused(self, monkeypatch, tmp_path):
        path = tmp_path / "token"
        path.write_text(TOKEN)
        path.chmod(0o644)
        monkeypatch.setenv("AIPERF_API_TOKEN_FILE", str(path))
        with pytest.raises(ConfigError, match="others may read") as caught:
            token_of()
        assert caught.value.hints == (f"chmod 600 {path}",)

    def test_a_pipe_is_refused(self, monkeypatch, tmp_path):
        path = tmp_path / "pipe"
        os.mkfifo(path, 0o600)
        keep = os.open(path, os.O_RDWR)
        monkeypatch.setenv("AIPERF_API_TOKEN_FILE", str(path))
        with pytest.raises(ConfigError, match="is no file"):
            token_of()
        os.close(keep)


def test_vendored_files_are_those_of_their_hashes():
    pins = json.loads((STATIC / "vendor" / "pins.json").read_text())
    for pin in pins.values():
        for name, digest in pin["files"].values():
            assert hashlib.sha256((STATIC / "vendor" / name).read_bytes()).hexdigest() == digest
    pinned = {name for pin in pins.values() for name, _ in pin["files"].values()}
    assert {path.name for path in (STATIC / "vendor").iterdir()} == pinned | {"pins.json"}


def test_no_file_of_the_pages_names_another_host():
    for path in STATIC.rglob("*"):
        if path.suffix in (".css", ".html") or path.name in ("charts.js", "elements.js"):
            assert "//" not in path.read_text().replace("http://www.w3.org/", ""), path


def test_an_unknown_asset_is_a_refusal():
    with pytest.raises(Refusal) as caught:
        Assets(STATIC).body("nothing.js")
    assert caught.value.status == 404


def test_a_client_that_reads_nothing_is_left():
    async def check():
        doors = Doors(stuck_s=0.3)

        async def much(request: web.Request) -> web.StreamResponse:
            answer = web.StreamResponse()
            await answer.prepare(request)
            while True:
                await answer.write(b"x" * (1 << 16))

        app = application()
        app.router.add_get("/much", much)
        listening = listen("127.0.0.1", 0)
        server = Server(app, Guard("127.0.0.1", TOKEN), listening, doors)
        await server.start()
        own = socket.socket()
        own.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        own.setblocking(False)
        await asyncio.get_running_loop().sock_connect(own, ("127.0.0.1", listening.getsockname()[1]))
        own.send(b"GET /much HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        async with asyncio.timeout(60):
            while not doors.open:
                await asyncio.sleep(0.01)
            while doors.open:
                await asyncio.sleep(0.01)
        own.close()
        await server.stop()

    if not hasattr(socket, "TCP_USER_TIMEOUT"):
        pytest.skip("the system has no TCP_USER_TIMEOUT")
    run(check)


def test_errors_before_a_request_have_the_type_of_the_server():
    async def check():
        async with served(doors=Doors(request_s=0.05, media="application/problem+json")) as port:
            for request, status in ((b"\x00\x01\r\n\r\n", 400), (b"GET / HT", 408)):
                code, headers, body = await answer(port, request)
                assert (code, headers["content-type"].partition(";")[0]) == (status, "application/problem+json")
                assert json.loads(body)["detail"]

    run(check)
