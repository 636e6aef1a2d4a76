"""Real pages of metrics beside a run: every family of a page stands in the files, or is named (`make test-real`)."""

from __future__ import annotations

import http.server
import json
import re
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aiperf_command_simulate.testing import running as simulated
from program import Done, Program
from servers import MODELS, Server, UnavailableError, fetch, running

FILES = tuple(f"server_metrics_export.{ending}" for ending in ("json", "csv", "jsonl", "parquet"))
TEXT = ("--isl", 30, "--osl", 8, "--streaming", "--ui", "none", "-v")
LOAD, LONG_LOAD = ("--concurrency", 2, "--request-count", 30), ("--request-rate", 20, "--request-count", 60)
FORMATS = ("--server-metrics-formats", "json", "csv", "jsonl", "parquet")
FEDERATE = "/federate?match[]=%7B__name__%3D~%22.%2B%22%7D"


def families(page: str) -> set[str]:
    """The families of a page that have a sample, but for the times at which series of another one began."""
    sampled = {line.partition("{")[0].partition(" ")[0] for line in page.splitlines() if line and not line.startswith("#")}
    named = re.findall(r"^# TYPE (\S+) ", page, re.MULTILINE)
    ends = ("", "_total", "_sum", "_count", "_bucket", "_info", "_created", "_gcount", "_gsum")
    known = {name for name in named if any(f"{name}{end}" in sampled for end in ends)}
    return {name for name in known if not name.endswith("_created") or not known & _begun(name)}


def _begun(name: str) -> set[str]:
    stem = name.removesuffix("_created")
    return {stem, f"{stem}_total"}


def judged(run: Done, page: str, url: str) -> dict[str, Any]:
    """The JSON file of a run beside the page, in which each family of the page stands; else the log names it."""
    assert run.code == 0, run.err
    assert [name for name in FILES if not (run.artifacts / name).is_file()] == []
    document: dict[str, Any] = json.loads((run.artifacts / FILES[0]).read_bytes())
    metrics = document["metrics"]
    known = {name for name, metric in metrics.items() if any(each["endpoint_url"] == url for each in metric["series"])}
    assert known, metrics.keys()
    log = (run.artifacts / "logs" / "aiperf.log").read_text() + run.err
    ends = ("", "_total", "_info", "_sum")  # of summaries, quantiles may be NaN
    lacking = {name for name in families(page) if not known & {f"{name}{end}" for end in ends} and name not in log}
    assert lacking == set()
    return document


def beside(tmp_path: Path, url: str) -> Done:
    """A run against the simulator, with the page at *url*."""
    with simulated(decode_ms=2, first_token_ms=20) as simulator:
        return Program(tmp_path, server_metrics=True)(
            "profile", "-m", "m", "-u", simulator.url, "--tokenizer", "builtin", *TEXT, *LONG_LOAD,
            "--server-metrics", url, *FORMATS,
        )  # fmt: skip


@pytest.fixture
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    context = running(*request.param)
    try:
        started = context.__enter__()
    except UnavailableError as reason:
        pytest.skip(f"{request.param[0]}: {reason}")
    yield started
    context.__exit__(None, None, None)


@pytest.mark.parametrize(
    ("server", "path"), [(("node", ""), "/metrics"), (("prometheus", ""), "/metrics"), (("prometheus", ""), FEDERATE)],
    indirect=["server"], ids=["node", "prometheus", "federate"],
)  # fmt: skip
def test_pages_of_prometheus_and_its_exporter_are_whole_in_all_files(server: Server, path: str, tmp_path: Path) -> None:
    if "prometheus_build_info" in fetch(f"{server.url}/metrics"):
        time.sleep(4)  # it reads itself once a second, and has all families then
    url = f"{server.url}{path}"
    document = judged(beside(tmp_path, url), fetch(url), url)
    assert len(document["metrics"]) > 40


def test_openmetrics_of_the_python_client_are_whole_in_all_files(tmp_path: Path) -> None:
    client = pytest.importorskip("prometheus_client")
    openmetrics = pytest.importorskip("prometheus_client.openmetrics.exposition")
    registry = client.CollectorRegistry()
    client.Counter("turns", "Turns.", ["hand"], registry=registry).labels("left").inc(3)
    client.Histogram("wait_seconds", "Wait.", registry=registry).observe(0.3)
    client.Info("build", "Build.", registry=registry).info({"version": "7"})
    client.Enum("state", "State.", states=["up", "down"], registry=registry).state("up")
    client.Summary("size_bytes", "Size.", registry=registry).observe(5)
    page: bytes = openmetrics.generate_latest(registry)

    class Page(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", openmetrics.CONTENT_TYPE_LATEST)
            self.send_header("Content-Length", str(len(page)))
            self.end_headers()
            self.wfile.write(page)

        def log_message(self, *arguments: Any) -> None:
            pass

    httpd = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page)
    threading.Thread(target=httpd.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{httpd.server_address[1]}/metrics"
    judged(beside(tmp_path, url), page.decode(), url)
    httpd.shutdown()
    httpd.server_close()


@pytest.mark.parametrize("server", [("triton", "")], indirect=True, ids=["triton"])
def test_triton_says_what_it_served(server: Server, tmp_path: Path) -> None:
    port = int(server.url.rpartition(":")[2])
    metrics = f"http://127.0.0.1:{port + 2}/metrics"
    run = Program(tmp_path, server_metrics=True)(
        "profile", "-m", "echo", "-u", server.url, "--endpoint-type", "generate", "--endpoint",
        "/v2/models/echo/generate_stream", "--tokenizer", "builtin", *TEXT, *LOAD, "--server-metrics", metrics, *FORMATS,
    )  # fmt: skip
    judged(run, fetch(metrics), metrics)
    rows = {row["quantity"]: row for row in run.json()["reconciliation"]}
    assert (rows["requests"]["server_estimate"], rows["requests"]["verdict"]) == (30, "agrees")


@pytest.mark.parametrize("server", [("vllm", "generate")], indirect=True, ids=["vllm"])
def test_vllm_counts_what_the_client_saw(server: Server, tmp_path: Path) -> None:
    run = Program(tmp_path, server_metrics=True)(
        "profile", "-m", "tiny-llama", "-u", server.url, "--endpoint-type", "chat", "--tokenizer", MODELS / "tiny-llama",
        *TEXT, *LOAD, "--extra-inputs", "ignore_eos:true", "--warmup-request-count", 4, *FORMATS,
    )  # fmt: skip
    judged(run, fetch(f"{server.url}/metrics"), f"{server.url}/metrics")
    rows = {row["quantity"]: row for row in run.json()["reconciliation"]}
    for quantity in ("requests", "prompt_tokens_usage", "generated_tokens_usage"):
        assert (rows[quantity]["difference"], rows[quantity]["verdict"]) == (0, "agrees"), rows[quantity]
    for latency in ("time_to_first_token_p50", "request_latency_p50"):
        assert rows[latency]["client"] > 0 and rows[latency]["server_high"] > rows[latency]["server_low"]
    assert "What the server says beside what the client saw" in run.out
