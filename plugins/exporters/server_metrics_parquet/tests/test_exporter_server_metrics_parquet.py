"""The servers' metrics as a table: a row for each series, or bucket, of each reading."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from aiperf import Histogram, Point, SeriesKind, Summary, Target
from aiperf.parts.samples import SampleWriter, sample_path
from aiperf.sdk.descriptor import PluginRef
from aiperf.sdk.series import Moment, SourceHeader, TargetHeader
from aiperf.sdk.summary import PhaseSummary, SeriesSummary, SourceSummary, TargetSummary
from aiperf.testing import sample_summary
from aiperf_exporter_server_metrics.options import FileOptions
from aiperf_exporter_server_metrics_parquet import ServerMetricsParquet
from aiperf_exporter_server_metrics_parquet.contract import ParquetContract
from aiperf_exporter_server_metrics_parquet.growth import Growth
from msgspec.structs import replace

PAGE = "http://a:8000/metrics"
PARQUET = FileOptions(server_metrics_formats=["parquet"])


class TestParquetKeepsTheContract(ParquetContract):
    pass


def points(jobs: float, many: float, level: float) -> list[Point]:
    return [
        Point("jobs_total", jobs, SeriesKind.COUNTER, "count", {"reason": "stop", "value": "odd"}, "Jobs"),
        Point("wait", Histogram((0.5, math.inf), (many, 2 * many), 3 * many), SeriesKind.HISTOGRAM, "s"),
        Point("level", level, labels={"model": "m"}),
        Point("build_info", 1.0, SeriesKind.INFO, labels={"version": "1"}),
    ]


def summary() -> Summary:
    series = tuple(
        SeriesSummary("server_metrics", 1, point.name, point.kind.value, point.unit, point.labels, point.help, {"count": 1.0})
        for point in points(0, 0, 0)
    )
    source = SourceSummary("server_metrics", "d", "1", 0.3, 5, 0, 0, series, targets=(TargetSummary(PAGE, 0.3, 5),))
    phases = (PhaseSummary("warmup", "warmup", 0, 100, 200, {}), PhaseSummary("profiling", "profiling", 1, 200, 300, {}))
    return replace(sample_summary(), telemetry=(source,), phases=phases)


def table(tmp_path: Path) -> pa.Table:
    journal = tmp_path / "journal"
    journal.mkdir()
    ref = PluginRef("telemetry", "server_metrics", "m:S", "d", "1")
    writer = SampleWriter(sample_path(journal, 0), SourceHeader(ref, 0.3, (TargetHeader(PAGE, 0.3),)))
    writer.add(points(1, 1, 0.1), Moment(1, 110, 1, 0), 0)
    writer.add(points(5, 2, 0.2), Moment(2, 199, 1, 1, "begin"), 0)
    writer.add(points(8, 4, 0.5), Moment(3, 210, 1, 1), 0)
    writer.add(points(8, 4, 0.5), Moment(4, 220, 1, 1), 0)
    writer.add(points(2, 5, 0.7), Moment(5, 301, 1, 1, "end"), 0)
    writer.close()
    target = Target(tmp_path, journal=journal, phases=("warmup", "profiling"), kinds=("warmup", "profiling"))
    (artifact,) = ServerMetricsParquet(target, PARQUET).export(summary())
    return pq.read_table(artifact.path)


def test_rows_are_of_readings_with_a_change_in_the_phase(tmp_path: Path) -> None:
    rows = table(tmp_path).to_pylist()
    assert [(row["timestamp_ns"], row["metric_name"], row["bucket_le"]) for row in rows] == [
        (at, name, bound)
        for at in (210, 301)
        for name, bound in (("jobs_total", None), ("wait", "0.5"), ("wait", "+Inf"), ("level", None), ("build_info", None))
    ]
    jobs, first, last, level, info = rows[:5]
    assert (jobs["value"], jobs["reason"], jobs["metric_type"], jobs["unit"], jobs["description"]) == (
        3.0, "stop", "counter", "count", "Jobs",
    )  # fmt: skip
    assert [row[name] for row in (first, last) for name in ("sum", "count", "bucket_count", "value")] == [
        6.0, 4.0, 2.0, None, 6.0, 4.0, 4.0, None,
    ]  # fmt: skip
    assert (level["value"], level["model"], info["metric_type"], info["version"]) == (0.5, "m", "gauge", "1")


def test_a_counter_that_began_again_goes_on_growing(tmp_path: Path) -> None:
    values = [row["value"] for row in table(tmp_path).to_pylist() if row["metric_name"] == "jobs_total"]
    assert values == [3.0, 5.0]


def test_columns_and_metadata_are_those_of_the_reference(tmp_path: Path) -> None:
    schema = table(tmp_path).schema
    assert [(field.name, str(field.type)) for field in schema] == [
        *((name, "string") for name in ("endpoint_url", "metric_name", "metric_type", "unit", "description")),
        ("timestamp_ns", "int64"), *((name, "string") for name in ("model", "reason", "version")),
        *((name, "double") for name in ("value", "sum", "count")), ("bucket_le", "string"), ("bucket_count", "double"),
    ]  # fmt: skip
    said = {name.decode(): value.decode() for name, value in schema.metadata.items()}
    assert json.loads(said["aiperf.label_columns"]) == ["model", "reason", "version"]
    assert json.loads(said["aiperf.metric_type_counts"]) == {"counter": 1, "gauge": 2, "histogram": 1}
    assert (said["aiperf.time_filter_start_ns"], said["aiperf.profiling_duration_ns"]) == ("200", "100")
    assert "aiperf.hostname" not in said


def test_growth_counts_from_the_first_value_where_none_came_before() -> None:
    from aiperf.sdk.series import SeriesHeader

    header, growth = SeriesHeader(0, "jobs", SeriesKind.COUNTER), Growth()
    assert [growth.take(header, value) for value in (5.0, 7.0, 1.0)] == [[0.0], [2.0], [3.0]]
