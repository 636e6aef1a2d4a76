"""Pages that a telemetry source fetches: the run's headers go to the tested servers alone, and nothing can be too large."""

from __future__ import annotations

import asyncio
import shutil
import ssl
from collections.abc import Callable, Sequence
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest
from aiperf.sdk.fetch import Fetched, FetchError, Servers
from aiperf.sdk.plan import TargetPlan, TlsPlan
from aiperf.sdk.telemetry import TelemetryContext
from aiperf_testing.server import Certificate, Cut, Expect, Received, Scripted, Send, Step, UntilClosed, answer

KEY = {"Authorization": "Bearer hunter2"}
PAGE: Sequence[Step] = (Expect(), Send(answer(b"up 1", content_type="text/plain")))


def fetched(
    call: Callable[[str], Fetched], *steps: Step, certificate: Certificate | None = None
) -> tuple[Fetched, list[Received]]:
    """What *call* fetches from a server with this script, and the requests of the server."""

    async def go() -> tuple[Fetched, list[Received]]:
        async with Scripted(steps or PAGE, certificate=certificate) as server:
            return await asyncio.to_thread(call, server.url), server.requests

    return asyncio.run(go())


@pytest.mark.parametrize(
    ("tested", "sent"),
    [
        ("{url}", "Bearer hunter2"),
        ("{url}/v1", "Bearer hunter2"),
        ("https://127.0.0.1:{port}", None),
        ("http://localhost:{port}", None),
        ("http://127.0.0.1:9", None),
        ("http://127.0.0.1", None),
    ],
)
def test_only_scheme_host_and_port_of_a_tested_server_get_the_runs_headers(tested: str, sent: str | None) -> None:
    def call(url: str) -> Fetched:
        base = tested.format(url=url, port=url.rpartition(":")[2])
        return TelemetryContext((base,), headers=KEY).fetch(f"{url}/metrics?all=1", 30.0, headers={"X-Own": "1"})

    page, (request,) = fetched(call)
    assert (page.body, page.content_type, page.at_ns > 0) == (b"up 1", "text/plain", True)
    assert (request.target, request.header("Authorization"), request.header("X-Own")) == ("/metrics?all=1", sent, "1")


