"""The servers' metrics in files: names, keys and columns of the reference."""

from __future__ import annotations

import csv
import io
import json
import math
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from aiperf import Histogram, Point, SeriesKind, Target
from aiperf.parts.samples import SampleWriter, sample_path
from aiperf.sdk.descriptor import PluginRef
from aiperf.sdk.series import Moment, SourceHeader, TargetHeader
from aiperf.sdk.summary import PhaseSummary, SeriesSummary, Slice, SourceSummary, Summary, TargetSummary
from aiperf.testing import sample_summary
from aiperf_exporter_server_metrics import ServerMetricsCsv, ServerMetricsJson, ServerMetricsLines
from aiperf_exporter_server_metrics.contract import CsvContract, JsonContract, LinesContract
from aiperf_exporter_server_metrics.options import FORMATS, FileOptions
from aiperf_exporter_server_metrics.tables import label_columns
from msgspec.structs import replace

A, B = "http://a:8000/metrics", "http://b:9/other"
OPTIONS = FileOptions(server_metrics_formats=list(FORMATS))
PERCENTILES = ("p1", "p5", "p10", "p25", "p50", "p75", "p90", "p95", "p99")
LEVEL = {"avg": 0.25, "min": 0.0, "max": 1.0, "std": 0.1, **dict.fromkeys(PERCENTILES, 0.5), "count": 9.0}


def series(name: str, kind: str, stats: dict[str, float], *, phase: int = 1, target: str = A, **more: Any) -> SeriesSummary:
    unit, labels = more.pop("unit", ""), more.pop("labels", {})
    return SeriesSummary("server_metrics", phase, name, kind, unit, labels, f"About {name}", stats, target=target, **more)


def histogram(count: float, *, phase: int = 1) -> SeriesSummary:
    estimates = {f"{name}_estimate": 0.4 for name in PERCENTILES} | {"p50_low": 0.1, "p50_high": 0.5, "p99_low": 0.5}
    stats = {"count": count, "sum": 2 * count, "avg": 2.0, "rate": count / 4}
    buckets = {"0.5": 1.0, "+Inf": count}
    return series("wait_seconds", "histogram", stats, phase=phase, unit="s", buckets=buckets, estimates=estimates)


def counter(total: float, labels: dict[str, str], *, phase: int = 1, **more: Any) -> SeriesSummary:
    stats = {"total": total, "rate": total / 4, "count": 5.0}
    return series("jobs_total", "counter", stats, phase=phase, labels=labels, **more)


SLICES = tuple(Slice(each * 10, each * 10 + 10, {}, complete=each < 2) for each in range(3))
SOURCE = SourceSummary(
    "server_metrics", "aiperf-metric-server-metrics", "0.1.0", 0.333, 20, 1, 2,
    series=(
        counter(3.0, {"reason": "stop"}), counter(1.0, {"reason": "length"}), counter(9.0, {}, phase=0),
        counter(2.0, {"reason": "stop"}, target=B),
        series("level", "gauge", LEVEL, labels={"model": "m", "engine": "0"}, unit="ratio"), histogram(8.0),
        series("build_info", "info", {"count": 9.0}, labels={"version": "1", "os": "linux"}),
        series("size", "summary", LEVEL, labels={"quantile": "0.5"}),
    ),
    slices=tuple((counter(float(each + 1), {"reason": "stop"}), histogram(float(each))) for each in range(3)),
    targets=(
        TargetSummary(
            A, 0.333, 19, 1, 2, 7, 1_000_000_000, 5_000_000_000, 1_000_000_000, 4_000_000_000, 2.5, 500.0, 400.0, "odd",
            {1: 0.5}, (1,),
        ),
        TargetSummary(B, 0.333, 0, 4),
    ),
)  # fmt: skip


