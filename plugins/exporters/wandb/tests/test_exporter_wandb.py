"""Runs that are uploaded offline, read back from the file of the run."""

import json
import os
import struct

import pytest
from aiperf import Result, Target
from aiperf.testing import sample_study, sample_summary
from aiperf_exporter_wandb import WandbExporter, WandbStudyExporter
from aiperf_exporter_wandb.contract import WandbContract, WandbStudyContract
from aiperf_exporter_wandb.jobs import rows
from aiperf_exporter_wandb.options import WandbRunOptions, WandbStudyOptions
from msgspec.structs import replace


class TestItKeepsTheContract(WandbContract):
    pass


class TestStudiesKeepTheContract(WandbStudyContract):
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
    (path,) = folder.glob("wandb/offline-run-*/*.wandb")
    return records_of(path)


def records_of(path):
    from wandb.proto.wandb_internal_pb2 import Record

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
    options = WandbRunOptions(project="speed", run_name="monday", tags=["nightly"])
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


def test_the_runs_of_a_study_are_a_group(tmp_path, offline, caplog):
    study = sample_study(tmp_path, trials=1, concurrencies=(1, 2))
    first, second = study.runs
    study = replace(study, runs=(first, replace(second, summary=None, failed="the server was gone")))
    for run in study.runs:
        run.directory.mkdir(parents=True)
        (run.directory / "profile_export_aiperf.json").write_text("{}")
    (tmp_path / "sweep_aggregate").mkdir()
    (tmp_path / "sweep_aggregate" / "sweep.json").write_text("{}")
    options = WandbStudyOptions(project="speed", run_name="monday")
    assert WandbStudyExporter(Target(tmp_path), options).export_study(study) == []
    assert caplog.messages == []
    found = [records_of(path) for path in tmp_path.glob("wandb/offline-run-*/*.wandb")]
    runs = {each["run"][0].display_name: each for each in found}
    assert {*runs} == {"monday", *(f"monday-{run.label.replace('/', '-')}" for run in study.runs)}
    assert {each["run"][0].run_group for each in found} == {"monday"}
    good, failed = (runs[f"monday-{run.label.replace('/', '-')}"]["run"][0].config.update for run in study.runs)
    assert {item.key: json.loads(item.value_json) for item in good}["cell"] == {"concurrency": 1}
    assert {item.key: json.loads(item.value_json) for item in failed}["failed"] == "the server was gone"
    (artifact,) = [each for each in runs["monday"]["artifact"] if each.type == "aiperf-study"]
    assert {each.path for each in artifact.manifest.contents} == {"sweep_aggregate/sweep.json"}


def test_rows_are_those_of_the_console_and_unknown_statistics_are_absent():
    hidden = Result("hidden", "Hidden", "ms", {"avg": 1.0})
    single = Result("request_throughput", "Request Throughput", "requests/sec", {"avg": 12.504}, order=900)
    assert rows(sample_summary(hidden, single)) == [["Request Throughput (requests/sec)", 12.5, *[None] * 6]]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (WandbRunOptions(tags=["a"]), "--wandb-tag needs --wandb-project"),
        (WandbRunOptions(project="p", tags=["a" * 65]), "must have 1 to 64 characters"),
    ],
)
def test_a_setting_without_an_upload_is_refused_by_name(options, said):
    (sentence,) = options.problems({"tags": "--wandb-tag"})
    assert said in sentence


def test_a_time_that_is_none_is_refused_before_the_run(monkeypatch):
    monkeypatch.setenv("AIPERF_WANDB_EXPORT_TIMEOUT_SECONDS", "soon")
    (sentence,) = WandbRunOptions(project="p").problems({"project": "--wandb-project"})
    assert "AIPERF_WANDB_EXPORT_TIMEOUT_SECONDS is 'soon'" in sentence