def test_headers_of_the_source_replace_those_of_the_run() -> None:
    def call(url: str) -> Fetched:
        return TelemetryContext((url,), headers=KEY).fetch(url, 30.0, headers={"authorization": "Basic own"})

    assert fetched(call)[1][0].header("Authorization") == "Basic own"


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    "steps",
    [
        (Send(CHUNKED), *(Send(bytes([each])) for each in b"3\r\nup \r\n"), Send(b"1;x=y\r\n1\r\n0\r\nTrailer: a\r\n\r\n")),
        (Send(b"HTTP/1.0 200 OK\r\n\r\nup"), Send(b" 1"), Cut()),
        (Send(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nContent-Type: no\r\n\r\n"), *PAGE[1:]),
        (Send(answer(b"up 1") + b"HTTP/1.1 500 and more"),),
    ],
)
def test_an_answer_may_come_in_any_form_of_http(steps: Sequence[Step]) -> None:
    page, _ = fetched(lambda url: TelemetryContext().fetch(url, 30.0), Expect(), *steps)
    assert page.body == b"up 1" and page.content_type != "no"


def test_a_header_of_the_source_takes_the_place_of_a_common_one() -> None:
    _, (request,) = fetched(lambda url: TelemetryContext().fetch(url, 30.0, headers={"host": "a", "user-agent": "b"}))
    named = [name.lower() for name, _ in request.headers]
    assert sorted(named) == ["accept-encoding", "connection", "host", "user-agent"]
    assert (request.header("host"), request.header("user-agent")) == ("a", "b")


@pytest.mark.parametrize(("url", "header"), [("http://h/a b", "c"), ("http://h/\u00e4", "c"), ("http://h/", "c\r\nd: e")])
def test_nothing_is_sent_that_http_has_no_place_for(url: str, header: str) -> None:
    with pytest.raises(FetchError, match="must be escaped, or a header has a control character"):
        TelemetryContext().fetch(url, headers={"X": header})


def test_a_redirect_is_an_error_and_is_not_followed() -> None:
    moved = (Expect(), Send(answer(status=302, reason="Found", headers=["Location: http://127.0.0.1:9/"])))
    with pytest.raises(FetchError, match=r"the server answers 302 Found$") as caught:
        fetched(lambda url: TelemetryContext((url,), headers=KEY).fetch(url, 30.0), *moved)
    assert caught.value.status == 302


@pytest.mark.parametrize(
    ("steps", "timeout_s", "why"),
    [
        ((Expect(), Send(answer(b"x" * 101))), 30.0, "the page has more than 100 bytes"),
        ((Expect(), Send(answer(b"x" * 50)[:-10]), Cut()), 30.0, "the page was cut, 10 bytes before its end"),
        ((Expect(), Send(CHUNKED + b"5\r\nup"), Cut()), 30.0, "the page was cut before its end"),
        ((Expect(), Send(CHUNKED + b"up 1")), 30.0, "the server answers no HTTP: "),
        ((Expect(), Send(b"SSH-2.0-OpenSSH\r\n")), 30.0, "the server answers no HTTP: "),
        ((Expect(), Send(b"HTTP/1.1 200 OK\r\nX: " + b"x" * 70_000), UntilClosed()), 30.0, "head has more than 65,536 bytes"),
        ((Expect(), Send(b"HTTP/1.1 101 Switching\r\nUpgrade: h2c\r\nConnection: upgrade\r\n\r\n")), 30.0, "answers 101"),
        ((Expect(), Send(answer(status=404, reason="Not Found"))), 30.0, "the server answers 404 Not Found"),
        ((Expect(), Cut()), 30.0, "Remote end closed connection without response"),
        ((Expect(), UntilClosed()), 0.05, "timed out"),
    ],
)
def test_a_page_that_does_not_come_whole_is_an_error(steps: Sequence[Step], timeout_s: float, why: str) -> None:
    with pytest.raises(FetchError, match=why):
        fetched(lambda url: TelemetryContext().fetch(url, timeout_s, most_bytes=100), *steps)


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("http://127.0.0.1:9/m?token=hunter2", "http://127.0.0.1:9/m?<redacted>: Connection refused"),
        ("file:///etc/passwd", "file:///etc/passwd: it must be http or https"),
        ("http://ada:hunter2@h/", "http://<redacted>@h/: it must be http or https with a host; credentials go into headers"),
        ("http://h:99999/", "http://h:99999/: Port out of range"),
    ],
)
def test_an_error_names_the_url_without_secrets(url: str, said: str) -> None:
    with pytest.raises(FetchError) as caught:
        TelemetryContext(("http://h",), headers=KEY).fetch(url)
    assert caught.value.message.startswith(said) and "hunter2" not in caught.value.message
    assert caught.value.status is None


def test_a_context_shows_no_headers() -> None:
    assert "hunter2" not in repr(TelemetryContext(("http://h",), headers=KEY))


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl to make a certificate")
def test_the_certificates_of_the_run_are_used(tmp_path: Path) -> None:
    certificate = Certificate.made(tmp_path)
    trusting = TelemetryContext(tls=TlsPlan(ca_file=str(certificate.cert)))
    page, _ = fetched(lambda url: trusting.fetch(url, 30.0), certificate=certificate)
    assert page.body == b"up 1"
    with pytest.raises(FetchError, match=r"(?i)certificate.verify.failed"):
        fetched(lambda url: TelemetryContext().fetch(url, 30.0), certificate=certificate)


