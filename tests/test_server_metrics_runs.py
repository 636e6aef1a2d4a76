"""Runs beside the servers' pages of metrics: what the server counted is what the client saw."""

from __future__ import annotations

import base64
import csv
import http.server
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aiperf.results import open_run
from aiperf_command_simulate.testing import Simulator, running
from program import Done, Program, bytes_of

PAGE = b"# TYPE lamp gauge\nlamp 1\n# TYPE odd bananas\nodd 1\n# TYPE turns_total counter\nturns_total 3\n"
FAMILIES = {
    "vllm": ("vllm:request_success_total", "vllm:prompt_tokens_total", "vllm:generation_tokens_total"),
    "sglang": ("sglang:num_requests_total", "sglang:prompt_tokens_total", "sglang:generation_tokens_total"),
    "trtllm": ("trtllm_request_success_total", "trtllm_prompt_tokens_total", "trtllm_generation_tokens_total"),
    "dynamo": (
        "dynamo_frontend_requests_total", "dynamo_frontend_input_sequence_tokens", "dynamo_frontend_output_tokens_total",
    ),
    "triton": ("nv_inference_request_success", None, None),
}  # fmt: skip
"""Requests, prompt tokens and generated tokens of each engine."""
FILES = tuple(f"server_metrics_export.{ending}" for ending in ("json", "csv", "jsonl", "parquet"))


class _Handler(http.server.BaseHTTPRequestHandler):
    seen: list[str | None]

    def do_GET(self) -> None:
        self.seen.append(self.headers.get("Authorization"))
        self.send_response(200)
        self.send_header("Content-Length", str(len(PAGE)))
        self.end_headers()
        self.wfile.write(PAGE)

    def log_message(self, *arguments: Any) -> None:
        pass


@pytest.fixture
def exporter() -> Iterator[tuple[int, list[str | None]]]:
    """Another page: its port, and the credentials that it was asked with."""
    seen: list[str | None] = []
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"seen": seen}))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_address[1], seen
    server.shutdown()
    server.server_close()


def words(simulator: Simulator, *more: str | float) -> list[str | float]:
    return [
        "profile", "--model", "m", "--url", simulator.url, "--tokenizer", "builtin", "--isl", 12, "--osl", 5, "--ui", "none",
        "--streaming", "--concurrency", 4, "--use-server-token-count", *more,
    ]  # fmt: skip


def total(metrics: dict[str, Any], name: str) -> float:
    """What all series of a family counted in the phase."""
    stats = [series["stats"] for series in metrics[name]["series"]]
    return float(sum(each.get("total", each.get("sum", 0.0)) for each in stats))


def sampled(aiperf: Program, *asked: str | float | Path) -> Done:
    """A good run with samples: on a very busy machine the pages may be read later than a short load, and it runs again."""
    for _ in range(5):
        run = aiperf(*asked)
        assert run.code == 0, run.err
        if "has given no sample" not in (run.artifacts / "logs" / "aiperf.log").read_text():
            break
    return run


@pytest.mark.timing  # the load never waits long for a page, so that a busy machine may read one too late
@pytest.mark.parametrize("engine", FAMILIES)
def test_the_server_counts_what_the_client_saw(tmp_path: Path, engine: str) -> None:
    counted(tmp_path, engine, workers=4 if engine == "vllm" else 1)


@pytest.mark.timing
@pytest.mark.parametrize("workers", [1, 4])
def test_counts_that_come_late_are_of_their_phase(tmp_path: Path, workers: int) -> None:
    counted(tmp_path, "vllm", workers=workers, lag_s=0.05)


@pytest.mark.long
@pytest.mark.timing
@pytest.mark.parametrize("workers", [1, 4])
@pytest.mark.parametrize("engine", sorted(FAMILIES.keys() - {"vllm"}))
def test_late_counts_of_every_engine_are_of_their_phase(tmp_path: Path, engine: str, workers: int) -> None:
    counted(tmp_path, engine, workers=workers, lag_s=0.05)


def counted(tmp_path: Path, engine: str, *, workers: int, lag_s: float = 0.0) -> None:
    """A run with a warmup, whose requests and tokens the server counts as the client does."""
    with running(metrics=engine, metrics_lag_s=lag_s, decode_ms=2, first_token_ms=150) as simulator:
        run = Program(tmp_path, server_metrics=True)(
            *words(simulator, "--request-count", 40, "--warmup-request-count", 10, "--warmup-concurrency", 1),
            "--workers-max", workers, "--collect-server-metrics",
        )  # fmt: skip
    assert run.code == 0, run.err
    document = json.loads((run.artifacts / FILES[0]).read_bytes())
    summary = run.json()
    tokens = [summary[f"total_usage_{name}_tokens"]["avg"] for name in ("prompt", "completion")]
    client = (summary["request_count"]["avg"], *tokens)
    assert client[0] == 40
    for name, seen in zip(FAMILIES[engine], client, strict=True):
        if name is not None:
            assert total(document["metrics"], name) == seen, name
    rows = {row["quantity"]: row for row in summary["reconciliation"]}
    for quantity, name in zip(("requests", "prompt_tokens_usage", "generated_tokens_usage"), FAMILIES[engine], strict=True):
        assert (quantity in rows) == (name is not None)
        if name is not None:
            assert (rows[quantity]["verdict"], rows[quantity]["difference"]) == ("agrees", 0)
    assert "shared" not in summary["tables"]["reconciliation"]["title"] and "Load of the server" in run.out
    requests, (about,) = FAMILIES[engine][0], document["summary"]["endpoint_info"].values()
    if "late_s" not in about:  # else this machine was too busy to read the page before the warmup
        assert requests is not None and total(document["warmup_metrics"], requests) == 10


