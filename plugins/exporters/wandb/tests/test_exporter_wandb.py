"""Runs that are uploaded offline, read back from the file of the run."""

import json
import os
import struct

import pytest
from aiperf import Result, Target
from aiperf.testing import sample_summary
from aiperf_exporter_wandb import WandbExporter
from aiperf_exporter_wandb.contract import WandbContract
from aiperf_exporter_wandb.jobs import rows
from aiperf_exporter_wandb.options import WandbOptions
from msgspec.structs import replace


class TestItKeepsTheContract(WandbContract):
    pass


BLOCK, HEADER = 32768, 7
"""The file is a log of LevelDB's form: blocks of records with CRC, length and type (1 whole, 2 first, 3 middle, 4 last)."""


def payloads(content: bytes):
    """The records of an offline run's file."""
    place, whole = HEADER, b""
    while place + HEADER <= len(content):
        left = BLOCK - place % BLOCK
        if left < HEADER:
            place += left
            continue
        _, length, kind = struct.unpack("<IHB", content[place : place + HEADER])
        whole += content[place + HEADER : place + HEADER + length]
        place += HEADER + length
        if kind in (1, 4):
            yield whole
            whole = b""


def records(folder):
    from wandb.proto.wandb_internal_pb2 import Record

    (path,) = folder.glob("wandb/offline-run-*/*.wandb")
    found = {}
    for payload in payloads(path.read_bytes()):
        record = Record()
        record.ParseFromString(payload)
        kind = record.WhichOneof("record_type")
        found.setdefault(kind, []).append(getattr(record, kind))
    return found


@pytest.fixture
def offline(monkeypatch):
    for name in [name for name in os.environ if name.startswith("WANDB_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("WANDB_MODE", "offline")


SPREAD = {"avg": 4.625, "min": 3.35, "max": 7.2, "p50": 4.1, "p90": 7.0, "p99": 7.196, "std": 1.1975}


def test_an_offline_run_has_the_table_the_configuration_and_the_files(tmp_path, offline, caplog):
    (tmp_path / "profile_export_aiperf.json").write_text("{}")
    (tmp_path / "profile_export.jsonl").write_text("{}\n")
    (tmp_path / "journal").mkdir()
    (tmp_path / "journal" / "run.json").write_text("{}")
    summary = sample_summary(Result("request_latency", "Request Latency", "ms", SPREAD, order=300))
    summary = replace(summary, config={"endpoint": {"type": "chat"}}, directory=str(tmp_path))
    options = WandbOptions(project="speed", run_name="monday", tags=["nightly"])
    assert WandbExporter(Target(tmp_path), options).export(summary) == []
    assert caplog.messages == []
    found = records(tmp_path)
    run = found["run"][0]
    assert (run.project, run.display_name) == ("speed", "monday")
    assert {*run.tags} == {f"aiperf-{summary.version}", "benchmark-01234567", "nightly"}
    config = {item.key: json.loads(item.value_json) for item in run.config.update if item.key}
    assert config["endpoint"] == {"type": "chat"} and config["cli_command"] == summary.command
    (artifact,) = [each for each in found["artifact"] if each.type == "aiperf-run"]
    assert artifact.name == "aiperf-0123456789ab"
    assert {each.path for each in artifact.manifest.contents} == {"profile_export_aiperf.json", "profile_export.jsonl"}
    numbers = {tuple(item.nested_key) or item.key: item.value_json for each in found["summary"] for item in each.update}
    assert json.loads(numbers["request_latency.p99"]) == 7.196 and json.loads(numbers["request_latency"]) == 4.625
    (table,) = tmp_path.glob("wandb/offline-run-*/files/media/table/summary_metrics_*.json")
    assert json.loads(table.read_text()) == {
        "columns": ["Metric", "avg", "min", "max", "p99", "p90", "p50", "std"],
        "data": [["Request Latency (ms)", 4.62, 3.35, 7.2, 7.2, 7.0, 4.1, 1.2]],
    }


def test_rows_are_those_of_the_console_and_unknown_statistics_are_absent():
    hidden = Result("hidden", "Hidden", "ms", {"avg": 1.0})
    single = Result("request_throughput", "Request Throughput", "requests/sec", {"avg": 12.504}, order=900)
    assert rows(sample_summary(hidden, single)) == [["Request Throughput (requests/sec)", 12.5, *[None] * 6]]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (WandbOptions(tags=["a"]), "--wandb-tag needs --wandb-project"),
        (WandbOptions(project="p", tags=["a" * 65]), "must have 1 to 64 characters"),
    ],
)
def test_a_setting_without_an_upload_is_refused_by_name(options, said):
    (sentence,) = options.problems({"tags": "--wandb-tag"})
    assert said in sentence


def test_a_time_that_is_none_is_refused_before_the_run(monkeypatch):
    monkeypatch.setenv("AIPERF_WANDB_EXPORT_TIMEOUT_SECONDS", "soon")
    (sentence,) = WandbOptions(project="p").problems({"project": "--wandb-project"})
    assert "AIPERF_WANDB_EXPORT_TIMEOUT_SECONDS is 'soon'" in sentence
