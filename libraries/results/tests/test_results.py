"""The reader of finished runs: what it gives of the files of a directory, the reference's too."""

from __future__ import annotations

import gzip
import json
import math
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from aiperf import AiperfError, Ragged
from aiperf.parts.samples import SampleWriter, sample_path
from aiperf.results import open_run
from aiperf.rundir.journal import RunClock, save_run
from aiperf.rundir.store_writer import StoreWriter
from aiperf.sdk.model import Conversation, HttpRequest, Turn
from aiperf.sdk.series import Moment, SourceHeader
from aiperf.sdk.telemetry import Histogram, Point, SeriesKind
from aiperf_results.table import Table
from aiperf_testing.plans import sample_plan, sample_ref

LATENCY = {"unit": "ms", "avg": 2.0, "p99": 3.0}


def record(latency: float | None, *, phase: str = "profiling", error: dict[str, Any] | None = None, **more: Any) -> str:
    metrics = {} if latency is None else {"request_latency": {"value": latency, "unit": "ms"}}
    metrics |= {tag: {"value": value, "unit": "ms"} for tag, value in more.items()}
    line = {"metadata": {"request_start_ns": 5, "conversation_id": "c1", "benchmark_phase": phase}, "metrics": metrics}
    return json.dumps(line if error is None else {**line, "error": error})


@pytest.fixture
def reference(tmp_path: Path) -> Path:
    """A directory as AIPerf 0.13 leaves it."""
    summary = {"schema_version": "1.4", "request_latency": LATENCY, "input_config": {"endpoint": {"type": "chat"}},
               "observation_window": {"unit": "s"}}  # fmt: skip
    (tmp_path / "profile_export_aiperf.json").write_text(json.dumps(summary))
    refused = {"code": 429, "type": "Too Many Requests", "message": "later"}
    lines = [record(9.0, phase="warmup"), record(1.0, inter_chunk_latency=[1.0, 2.0]), record(None, error=refused),
             record(3.0, inter_chunk_latency=[4.0])]  # fmt: skip
    (tmp_path / "profile_export.jsonl").write_text("".join(f"{line}\n" for line in lines))
    return tmp_path


def test_summary_metrics_and_configuration_are_those_of_the_file(reference: Path) -> None:
    run = open_run(reference)
    assert run.number("request_latency", "p99") == 3.0 and run.number("absent") is None
    assert run.metrics == {"request_latency": LATENCY}
    assert run.configuration == {"endpoint": {"type": "chat"}}
    assert (run.ours, run.level, run.marker, run.slices(), run.telemetry()) == (False, None, None, [], [])


def test_a_column_has_the_good_profiling_requests(reference: Path) -> None:
    run = open_run(reference)
    assert run.column("request_latency").tolist() == [1.0, 3.0]
    assert np.isnan(run.column("time_to_first_token")).tolist() == [True, True]


def test_a_request_skipped_for_want_of_context_is_neither_good_nor_failed(reference: Path) -> None:
    skipped = json.loads(record(None, error={"code": 400, "type": "Bad Request", "message": "too long"}))
    skipped["metadata"]["context_overflow_skip"] = True
    with (reference / "profile_export.jsonl").open("a") as file:
        file.write(json.dumps(skipped) + "\n")
    assert len(open_run(reference).requests(failed=True)) == 3


def test_lists_and_failed_requests_are_there_on_request(reference: Path) -> None:
    requests = open_run(reference).requests(failed=True, lists=True)
    assert len(requests) == 3 and "inter_chunk_latency" in requests.names()
    gaps = requests["inter_chunk_latency"]
    assert isinstance(gaps, Ragged) and [gaps.row(i).tolist() for i in range(3)] == [[1.0, 2.0], [], [4.0]]
    assert requests.texts("error_type") == [None, "Too Many Requests", None]
    codes = requests.numbers("error_code").tolist()
    assert codes[1] == 429 and math.isnan(codes[0])
    assert requests.texts("conversation_id") == ["c1"] * 3


