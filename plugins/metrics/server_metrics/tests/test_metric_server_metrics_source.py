"""Targets: which pages are read, how, and what is said where there is none."""

from __future__ import annotations

import base64
import http.server
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from aiperf import Absent, FetchError, TelemetryContext
from aiperf.sdk.telemetry import Reading, TelemetryTarget
from aiperf_metric_server_metrics import ServerMetrics
from aiperf_metric_server_metrics.addresses import given_address
from aiperf_metric_server_metrics.errors import PageError
from aiperf_metric_server_metrics.options import ServerMetricsOptions

PAGE = b"# TYPE jobs_total counter\njobs_total 3\n"


class Site:
    """A server on loopback.  answers: status, content type and body by path.  seen: path and headers of each request."""

    def __init__(self) -> None:
        self.answers: dict[str, tuple[int, str, bytes]] = {"/metrics": (200, "text/plain", PAGE)}
        self.seen: list[tuple[str, dict[str, str]]] = []
        site = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                site.seen.append((self.path, {name.lower(): value for name, value in self.headers.items()}))
                status, kind, body = site.answers.get(self.path, (404, "text/plain", b"no"))
                self.send_response(status)
                self.send_header("Content-Type", kind)
                if 300 <= status < 400:
                    self.send_header("Location", "/elsewhere")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *arguments: Any) -> None:
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def site() -> Iterator[Site]:
    site = Site()
    yield site
    site.close()


@pytest.fixture
def other() -> Iterator[Site]:
    site = Site()
    yield site
    site.close()


def targets(urls: tuple[str, ...], *given: str, **context: Any) -> list[TelemetryTarget]:
    source = ServerMetrics(ServerMetricsOptions(server_metrics=list(given)), TelemetryContext(urls, **context))
    source.start()
    return list(source.targets())


def names(urls: tuple[str, ...], *given: str) -> list[str]:
    return [target.name for target in targets(urls, *given)]


def read(target: TelemetryTarget) -> list[tuple[str, float]]:
    reading = target.sample()
    assert isinstance(reading, Reading)
    return [(point.name, float(point.value)) for point in reading.points]  # type: ignore[arg-type]


def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


# Which pages


def test_the_page_of_each_server_comes_first_then_those_given() -> None:
    urls = ("http://a:8000/v1/chat", "https://b", "http://a:8000")
    assert names(urls, "c:1", "http://d/exporter", "http://e/federate?match[]=x&token=abc", "http://f/x/metrics/") == [
        "http://a:8000/metrics", "https://b/metrics", "http://c:1/metrics", "http://d/exporter/metrics",
        "http://e/federate?match[]=x&token=<redacted>", "http://f/x/metrics",
    ]  # fmt: skip


def test_the_page_is_that_of_the_server_named_for_it() -> None:
    (target,) = targets(("calls://a:8001",), control_urls=("http://a:8000",))
    assert target.name == "http://a:8000/metrics"
    assert names(("unix:///run/a.sock", "calls://a:1")) == ["unix:///run/a.sock/metrics"]


@pytest.mark.parametrize("spelling", ["localhost:8000", "127.0.0.1:8000/", "http://localhost:8000/metrics/", "http://127.0.0.1:8000"])
def test_two_spellings_of_a_page_are_one_target(spelling: str) -> None:
    assert names(("http://127.0.0.1:8000/v1",), spelling) == ["http://127.0.0.1:8000/metrics"]
    assert names(("http://host:80",), "http://HOST") == ["http://host:80/metrics"]


def test_a_port_of_its_own_is_another_page() -> None:
    assert len(names(("http://a:8000",), "http://a:8002")) == 2


@pytest.mark.parametrize("item", ["prometheus-host", "ftp://a:1/x", "http://", ":90", "http://a:port", ""])
def test_an_item_that_is_no_address_has_a_sentence(item: str) -> None:
    with pytest.raises(ValueError, match="is no address of a page: write HOST:PORT"):
        given_address(item)


def test_a_wrong_address_shows_no_password() -> None:
    with pytest.raises(ValueError, match="is no address") as caught:
        given_address("ftp://ada:hush@a:1")
    assert "hush" not in str(caught.value)


def test_servers_that_speak_no_http_have_no_page() -> None:
    with pytest.raises(Absent, match="no server under test speaks HTTP"):
        targets(("grpc://a:1",))


def test_pages_and_no_pages_together_are_refused() -> None:
    options = ServerMetricsOptions(server_metrics=["a:1"], server_metrics_enabled=False)
    typed = {"server_metrics": "--server-metrics", "server_metrics_enabled": "--no-server-metrics"}
    assert options.problems(typed) == [
        "--server-metrics names pages to read, and --no-server-metrics reads none\ndrop one of them"
    ]


