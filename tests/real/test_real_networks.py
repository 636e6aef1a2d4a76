"""Real servers and proxies on other ways than a port of HTTP/1.1: sockets, proxies of HTTP/2 and SOCKS (`make test-real`)."""

from __future__ import annotations

import contextlib
import json
import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from aiperf_command_simulate.testing import running as simulator
from program import Done, Program
from servers import MODELS, Server, UnavailableError, running
from test_real_servers import COUNTERS

REQUESTS = 4
CHAT = "--endpoint-type chat --streaming --isl 12 --extra-inputs ignore_eos:true --extra-inputs temperature:0 --ui none"


@contextlib.contextmanager
def started(name: str, kind: str = "generate", *, local: Path | None = None) -> Iterator[str]:
    """The URL of a server, or of a simulator, while the block lasts."""
    if name == "simulator":
        with simulator(models=["tiny-llama"]) as simulated:
            yield simulated.url
        return
    try:
        context = running(name, kind, local=local)
        server = context.__enter__()
    except UnavailableError as reason:
        pytest.skip(f"{name}: {reason}")
    try:
        yield server.url
    finally:
        context.__exit__(None, None, None)


def chat(aiperf: Program, url: str, *words: str, osl: int = 8) -> Done:
    tokenizer = MODELS / "tiny-llama"
    return aiperf(
        "profile", "--model", "tiny-llama", "--url", url, "--tokenizer", tokenizer if tokenizer.exists() else "builtin",
        "--request-count", REQUESTS, "--concurrency", 2, "--random-seed", 5, "--osl", osl, *CHAT.split(), *words,
    )  # fmt: skip


def whole(done: Done) -> None:
    assert done.code == 0, done.err
    report = done.json()
    assert (report["request_count"]["avg"], "error_request_count" in report) == (REQUESTS, False), report.get("error_summary")
    assert report["time_to_first_token"]["min"] > 0


@pytest.mark.parametrize("name", ["llamacpp", "vllm"])
def test_a_server_on_a_socket_of_this_machine_counts_what_is_reported(name: str, tmp_path: Path) -> None:
    with tempfile.TemporaryDirectory() as short, started(name, local=Path(short) / "s.sock") as url:
        for transport in ("kernel", "aiohttp"):
            server, (_, made) = Server(url, tmp_path), COUNTERS[name]
            before = server.counters().get(made, 0.0)
            folder = tmp_path / transport
            folder.mkdir()
            done = chat(Program(folder), url, "--transport", transport)
            whole(done)
            assert server.counters()[made] - before == done.json()["total_usage_completion_tokens"]["avg"] == 8 * REQUESTS


@pytest.mark.parametrize("name", ["simulator", "llamacpp"])
def test_a_proxy_of_http2_before_a_server_shares_a_connection(name: str, tmp_path: Path) -> None:
    # llama.cpp closes its connection behind each stream without saying so, and nghttpx sends what comes within 1 ms down it.
    apart = ["--request-rate", "8", "--arrival-pattern", "constant"] if name == "llamacpp" else []
    with started(name) as behind, started("nghttpx", behind.rpartition(":")[2]) as url:
        done = chat(Program(tmp_path), url, "--transport", "http2", *apart)
        whole(done)
        assert done.json()["measurement"]["streams_per_connection"] == 100
        early = "--request-cancellation-rate 100 --request-cancellation-delay 0.001 --artifact-dir early"
        cancelled = chat(Program(tmp_path), url, "--transport", "http2", *apart, *early.split(), osl=200)
        summary = json.loads((tmp_path / "early" / "profile_export_aiperf.json").read_text())["error_summary"]
        assert [(row["error_details"]["code"], row["count"]) for row in summary] == [(499, REQUESTS)], cancelled.err


@pytest.mark.skipif(find_spec("python_socks") is None, reason="the extra socks is not installed")
@pytest.mark.parametrize("name", ["simulator", "llamacpp"])
def test_a_server_behind_socks_is_measured(name: str, tmp_path: Path) -> None:
    with started(name) as behind, started("microsocks") as proxy:
        aiperf = Program(tmp_path)
        socks = proxy.replace("http://", "socks5h://")
        aiperf.environment |= {"AIPERF_HTTP_TRUST_ENV": "1", "ALL_PROXY": socks, "NO_PROXY": "", "no_proxy": ""}
        whole(chat(aiperf, behind))
        aiperf.environment["ALL_PROXY"] = "socks5h://127.0.0.1:9"
        done = chat(aiperf, behind)
        assert done.code == 1 and "proxy" in done.err, done.err