class Subject(BaseHTTPRequestHandler):
    """Answers with the name in the client's certificate."""

    def do_GET(self) -> None:
        assert isinstance(self.connection, ssl.SSLSocket)
        certificate = self.connection.getpeercert() or {}
        self.send_response(200)
        self.end_headers()
        self.wfile.write(str(certificate["subject"]).encode())

    def log_message(self, *_: object) -> None:
        pass


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl to make a certificate")
def test_the_clients_certificate_reaches_a_server_that_requires_it(tmp_path: Path) -> None:
    made = Certificate.made(tmp_path)
    wanting = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=made.cert)
    wanting.verify_mode = ssl.CERT_REQUIRED
    wanting.load_cert_chain(made.cert, made.key)
    with HTTPServer(("127.0.0.1", 0), Subject) as server:
        server.socket = wanting.wrap_socket(server.socket, server_side=True)
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            url = f"https://127.0.0.1:{server.server_port}/"
            own = TlsPlan(ca_file=str(made.cert), client_cert=str(made.cert), client_key=str(made.key))
            assert b"localhost" in TelemetryContext(tls=own).fetch(url, 30.0).body
            with pytest.raises(FetchError):  # its words depend on which side is faster
                TelemetryContext(tls=TlsPlan(ca_file=str(made.cert))).fetch(url, 30.0)
        finally:
            server.shutdown()
            thread.join()


def test_a_post_to_the_runs_servers_has_their_key_and_no_body() -> None:
    def told(url: str) -> Fetched:
        target = TargetPlan(("m",), (f"{url}/v1/chat/completions?team=a",), "/v1/chat/completions", False, 1)
        servers = Servers(target, KEY)
        servers.post(servers.urls[0], "/reset_prefix_cache", 5)
        return Fetched(b"", "", 0)

    _, (request,) = fetched(told, Expect(), Send(answer(b"", status=204)))
    assert (request.method, request.target) == ("POST", "/reset_prefix_cache?team=a")
    assert (request.header("authorization"), request.header("content-length")) == ("Bearer hunter2", "0")


@pytest.mark.parametrize(("base", "path", "root"), [
    ("http://h/v1", "/v1/chat/completions", "http://h"),
    ("http://h/v1/", "/v1/chat/completions", "http://h"),
    ("http://h/v1/chat/completions", "/v1/chat/completions", "http://h"),
    ("http://h/proxy?key=a", "/v1/embeddings", "http://h/proxy?key=a"),
    ("http://h", "", "http://h"),
])  # fmt: skip
def test_the_servers_root_is_below_no_version(base: str, path: str, root: str) -> None:
    assert Servers(TargetPlan(("m",), (base, base), path, False, 1), {}).urls == (root,)


def test_a_socket_of_this_machine_is_asked_as_a_server_is(tmp_path: Path) -> None:
    path = tmp_path / "run.sock"
    base = f"unix://{path}"

    async def go() -> list[Received]:
        async with Scripted(*[[Expect(), Send(answer(b"up 1"))]] * 3, path=path) as server:
            context = TelemetryContext((base,), headers=KEY)
            assert (await asyncio.to_thread(context.fetch, f"{base}/metrics?all=1", 30.0)).body == b"up 1"
            servers = Servers(TargetPlan(("m",), (base,), "", False, 1), KEY)
            await asyncio.to_thread(servers.post, base, "/reset", 30.0)
            other = Servers(TargetPlan(("m",), ("calls://h:1",), "", False, 1, control_urls=(base,)), KEY)
            assert other.urls == (base,) and (await asyncio.to_thread(other.get, base, "/v1/models", 30.0)).body == b"up 1"
            for foreign in (f"{base}2/metrics", "unix:///elsewhere/metrics"):
                with pytest.raises(FetchError, match="below none of the run's sockets"):
                    context.fetch(foreign, 30.0)
            return server.requests

    requests = asyncio.run(go())
    assert [(got.method, got.target, got.header("Authorization")) for got in requests] == [
        ("GET", "/metrics?all=1", KEY["Authorization"]), ("POST", "/reset", KEY["Authorization"]),
        ("GET", "/v1/models", KEY["Authorization"]),
    ]  # fmt: skip


def test_servers_that_are_no_http_have_none_to_ask() -> None:
    assert Servers(TargetPlan(("m",), ("calls://h:1",), "", False, 1), KEY).urls == ()