def summary(*sources: SourceSummary) -> Summary:
    phases = (PhaseSummary("warmup", "warmup", 0, 5, 10, {}), PhaseSummary("profiling", "profiling", 1, 10, 40, {}))
    return replace(sample_summary(), telemetry=sources, phases=phases, slices=SLICES)


def document(tmp_path: Path, *sources: SourceSummary) -> dict[str, Any]:
    (artifact,) = ServerMetricsJson(Target(tmp_path), OPTIONS).export(summary(*sources))
    content: dict[str, Any] = json.loads(artifact.path.read_bytes())
    return content


def schema(name: str) -> Any:
    folder = Path(__file__).parents[1] / "src" / "aiperf_exporter_server_metrics"
    return jsonschema.Draft202012Validator(json.loads((folder / name).read_bytes())).validate


class TestJsonKeepsTheContract(JsonContract):
    pass


class TestCsvKeepsTheContract(CsvContract):
    pass


class TestLinesKeepTheContract(LinesContract):
    pass


def test_json_has_the_keys_of_the_reference_in_its_order(tmp_path: Path) -> None:
    content = document(tmp_path, SOURCE)
    assert list(content) == [
        "schema_version", "aiperf_version", "benchmark_id", "summary", "metrics_phase", "metrics", "warmup_metrics",
        "input_config",
    ]  # fmt: skip
    assert list(content["metrics"]) == ["build_info", "jobs_total", "level", "size", "wait_seconds"]
    assert content["metrics"]["level"] == {
        "type": "gauge", "description": "About level", "unit": "ratio",
        "series": [{"endpoint_url": A, "labels": {"model": "m", "engine": "0"},
                    "stats": {name: value for name, value in LEVEL.items() if name != "count"}}],
    }  # fmt: skip
    assert list(content["warmup_metrics"]) == ["jobs_total"]
    assert (content["schema_version"], content["metrics_phase"]) == ("1.1", "profiling")
    schema("server_metrics.schema.json")(content)


def test_json_says_how_each_page_was_read(tmp_path: Path) -> None:
    about = document(tmp_path, SOURCE)["summary"]
    assert (about["endpoints_configured"], about["endpoints_successful"]) == ([A, B], [A])
    assert about["phase_time_ranges"]["profiling"] == {"start_ns": 10, "end_ns": 40}
    info = about["endpoint_info"][A]
    assert (info["total_fetches"], info["unique_updates"], info["duration_seconds"]) == (20, 7, 4.0)
    assert (info["late_s"], info["partial_phases"], info["last_error"]) == ({"1": 0.5}, [1], "odd")
    assert about["endpoint_info"][B] == {
        "total_fetches": 4, "unique_updates": 0, "failed_fetches": 4, "missed_fetches": 0,
    }  # fmt: skip


def test_json_has_counters_with_the_spread_of_their_slices(tmp_path: Path) -> None:
    length, stop, other = document(tmp_path, SOURCE)["metrics"]["jobs_total"]["series"]
    assert length["stats"] == {"total": 1.0, "rate": 0.25}
    assert stop["stats"] == {
        "total": 3.0, "rate": 0.75, "rate_avg": 0.375, "rate_min": 0.25, "rate_max": 0.5, "rate_std": pytest.approx(0.17677669),
    }  # fmt: skip
    assert stop["timeslices"] == [
        {"start_ns": 0, "end_ns": 10, "total": 1.0, "rate": 0.25}, {"start_ns": 10, "end_ns": 20, "total": 2.0, "rate": 0.5},
        {"start_ns": 20, "end_ns": 30, "is_complete": False, "total": 3.0, "rate": 0.75},
    ]  # fmt: skip
    assert (other["endpoint_url"], "timeslices" in other) == (B, False)


