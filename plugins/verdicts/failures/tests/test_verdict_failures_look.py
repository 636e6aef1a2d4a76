"""What a server has instead of the path or the model that it lacks: judged by what it is asked."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from aiperf import ErrorDetails
from aiperf.sdk.descriptor import Descriptor, PluginRef
from aiperf.sdk.fetch import Servers
from aiperf.sdk.verdict import ErrorSeen, Look
from aiperf.testing import sample_evidence
from aiperf_verdict_failures import Failures
from msgspec.structs import replace

KEY = {"Authorization": "Bearer key-of-eight"}
TYPES = {
    "chat": {"path": "/v1/chat/completions"}, "a_embeddings": {"path": "/v1/embeddings"}, "completions": {"path":
    "/v1/completions"}, "embeddings": {"path": "/v1/embeddings"}, "raw": {}, "triton": {"path": "/v2/models/{model}/generate",
    "streaming_path": "/v2/models/{model}/generate_stream"},
}  # fmt: skip


@contextmanager
def serving(pages: Mapping[str, int], other: int = 404, models: bytes = b"") -> Iterator[tuple[str, list[str]]]:
    """A server with these statuses by path; its URL, and what it was asked with which key."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(f"{self.path} {self.headers['Authorization']}")
            body = models if self.path.endswith("/v1/models") else b"{}"
            self.send_response(200 if models and body is models else pages.get(self.path, other))
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", asked
        finally:
            server.shutdown()
            thread.join()


def told(base: str, own: str, cause: str = "no_route", **target: Any) -> str:
    """The sentence of a run with the endpoint type *own*, without the server's address."""
    error = ErrorDetails("" if cause == "no_route" else "unknown model", "Not Found", 404)
    evidence = sample_evidence(errors=(ErrorSeen(error, 5, 1e6),))
    path = TYPES[own].get("path", "/").replace("{model}", "m")
    ref = PluginRef("endpoints", own, "acme:Nothing", "acme", "1")
    plan = evidence.plan.replacing(urls=(base,), path=target.pop("path", path), models=("m",), endpoint=ref, **target)
    rows = tuple(Descriptor("endpoints", name, "acme:Nothing", "acme", "1", capabilities=has) for name, has in TYPES.items())
    looks = Failures().look(Look((cause,), plan, Servers(plan.target, KEY), rows))
    (finding,) = Failures().judge(replace(evidence, plan=plan, looks=looks))
    return finding.sentence.replace(base.partition("/api")[0], "URL")


@pytest.mark.parametrize(
    ("own", "pages", "end"),
    [
        ("embeddings", {"/v1/chat/completions": 405},
            "at /v1/embeddings (404), and answers at /v1/chat/completions: use --endpoint-type chat"),
        ("chat", {"/v1/embeddings": 401}, "(404), and answers at /v1/embeddings: use --endpoint-type embeddings"),
        ("chat", {"/v1/completions": 422}, "(404), and answers at /v1/completions: use --endpoint-type completions"),
        ("chat", {"/v2/models/m/generate": 405}, "answers at /v2/models/m/generate: use --endpoint-type triton"),
        ("raw", {"/v1/completions": 405, "/v1/chat/completions": 405},
            "answers at /v1/chat/completions and /v1/completions: use --endpoint-type chat or completions"),
    ],
)  # fmt: skip
def test_the_endpoint_type_that_fits_is_named(own: str, pages: dict[str, int], end: str) -> None:
    with serving(pages) as (url, asked):
        assert told(url, own).endswith(end)
    assert {each.rpartition("Bearer ")[2] for each in asked} == {"key-of-eight"}
    paths = [each.partition(" ")[0] for each in asked]
    assert len(paths) == len(set(paths)) <= 7, "each path once"


def test_a_wrong_base_address_is_corrected() -> None:
    with serving({"/v1/chat/completions": 405, "/v1/completions": 405}) as (url, _):
        end = "nothing at /api/v1/chat/completions (404), and answers at /v1/chat/completions: use -u URL"
        assert told(f"{url}/api", "chat").endswith(end)
        end = "answers at /v1/chat/completions and /v1/completions: use -u URL --endpoint-type chat or completions"
        assert told(f"{url}/api", "embeddings").endswith(end)


def test_a_wrong_path_is_dropped() -> None:
    with serving({"/v1/chat/completions": 405}) as (url, _):
        end = "nothing at /v1/chatt (404), and answers at /v1/chat/completions: use it without --endpoint"
        assert told(url, "chat", path="/v1/chatt", path_given=True).endswith(end)
        assert told(url, "embeddings", path="/v1/x", path_given=True).endswith("--endpoint-type chat, without --endpoint")


@pytest.mark.parametrize("other", [200, 401, 405, 500])
def test_a_server_that_answers_every_path_alike_tells_nothing(other: int) -> None:
    with serving({"/v1/chat/completions": 405}, other) as (url, asked):
        assert "--endpoint gives another path" in told(url, "embeddings")
    assert len(asked) == 2, "a path that is nowhere, and the models"


@pytest.mark.parametrize(
    ("cause", "models", "end"),
    [
        ("no_route", b'{"data": [{"id": "llama"}, {"id": "qwen\\n"}]}', "another path; at /v1/models it lists llama and qwen "),
        ("unknown_model", b'{"data": [{"id": "llama"}]}', "has no model m: name one of its own with -m: llama"),
        ("unknown_model", b'{"data": [%s]}' % b", ".join(b'{"id": "m%d"}' % n for n in range(13)), "m8, m9 and 3 more"),
        ("unknown_model", b"[1]", "list theirs at /v1/models; it says: unknown model"),
        ("unknown_model", b"", "list theirs at /v1/models; it says: unknown model"),
    ],
)
def test_the_models_of_the_server_are_named(cause: str, models: bytes, end: str) -> None:
    with serving({}, models=models) as (url, _):
        assert told(url, "chat", cause).endswith(end)


def test_another_cause_asks_nobody() -> None:
    with serving({}) as (url, asked):
        evidence = sample_evidence()
        plan = evidence.plan.replacing(urls=(url,))
        assert Failures().look(Look(("fails", "timed_out"), plan, Servers(plan.target, KEY), ())) == {}
    assert asked == []