def test_arrivals_have_their_outcomes_as_texts(reference: Path) -> None:
    rows = [{"phase": "profiling", "n": 0, "outcome": "completed", "due_ns": 7}, {"n": 1, "outcome": "never_sent"}]
    (reference / "profile_export_arrivals.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    arrivals = open_run(reference).arrivals()
    assert arrivals.texts("outcome") == ["completed", "never_sent"] and arrivals.numbers("due_ns")[0] == 7


def test_a_packed_ledger_is_read_like_a_plain_one(reference: Path) -> None:
    path, line = reference / "profile_export_arrivals.jsonl.gz", b'{"outcome":"completed","due_ns":7}\n'
    path.write_bytes(gzip.compress(line) + gzip.compress(line * 2))
    run = open_run(reference)
    assert run.has("arrivals.jsonl") and run.file("arrivals.jsonl") == path
    assert run.arrivals().numbers("due_ns").tolist() == [7, 7, 7]
    (reference / "profile_export_arrivals.jsonl").write_bytes(line)
    assert len(run.arrivals()) == 1  # what stands there unpacked was unpacked by somebody


@pytest.mark.parametrize("damaged", [gzip.compress(b"{}\n" * 99)[:-9], b"no gzip\n", gzip.compress(b"{}\n") + b"more"])
def test_a_damaged_packed_ledger_is_named(reference: Path, damaged: bytes) -> None:
    path = reference / "profile_export_arrivals.jsonl.gz"
    path.write_bytes(damaged)
    with pytest.raises(AiperfError, match=r"arrivals\.jsonl\.gz can't be read: \S+"):
        open_run(reference).arrivals()


def test_slices_are_those_of_the_file(reference: Path) -> None:
    slices = [{"start_ns": 1, "end_ns": 2, "request_latency": LATENCY}]
    (reference / "profile_export_aiperf_timeslices.json").write_text(json.dumps({"timeslices": slices, "input_config": {}}))
    assert open_run(reference).slices() == slices


def test_older_names_of_gpu_series_are_those_of_today(reference: Path) -> None:
    gpu = {"gpu_index": 0, "gpu_uuid": "GPU-0", "timestamp_ns": 5, "dcgm_url": "http://a/metrics",
           "telemetry_data": {"gpu_power_usage": 203.5, "energy_consumption": 0.5}}  # fmt: skip
    (reference / "gpu_telemetry_export.jsonl").write_text(json.dumps(gpu) + "\n")
    found = {(each.source, each.name) for each in open_run(reference).telemetry()}
    assert found == {("http://a/metrics", "nvidia_power_usage"), ("http://a/metrics", "nvidia_energy_consumption")}


def test_telemetry_of_the_reference_is_series_by_gpu_and_by_url(reference: Path) -> None:
    gpu = {"gpu_index": 0, "gpu_uuid": "GPU-0", "timestamp_ns": 5, "telemetry_source_url": "http://a/metrics",
           "telemetry_data": {"nvidia_power_usage": 203.5}}  # fmt: skip
    (reference / "gpu_telemetry_export.jsonl").write_text(json.dumps(gpu) + "\n")
    buckets = {"0.1": 2, "1.0": 3, "+Inf": 7}
    points = {"q": [{"labels": {"m": "x"}, "value": 3.0}], "h": [{"buckets": buckets, "sum": 4.5, "count": 7}]}
    scrapes = [{"endpoint_url": "http://b/metrics", "timestamp_ns": at, "metrics": points} for at in (6, 8)]
    (reference / "server_metrics_export.jsonl").write_text("".join(json.dumps(scrape) + "\n" for scrape in scrapes))
    power, queue, latency = open_run(reference).telemetry()
    assert (power.name, power.labels["gpu_uuid"], power.values.tolist()) == ("nvidia_power_usage", "GPU-0", [203.5])
    assert (queue.source, queue.labels, queue.at_ns.tolist()) == ("http://b/metrics", {"m": "x"}, [6, 8])
    assert latency.counts is not None and latency.counts.tolist() == [[2, 3, 7], [2, 3, 7]]
    assert (latency.bounds, latency.values.tolist()) == ((0.1, 1.0), [4.5, 4.5])


def test_telemetry_of_a_journal_keeps_units_and_buckets(reference: Path) -> None:
    (reference / "journal").mkdir()
    (reference / "journal" / "run.json").write_text("{}")
    writer = SampleWriter(sample_path(reference / "journal", 0), SourceHeader(sample_ref("telemetry", "load"), 1.0))
    histogram = Histogram((1.0, math.inf), (2, 3), 9.5)
    points = [Point("load", 0.5, SeriesKind.GAUGE, unit="1"), Point("wait", histogram, SeriesKind.HISTOGRAM)]
    writer.add(points, Moment(1, 100, 0, 0))
    writer.close()
    load, wait = open_run(reference).telemetry()
    assert (load.source, load.unit, load.at_ns.tolist(), load.values.tolist()) == ("load", "1", [100], [0.5])
    assert wait.counts is not None and (wait.bounds, wait.counts.tolist()) == ((1.0,), [[2.0, 3.0]])


def test_conversations_have_a_body_for_each_turn_and_model(tmp_path: Path) -> None:
    plan = sample_plan(tmp_path, models=("m", "n"))
    journal = Path(plan.output.journal)
    journal.mkdir()
    save_run(journal, plan, RunClock(0, 0))
    conversation = Conversation("c1", (Turn(("a",)), Turn(("b",))))
    with StoreWriter(journal, 2) as writer:
        writer.add(conversation, [[HttpRequest("/", body) for body in bodies] for bodies in ((b"1", b"2"), (b"3", b"4"))])
    assert list(open_run(tmp_path).conversations()) == [(conversation, [[b"1", b"2"], [b"3", b"4"]])]


def test_names_of_the_files_may_have_a_prefix(reference: Path) -> None:
    (reference / "profile_export_aiperf.json").rename(reference / "my.json")
    (reference / "my.csv").write_text("")
    (reference / "profile_export.jsonl").rename(reference / "my.jsonl")
    run = open_run(str(reference))
    assert run.number("request_latency") == 2.0 and len(run.column("request_latency")) == 2


def test_what_holds_no_results_is_refused(tmp_path: Path) -> None:
    with pytest.raises(AiperfError, match="holds no results: neither profile_export_aiperf"):
        open_run(tmp_path)
    with pytest.raises(AiperfError, match="is not there; results are a directory"):
        open_run(tmp_path / "absent")


def test_a_table_takes_its_columns_one_after_the_other() -> None:
    count = 50_000
    tracemalloc.start()
    try:
        numbers = {f"column {place}": np.arange(count) + float(place) for place in range(10)}
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        table = Table.of(numbers, {}, count)
        more = tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
    assert more < 2 * 8 * count, "two of ten columns"
    assert (len(table), table.numbers("column 7").tolist()) == (count, (np.arange(count) + 7.0).tolist())
    assert len(Table.of({"none": np.empty(0)}, {}, 0).numbers("none")) == 0