def test_json_has_histograms_with_estimates_and_edges(tmp_path: Path) -> None:
    (wait,) = document(tmp_path, SOURCE)["metrics"]["wait_seconds"]["series"]
    assert list(wait["stats"])[:5] == ["count", "count_rate", "sum", "sum_rate", "avg"]
    assert {name: wait["stats"][name] for name in ("count_rate", "sum_rate", "p99_estimate", "p50_high")} == {
        "count_rate": 2.0, "sum_rate": 4.0, "p99_estimate": 0.4, "p50_high": 0.5,
    }  # fmt: skip
    assert "p99_high" not in wait["stats"]
    assert wait["buckets"] == {"0.5": 1.0, "+Inf": 8.0}
    assert wait["timeslices"][1] == {
        "start_ns": 10, "end_ns": 20, "count": 1.0, "sum": 2.0, "avg": 2.0, "buckets": {"0.5": 1.0, "+Inf": 1.0},
    }  # fmt: skip


def test_two_types_of_one_name_are_both_there(tmp_path: Path) -> None:
    both = replace(SOURCE, series=(series("x", "counter", {"total": 1.0}), series("x", "gauge", LEVEL, target=B)), slices=())
    found = document(tmp_path, both)["metrics"]
    assert {name: each["type"] for name, each in found.items()} == {"x": "counter", "x (gauge)": "gauge"}


def tables(tmp_path: Path) -> tuple[list[str], list[list[list[str]]]]:
    """The comment lines, and the rows of each table."""
    (artifact,) = ServerMetricsCsv(Target(tmp_path), OPTIONS).export(summary(SOURCE))
    text = artifact.path.read_bytes().decode()
    comment, found = text.split("\n")[:6], list[list[list[str]]]([[]])
    for row in csv.reader(io.StringIO(text.split("\n", 6)[6], newline="")):
        if row:
            found[-1].append(row)
        else:
            found.append([])
    return comment, found


def test_csv_has_a_table_for_each_type(tmp_path: Path) -> None:
    comment, (gauges, counters, histograms, infos) = tables(tmp_path)
    assert comment[0] == "# AIPerf Server Metrics Export (CSV)"
    assert [line.partition(":")[0] for line in comment[1:4]] == ["# aiperf_version", "# schema_version", "# benchmark_id"]
    assert comment[5] == "#"
    first = ["Endpoint", "Type", "Metric", "Unit"]
    assert gauges[0] == [*first, "avg", "min", "max", "std", *PERCENTILES, "engine", "model", "quantile", "Description"]
    rates = ["rate", "rate_avg", "rate_min", "rate_max", "rate_std"]
    assert counters[0] == [*first, "total", *rates, "reason", "Description"]
    assert counters[1][:6] == ["a:8000", "counter", "jobs_total", "", "1", "0.25"]
    assert [row[0] for row in counters[1:]] == ["a:8000", "a:8000", "b:9/other"]
    assert histograms[0][4:9] == ["count", "count_rate", "sum", "sum_rate", "avg"]
    assert histograms[0][-6:] == ["Description", "buckets", "p50_low", "p50_high", "p99_low", "p99_high"]
    assert histograms[1][-5:] == ["0.5=1;+Inf=8", "0.1", "0.5", "0.5", ""]
    assert infos == [
        ["Endpoint", "Metric", "Key", "Value", "Description"],
        ["a:8000", "build_info", "os", "linux", "About build_info"],
        ["a:8000", "build_info", "version", "1", "About build_info"],
    ]  # fmt: skip


def test_comment_lines_and_rows_end_as_in_the_reference(tmp_path: Path) -> None:
    (artifact,) = ServerMetricsCsv(Target(tmp_path), OPTIONS).export(summary(SOURCE))
    lines = artifact.path.read_bytes().split(b"\n")
    assert [line.endswith(b"\r") for line in lines[:6]] == [False] * 6
    assert all(line.endswith(b"\r") for line in lines[6:-1])