@pytest.mark.parametrize(("name", "value"), [("COLLECTION_INTERVAL", "soon"), ("SCRAPE_TIMEOUT", "-1")])
def test_a_wrong_variable_has_a_sentence(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(f"AIPERF_SERVER_METRICS_{name}", value)
    (sentence,) = ServerMetricsOptions().problems({})
    assert sentence.startswith(f"AIPERF_SERVER_METRICS_{name} is {value!r}; it must be a number from ")


def test_the_interval_is_that_of_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    assert targets(("http://a:1",))[0].interval_s == 0.333
    monkeypatch.setenv("AIPERF_SERVER_METRICS_COLLECTION_INTERVAL", "0.05")
    assert targets(("http://a:1",))[0].interval_s == 0.05


# Reading


def test_a_page_is_read_with_the_times_of_its_request(site: Site) -> None:
    (target,) = targets((site.url,))
    reading = target.sample()
    assert isinstance(reading, Reading) and reading.sent_ns is not None and reading.first_byte_ns is not None
    assert 0 < reading.sent_ns <= reading.first_byte_ns
    assert [point.name for point in reading.points] == ["jobs_total"]
    assert site.seen[0][1]["accept"].startswith("text/plain")


def test_the_key_of_the_run_goes_to_its_servers_alone(site: Site, other: Site) -> None:
    for target in targets((site.url,), other.url, headers={"Authorization": "Bearer hush"}):
        target.sample()
    assert site.seen[0][1]["authorization"] == "Bearer hush"
    assert "authorization" not in other.seen[0][1]


def test_a_login_in_an_address_is_sent_and_not_shown(site: Site) -> None:
    (target,) = targets((), f"http://ada:hu%20sh@127.0.0.1:{site.port}")
    target.sample()
    assert site.seen[0][1]["authorization"] == f"Basic {base64.b64encode(b'ada:hu sh').decode()}"
    assert "hu" not in target.name and "@" not in target.name


def test_a_login_for_a_server_under_test_replaces_the_key(site: Site) -> None:
    (target,) = targets((site.url,), f"http://ada:hush@localhost:{site.port}", headers={"Authorization": "Bearer key"})
    target.sample()
    assert site.seen[0][1]["authorization"].startswith("Basic ")


def test_tensorrt_llm_has_its_page_at_another_path(site: Site) -> None:
    site.answers = {"/metrics": (200, "application/json", b"[]"), "/prometheus/metrics": (200, "text/plain", PAGE)}
    (target,) = targets((site.url,))
    assert [read(target), read(target)] == [[("jobs_total", 3)]] * 2
    assert [path for path, _ in site.seen] == ["/metrics", "/prometheus/metrics", "/prometheus/metrics"]


def test_a_server_whose_page_is_no_metrics_is_asked_once(site: Site) -> None:
    site.answers = {"/metrics": (200, "text/html", b"<html>")}
    (target,) = targets((site.url,))
    with pytest.raises(Absent) as caught:
        target.sample()
    assert caught.value.message == f"{site.url}/metrics has no metrics: the page is HTML, and has no metrics"
    (named,) = targets((), site.url)
    with pytest.raises(PageError, match="the page is HTML"):
        named.sample()


@pytest.mark.parametrize(
    ("status", "sentence"),
    [
        (404, "the server answers 404 Not Found"),
        (302, "the server answers 302 Found; redirects are not followed: give the address that it leads to"),
        (401, "the server answers 401 Unauthorized; a login is given as http://USER:PASSWORD@HOST:PORT/metrics"),
    ],
)
def test_a_server_without_a_page_is_absent_unless_it_was_named(site: Site, status: int, sentence: str) -> None:
    site.answers = {"/metrics": (status, "text/plain", b"")}
    (target,) = targets((site.url,))
    with pytest.raises(Absent) as absent:
        target.sample()
    assert absent.value.message == f"{site.url}/metrics has no metrics: {sentence}"
    (named,) = targets((site.url,), site.url)
    with pytest.raises(FetchError) as caught:
        named.sample()
    assert caught.value.message == f"{site.url}/metrics: {sentence}"
    assert [path for path, _ in site.seen] == ["/metrics", "/metrics"], "redirects are not followed"


def test_a_server_that_comes_later_is_asked_again(site: Site) -> None:
    site.answers = {"/metrics": (503, "text/plain", b"loading")}
    (target,) = targets((site.url,))
    with pytest.raises(FetchError, match="503"):
        target.sample()
    site.answers = {"/metrics": (200, "text/plain", PAGE)}
    assert read(target) == [("jobs_total", 3)]
    site.answers = {}
    with pytest.raises(FetchError, match="404"):
        target.sample()


def test_a_closed_port_is_no_end_of_a_target() -> None:
    (target,) = targets((f"http://127.0.0.1:{closed_port()}",))
    with pytest.raises(FetchError):
        target.sample()


def test_what_is_left_out_is_a_line_in_the_log(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    site.answers = {"/metrics": (200, "text/plain", PAGE + b"# TYPE odd bananas\nodd 1\n")}
    (target,) = targets((site.url,))
    assert read(target) == read(target) == [("jobs_total", 3)]
    said = [record.getMessage() for record in caplog.records]
    assert len(said) == 1 and said[0].startswith(f"{site.url}/metrics: odd is left out: its text can't be read")


def test_a_half_body_fails_a_sample_and_nothing_else(site: Site) -> None:
    (target,) = targets((site.url,))
    assert read(target) == [("jobs_total", 3)]
    site.answers = {"/metrics": (200, "text/plain", PAGE[:-3])}
    with pytest.raises(PageError, match="the page was cut"):
        target.sample()
    site.answers = {"/metrics": (200, "text/plain", PAGE.replace(b"3", b"5"))}
    assert read(target) == [("jobs_total", 5)]
