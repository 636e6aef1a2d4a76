"""Whole runs that stream their metrics to a collector."""

import json

import pytest
from aiperf_command_simulate.testing import Simulator, running
from aiperf_exporter_otel.testing import Collector, values
from program import Done, Program


def profile(aiperf: Program, simulator: Simulator, *words: str) -> Done:
    return aiperf(
        "profile", "--model", "m", "--url", simulator.url, "--streaming", "--tokenizer", "builtin", "--isl", 10, "--osl", 4,
        "--request-count", 40, "--warmup-request-count", 4, "--concurrency", 4, "--ui", "none", *words,
    )  # fmt: skip


def sent(collector: Collector, name: str) -> dict[str, float]:
    """The value of a counter, or the number of a histogram's observations, by phase."""
    metric = collector.metrics()[name]
    found: dict[str, float] = {}
    for point in metric.histogram.data_points if metric.HasField("histogram") else metric.sum.data_points:
        phase = values(point.attributes)["aiperf.benchmark_phase"]
        number = point.count if metric.HasField("histogram") else point.as_int or point.as_double
        found[phase] = found.get(phase, 0) + number
    return found


def test_a_collector_gets_what_the_files_have(aiperf: Program) -> None:
    collector = Collector()
    aiperf.environment |= {"AIPERF_WORKERS": "2", "AIPERF_RECORD_PROCESSOR_SCALE_FACTOR": "1",
                           "OTEL_EXPORTER_OTLP_HEADERS": "x-token=key-of-the-collector"}  # fmt: skip
    with running(first_token_ms=2, decode_ms=1, decode_batch_us=0) as simulator:
        done = profile(
            aiperf, simulator, "--otel-url", f"127.0.0.1:{collector.port}", "--otel-resource-attributes", "team=a",
            "--request-cancellation-rate", "20", "--request-cancellation-delay", "0.001",
        )  # fmt: skip
    assert done.code == 0, done.err
    lines = done.lines("profile_export.jsonl")
    by_phase = {kind: [line for line in lines if line["metadata"]["phase_kind"] == kind] for kind in ("warmup", "profiling")}
    assert {*collector.paths} == {"/v1/metrics"}
    assert collector.resource["aiperf.benchmark.id"] == done.json()["benchmark_id"] and collector.resource["team"] == "a"
    duration = sent(collector, "gen_ai.client.operation.duration")
    assert duration == {kind: sum("request_latency" in line["metrics"] for line in found) for kind, found in by_phase.items()}
    gaps = [gap for line in lines for gap in line["metrics"].get("inter_chunk_latency", {}).get("value", [])]
    assert sum(sent(collector, "aiperf.inter_chunk_latency").values()) == len(gaps)
    points = collector.metrics()["aiperf.inter_chunk_latency"].histogram.data_points
    assert sum(point.sum for point in points) == pytest.approx(sum(gaps), rel=1e-6)
    cancelled = sum(line["metadata"]["was_cancelled"] for line in lines)
    assert cancelled and sum(sent(collector, "aiperf.timing.requests.cancelled").values()) == cancelled
    assert sent(collector, "aiperf.timing.requests.sent") == {"warmup": 4, "profiling": 40}
    assert sum(sent(collector, "aiperf.timing.requests.in_flight").values()) == 0
    timing = {name.removeprefix("aiperf.timing.") for name in collector.metrics() if name.startswith("aiperf.timing.")}
    assert timing == {
        "requests.sent", "requests.completed", "requests.cancelled", "requests.errors", "requests.in_flight",
        "phase.elapsed_sec", "phase.timeout_triggered",
    }  # fmt: skip
    workers = {values(point.attributes)["aiperf.worker.id"] for point in points}
    assert workers == {"worker-0", "worker-1"}
    assert all(headers["x-token"] == "key-of-the-collector" for headers in collector.headers)
    texts = [done.out, done.err, *(path.read_bytes().decode("utf-8", "replace") for path in done.artifacts.rglob("*.*"))]
    assert not any("key-of-the-collector" in text for text in texts)
    again = aiperf("report", done.artifacts)
    assert again.code == 0 and len(collector.requests) == len(collector.headers)
    collector.close()


@pytest.mark.parametrize("kind", ["absent", "silent", "refusing"])
def test_a_collector_that_takes_nothing_leaves_a_run_as_it_is(aiperf: Program, kind: str) -> None:
    collector = Collector(403 if kind == "refusing" else 200, silent=kind == "silent")
    aiperf.environment |= {"AIPERF_OTEL_REQUEST_TIMEOUT_SECONDS": "1", "AIPERF_OTEL_FLUSH_INTERVAL_SECONDS": "0.1"}
    port = 9 if kind == "absent" else collector.port
    with running(first_token_ms=2, decode_ms=1, decode_batch_us=0) as simulator:
        done = profile(aiperf, simulator, "--otel-url", f"http://127.0.0.1:{port}")
        assert len(simulator.truth()["requests"]) == 44
    collector.close()
    assert done.code == 0, done.err
    assert done.json()["measurement"]["arrivals"]["completed"] == 40
    (told,) = [each for each in done.json()["warnings"] if "the metrics of the run have not all arrived" in each]
    assert told.startswith(f"--otel-url http://127.0.0.1:{port}/v1/metrics: ")
    assert json.loads((done.artifacts / ".aiperf_results_ready.json").read_text())["partial"] is False