def test_labels_that_occur_together_stand_together() -> None:
    from aiperf_exporter_server_metrics.families import FamilySeries, MetricFamily

    def family(name: str, *labels: str) -> MetricFamily:
        return MetricFamily(name, "gauge", "", "", (FamilySeries(A, dict.fromkeys(labels, "x"), {}),))

    known = [family("one", "z", "model", "alone"), family("two", "model", "z"), family("three", "cpu", "mode")]
    assert label_columns(known) == ["alone", "model", "z", "cpu", "mode"]


def test_lines_are_the_readings_with_a_change(tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    journal.mkdir()
    ref = PluginRef("telemetry", "server_metrics", "m:S", "aiperf-metric-server-metrics", "0.1.0")
    header = SourceHeader(ref, 0.3, (TargetHeader(A, 0.3), TargetHeader(B, 0.3)))
    writer = SampleWriter(sample_path(journal, 0), header)

    def points(jobs: float) -> list[Point]:
        wait = Histogram((0.5, math.inf), (1, 2), 0.75)
        return [Point("jobs_total", jobs, SeriesKind.COUNTER, labels={"q": "a"}), Point("wait", wait, SeriesKind.HISTOGRAM)]

    writer.add(points(1), Moment(1, 101, 5, -1, sent_ns=90, first_byte_ns=101), 0)
    writer.add(points(1), Moment(2, 102, 5, 1, "begin", sent_ns=95, first_byte_ns=102), 0)
    writer.add(points(4), Moment(3, 103, 5, 1, sent_ns=100, first_byte_ns=103), 0)
    writer.add(points(1), Moment(4, 104, 5, 1), 1)
    writer.close()
    target = Target(tmp_path, journal=journal, phases=("warmup", "profiling"), kinds=("warmup", "profiling"))
    (artifact,) = ServerMetricsLines(target, OPTIONS).export(summary(SOURCE))
    lines = [json.loads(line) for line in artifact.path.read_text().splitlines()]
    check = schema("server_metrics_lines.schema.json")
    for line in lines:
        check(line)
    assert [(line["endpoint_url"], line["timestamp_ns"]) for line in lines] == [(A, 101), (A, 103), (B, 104)]
    assert "benchmark_phase" not in lines[0]
    assert list(lines[1]) == [
        "endpoint_url", "timestamp_ns", "endpoint_latency_ns", "metrics", "request_sent_ns", "first_byte_ns", "benchmark_phase",
        "phase_index", "profiling_index", "phase_name", "phase_kind",
    ]  # fmt: skip
    assert lines[1]["endpoint_latency_ns"] == 3
    assert lines[1]["metrics"] == {
        "jobs_total": [{"labels": {"q": "a"}, "value": 4}],
        "wait": [{"buckets": {"0.5": 1, "+Inf": 2}, "sum": 0.75, "count": 2}],
    }  # fmt: skip


def test_files_are_named_as_in_the_reference(tmp_path: Path) -> None:
    names = [
        exporter(Target(tmp_path, prefix=prefix), OPTIONS).target.file(exporter.kind).name
        for exporter in (ServerMetricsJson, ServerMetricsCsv, ServerMetricsLines)
        for prefix in (None, "run1")
    ]
    stems = ("server_metrics_export", "run1_server_metrics")
    assert names == [f"{stem}.{ending}" for ending in ("json", "csv", "jsonl") for stem in stems]


def test_a_format_that_is_not_asked_for_has_no_file(tmp_path: Path) -> None:
    chosen = FileOptions(server_metrics_formats=["csv"])
    assert [each(Target(tmp_path), chosen).wanted() for each in (ServerMetricsJson, ServerMetricsCsv, ServerMetricsLines)] == [
        False, True, False,
    ]  # fmt: skip


def test_without_a_page_an_old_file_is_taken_away(tmp_path: Path) -> None:
    document(tmp_path, SOURCE)
    for sources in ((), (replace(SOURCE, series=()),)):
        assert ServerMetricsJson(Target(tmp_path), OPTIONS).export(summary(*sources)) == []
    assert list(tmp_path.iterdir()) == []