def test_all_files_agree_with_the_journal(tmp_path: Path) -> None:
    aiperf = Program(tmp_path, server_metrics=True)
    with running(metrics="vllm", decode_ms=2, first_token_ms=150) as simulator:
        run = sampled(aiperf, *words(simulator, "--request-count", 60, "--slice-duration", 0.5),
                      "--server-metrics-formats", "json", "csv", "jsonl", "parquet", "--collect-server-metrics")  # fmt: skip
    assert [name for name in FILES if not (run.artifacts / name).is_file()] == []
    for ending in ("CSV", "JSON", "JSONL", "Parquet"):
        assert f"Server Metrics {ending} Export: " in run.out
    before = {name: (run.artifacts / name).read_bytes() for name in FILES}
    checked = aiperf("validate", run.artifacts)
    assert checked.code == 0, checked.out
    assert all(name in checked.out for name in (FILES[0], FILES[2]))
    assert aiperf("report", run.artifacts).code == 0
    assert {name: (run.artifacts / name).read_bytes() for name in FILES} == before
    document = json.loads(before[FILES[0]])
    with (run.artifacts / FILES[1]).open(newline="") as file:
        rows = [row for row in csv.reader(line for line in file if not line.startswith("#")) if row]
    assert {row[2] for row in rows if row[1] in ("gauge", "counter", "histogram")} == {
        name for name in document["metrics"] if not name.endswith("_info")
    }
    names = {name for line in run.lines(FILES[2]) for name in line["metrics"]}
    assert names == set(document["metrics"]) == {series.name for series in open_run(run.artifacts).telemetry()}
    slices = document["metrics"]["vllm:generation_tokens_total"]["series"][0]["timeslices"]
    generated = total(document["metrics"], "vllm:generation_tokens_total")
    assert sum(each["total"] for each in slices) == pytest.approx(generated)


def test_a_login_stands_in_no_file(tmp_path: Path, shared_simulator: Simulator, exporter: tuple[int, list[str | None]]) -> None:
    port, seen = exporter
    login = base64.b64encode(b"ada:hushhush").decode()
    run = sampled(
        Program(tmp_path, server_metrics=True), *words(shared_simulator, "--request-rate", 20, "--request-count", 40),
        "--server-metrics", f"http://ada:hushhush@127.0.0.1:{port}",
    )  # fmt: skip
    assert set(seen) == {f"Basic {login}"}
    files = [path for path in run.artifacts.rglob("*") if path.is_file()]
    assert [path for path in files if any(text in bytes_of(path) for text in (b"hushhush", login.encode()))] == []
    assert "hushhush" not in run.out + run.err
    metrics = json.loads((run.artifacts / FILES[0]).read_bytes())["metrics"]
    assert [series["endpoint_url"] for series in metrics["turns_total"]["series"]] == [f"http://127.0.0.1:{port}/metrics"]
    assert "odd is left out: its text can't be read" in (run.artifacts / "logs" / "aiperf.log").read_text()


def test_pages_are_not_read_where_the_user_wants_none(tmp_path: Path, shared_simulator: Simulator) -> None:
    run = Program(tmp_path, server_metrics=True)(*words(shared_simulator, "--request-count", 5), "--no-server-metrics")
    assert run.code == 0, run.err
    assert not list(run.artifacts.glob("server_metrics*")) + list((run.artifacts / "journal").glob("telemetry*"))


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        (["--server-metrics", "prometheus-host"], "'prometheus-host' is no address of a page: write HOST:PORT"),
        (["--server-metrics", "a:1", "--no-server-metrics"], "--server-metrics names pages to read, and --no-server-metrics"),
        (["--server-metrics-formats", "xml"], "--server-metrics-formats: 'xml' is not one of json, csv, jsonl, parquet"),
    ],
)  # fmt: skip
def test_what_can_not_be_read_is_refused_before_the_run(tmp_path: Path, more: list[str], sentence: str) -> None:
    run: Done = Program(tmp_path, server_metrics=True)("profile", "--model", "m", "--url", "http://127.0.0.1:9", *more)
    assert run.code != 0
    assert sentence in run.err


def test_a_file_says_which_pages_are_read(
    tmp_path: Path, shared_simulator: Simulator, exporter: tuple[int, list[str | None]]
) -> None:
    port, _ = exporter
    (tmp_path / "run.yaml").write_text(f"""
benchmark:
  models: m
  endpoint: {{url: "{shared_simulator.url}", streaming: true}}
  tokenizer: builtin
  datasets: {{isl: 10, osl: 4}}
  phases: {{type: poisson, rate: 20, requests: 40}}
  serverMetrics: {{urls: ["127.0.0.1:{port}"], formats: [json]}}
""")
    run = sampled(Program(tmp_path, server_metrics=True), "profile", "--config", tmp_path / "run.yaml", "--ui", "none")
    document = json.loads((run.artifacts / FILES[0]).read_bytes())
    assert document["summary"]["endpoints_configured"] == [f"{shared_simulator.url}/metrics", f"http://127.0.0.1:{port}/metrics"]
    assert not (run.artifacts / FILES[1]).exists()
