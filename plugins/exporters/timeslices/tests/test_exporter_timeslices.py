import csv
import json
from pathlib import Path

import msgspec
import pytest
from aiperf import Result, Summary, Target
from aiperf.sdk.summary import SeriesSummary, Slice, SourceSummary
from aiperf.testing import SummaryExporterContract
from aiperf_exporter_timeslices import SlicesCsv, SlicesJson
from aiperf_testing.summaries import sample_summary

LATENCY = Result("request_latency", "Request Latency", "ms", {"avg": 4.6259, "p50": 4.1, "min": 3.0, "count": 20})
RATE = Result("request_throughput", "Request Throughput", "requests/sec", {"avg": 42.27})
BEGIN = 1_795_188_761_921_884_672


def sliced() -> Summary:
    """Three slices of a second: one with requests, an empty one, and half of one."""
    slices = (
        Slice(BEGIN, BEGIN + 10**9, {"request_throughput": RATE, "request_latency": LATENCY}, 22, {"completed": 20}),
        Slice(BEGIN + 10**9, BEGIN + 2 * 10**9, {}),
        Slice(BEGIN + 2 * 10**9, BEGIN + 2_500_000_000, {"request_throughput": RATE}, complete=False),
    )
    return msgspec.structs.replace(sample_summary(), slices=slices, config={"endpoint": {"type": "chat"}})


class TestJsonKeepsTheContract(SummaryExporterContract):
    exporter = SlicesJson


class TestCsvKeepsTheContract(SummaryExporterContract):
    exporter = SlicesCsv


def test_json_has_every_slice_with_its_edges_and_marks_a_short_one(tmp_path: Path) -> None:
    (artifact,) = SlicesJson(Target(tmp_path)).export(sliced())
    assert artifact.path == tmp_path / "profile_export_aiperf_timeslices.json"
    found = json.loads(artifact.path.read_text())
    assert list(found) == ["timeslices", "input_config"]
    first, empty, last = found["timeslices"]
    assert first == {
        "start_ns": BEGIN, "end_ns": BEGIN + 10**9,
        "request_latency": {"unit": "ms", "avg": 4.6259, "p50": 4.1, "min": 3.0, "count": 20},
        "request_throughput": {"unit": "requests/sec", "avg": 42.27}, "started": 22, "outcomes": {"completed": 20},
    }  # fmt: skip
    assert empty == {"start_ns": BEGIN + 10**9, "end_ns": BEGIN + 2 * 10**9, "started": 0, "outcomes": {}}
    assert (last["end_ns"], last["is_complete"]) == (BEGIN + 2_500_000_000, False)


def test_the_csv_has_the_statistics_that_were_chosen(tmp_path: Path) -> None:
    (artifact,) = SlicesCsv(Target(tmp_path, columns=("p50", "max", "avg"))).export(sliced())
    _, *rows = csv.reader(artifact.path.read_text().splitlines())
    assert [row[3:6] for row in rows] == [
        ["Request Latency", "ms", "p50"], ["Request Latency", "ms", "avg"],
        *[["Request Throughput", "requests/sec", "avg"]] * 2,
    ]  # fmt: skip


def test_the_csv_has_a_row_for_each_statistic_in_order(tmp_path: Path) -> None:
    (artifact,) = SlicesCsv(Target(tmp_path)).export(sliced())
    assert artifact.path == tmp_path / "profile_export_aiperf_timeslices.csv"
    assert artifact.path.read_bytes().count(b"\r\n") == 6
    header, *rows = csv.reader(artifact.path.read_text().splitlines())
    assert header == ["Timeslice", "Start_NS", "End_NS", "Metric", "Unit", "Stat", "Value"]
    assert rows[:3] == [
        ["0", str(BEGIN), str(BEGIN + 10**9), "Request Latency", "ms", name, value]
        for name, value in (("avg", "4.63"), ("min", "3.00"), ("p50", "4.10"))
    ]
    assert rows[3][3:] == ["Request Throughput", "requests/sec", "avg", "42.27"]
    assert [row[0] for row in rows] == ["0"] * 4 + ["2"]


def test_json_has_the_telemetry_of_a_slice(tmp_path: Path) -> None:
    load = SeriesSummary("vitals", 0, "load", "gauge", "tasks", {"window": "1m"}, "Tasks", {"avg": 0.5})
    known = SourceSummary("vitals", "acme", "1", 0.5, 7, 0, 0, (), ((load,), (), (load,)))
    unsliced = SourceSummary("tides", "acme", "1", 0.5, 7, 0, 0)
    (artifact, *_) = SlicesJson(Target(tmp_path)).export(msgspec.structs.replace(sliced(), telemetry=(unsliced, known)))
    first, empty, last = json.loads(artifact.path.read_text())["timeslices"]
    row = {"source": "vitals", "name": "load", "kind": "gauge", "unit": "tasks", "labels": {"window": "1m"}}
    assert first["telemetry"] == last["telemetry"] == [{**row, "stats": {"avg": 0.5}}]
    assert "telemetry" not in empty


@pytest.mark.parametrize("exporter", [SlicesCsv, SlicesJson])
def test_without_slices_the_file_of_an_earlier_run_is_removed(
    tmp_path: Path, exporter: type[SlicesCsv | SlicesJson]
) -> None:
    made = exporter(Target(tmp_path))
    made.export(sliced())
    assert made.export(msgspec.structs.replace(sliced(), slices=())) == []
    assert list(tmp_path.iterdir()) == []


def test_a_prefix_names_both_files(tmp_path: Path) -> None:
    target = Target(tmp_path, prefix="mine")
    names = [made.export(sliced())[0].path.name for made in (SlicesCsv(target), SlicesJson(target))]
    assert names == ["mine_timeslices.csv", "mine_timeslices.json"]
