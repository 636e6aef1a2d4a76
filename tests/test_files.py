"""The files of a run parse under the reference's names, agree with each other, and with the console."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections import Counter
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from aiperf_command_simulate.testing import running
from program import Done, Program

STATISTICS = ("avg", "min", "max", "sum", "p1", "p5", "p10", "p25", "p50", "p75", "p90", "p95", "p99", "std")
BOUNDS = ("lower", "upper")
"""Of metrics whose values are estimates."""
PERCENTILES = ["p1", "p5", "p10", "p25", "p50", "p75", "p90", "p95", "p99"]
CONSOLE = ("avg", "min", "max", "p99", "p90", "p50", "std")
ROUNDED = 0.005 + 1e-9
"""How far a number with two decimals may be from the whole one."""
REQUESTS, WARMUPS = 60, 5


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Done:
    """One run with everything in it: warmup, pacing, a ceiling, failures of two kinds."""
    aiperf = Program(tmp_path_factory.mktemp("files"))
    with running(faults=["fail=500@0.1", "fail=429@0.1"], first_token_ms=10, decode_ms=1, seed=5) as simulator:
        done = aiperf(
            "profile", "--model", "m", "--url", simulator.url, "--streaming", "--tokenizer", "builtin", "--isl", 30,
            "--osl", 12, "--request-rate", 80, "--concurrency", 20, "--request-count", REQUESTS,
            "--warmup-request-count", WARMUPS, "--random-seed", 7, "--header", "X-Secret: hush",
            "--api-key", "hush-too", "--ui", "none", "-v",
        )  # fmt: skip
    assert done.code == 0, done.err
    return done


@pytest.fixture(scope="module")
def report(done: Done) -> dict[str, Any]:
    return done.json()


@pytest.fixture(scope="module")
def metrics(report: dict[str, Any]) -> dict[str, dict[str, Any]]:
    found = {tag: value for tag, value in report.items() if isinstance(value, dict) and "unit" in value}
    return {tag: value for tag, value in found.items() if tag != "observation_window"}  # stands beside the metrics


@pytest.fixture(scope="module")
def records(done: Done) -> list[dict[str, Any]]:
    return [line for line in done.lines("profile_export.jsonl") if line["metadata"]["benchmark_phase"] == "profiling"]


@pytest.fixture(scope="module")
def ledger(done: Done) -> list[dict[str, Any]]:
    return done.lines("profile_export_arrivals.jsonl")


def tables(text: str) -> tuple[list[dict[str, str]], dict[str, str]]:
    """Two sections of the CSV: statistics by row, and single values by name.  The third has the finish reasons."""
    first, second, *_ = text.split("\r\n\r\n")
    return list(csv.DictReader(io.StringIO(first))), dict(list(csv.reader(io.StringIO(second)))[1:])


def single(found: dict[str, Any]) -> bool:
    """Whether a metric has one value and no distribution."""
    return set(found) - _BOUNDS == {"unit", "avg"}


_BOUNDS = {"lower", "upper"}
"""Where the client merged reads, which a busy machine makes it do."""


def curve(tag: str) -> bool:
    """Whether a metric is a curve over time, and not of requests."""
    return (tag.startswith(("effective_", "active_")) and tag != "effective_latency") or tag == "tokens_in_flight"


def at(ordered: list[float], percent: float) -> float:
    place = (len(ordered) - 1) * percent / 100
    low = math.floor(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def test_the_journal_is_readable_by_its_owner_alone(done: Done) -> None:
    journal = done.artifacts / "journal"
    assert {path.stat().st_mode & 0o777 for path in journal.iterdir()} == {0o600}
    assert journal.stat().st_mode & 0o777 == 0o700


# The summary as JSON


def test_the_summary_opens_with_where_it_comes_from(report: dict[str, Any]) -> None:
    assert list(report)[:3] == ["schema_version", "aiperf_version", "benchmark_id"]
    assert report["schema_version"] == "1.4"
    assert re.fullmatch("[0-9a-f]{12}", report["benchmark_id"])
    assert report["run_info"]["benchmark_id"] == report["benchmark_id"]
    assert report["run_info"]["random_seed"] == 7
    assert report["run_info"]["cli_command"].startswith("aiperf profile ")
    assert report["was_cancelled"] is False
    assert report["is_complete"] is True
    assert "incomplete_reason" not in report
    begin, end = (datetime.fromisoformat(report[name]) for name in ("start_time", "end_time"))
    assert begin.utcoffset() is not None
    assert begin < end


def test_the_core_metrics_are_there_under_their_names(metrics: dict[str, dict[str, Any]]) -> None:
    distributions = {
        "time_to_first_token": "ms", "time_to_second_token": "ms", "time_to_first_output_token": "ms", "request_latency": "ms",
        "inter_token_latency": "ms", "inter_chunk_latency": "ms", "output_token_throughput_per_user": "tokens/sec/user",
        "input_sequence_length": "tokens", "output_sequence_length": "tokens", "output_token_count": "tokens",
        "schedule_slip": "ms", "response_latency": "ms",
    }  # fmt: skip
    ones = {
        "request_throughput": "requests/sec", "request_count": "requests", "output_token_throughput": "tokens/sec",
        "benchmark_duration": "sec", "error_request_count": "requests", "total_isl": "tokens", "total_osl": "tokens",
    }  # fmt: skip
    assert {tag: metrics[tag]["unit"] for tag in distributions} == distributions
    assert {tag: metrics[tag]["unit"] for tag in ones} == ones
    assert all("p50" in metrics[tag] for tag in distributions)
    assert all("p50" not in metrics[tag] for tag in ones)


def test_statistics_are_ordered_and_possible(metrics: dict[str, dict[str, Any]]) -> None:
    for tag, found in metrics.items():
        if single(found):
            continue
        rising = [found[name] for name in ("min", *PERCENTILES, "max") if name in found]
        for low, high in pairwise(rising):
            assert low <= high or low == pytest.approx(high, rel=1e-12), tag  # rounding, where one is interpolated
        if tag.startswith("adj_"):  # failures are infinitely slow: what they reach is absent
            assert {"avg", "max", "sum"} & set(found) == set(), tag
            continue
        if curve(tag):
            assert [name for name in found if name not in _BOUNDS] == [
                "unit", "avg", "p50", "p90", "p95", "p99", "min", "max", "std",
            ], tag  # fmt: skip
            continue
        names = ["unit", "avg", *PERCENTILES, "min", "max", "std", "count", "sum"]
        assert [name for name in found if name not in BOUNDS] == names, tag
        for name, low in found.get("lower", {}).items():  # where the client merged reads
            for less, more in ((low, found[name]), (found[name], found["upper"][name])):
                assert less <= more or less == pytest.approx(more, rel=1e-12), tag
        assert found["sum"] == pytest.approx(found["avg"] * found["count"]), tag


def test_no_secret_is_in_any_file(done: Done) -> None:
    assert "hush" not in done.out + done.err
    for path in done.artifacts.rglob("*"):
        if path.is_file():
            assert b"hush" not in path.read_bytes(), path


# Identities


def test_every_planned_arrival_is_accounted_for(report: dict[str, Any], ledger: list[dict[str, Any]]) -> None:
    arrivals = report["measurement"]["arrivals"]
    assert arrivals["planned"] == REQUESTS
    assert arrivals["sent"] == REQUESTS
    parts = ("completed", "errors", "cancelled", "aborted_in_flight", "unfinished", "never_sent")
    assert arrivals["planned"] == sum(arrivals.get(name, 0) for name in parts)
    assert len(ledger) == REQUESTS + WARMUPS
    assert set(Counter(row["outcome"] for row in ledger)) <= {"completed", "error"}


def test_throughput_times_duration_is_the_count(metrics: dict[str, dict[str, Any]]) -> None:
    seconds = metrics["benchmark_duration"]["avg"]
    assert metrics["request_throughput"]["avg"] * seconds == pytest.approx(metrics["request_count"]["avg"])
    assert metrics["output_token_throughput"]["avg"] * seconds == pytest.approx(metrics["total_osl"]["avg"])


def test_records_are_successes_and_errors(report: dict[str, Any], records: list[dict[str, Any]]) -> None:
    failed = [record for record in records if "error" in record]
    assert len(records) == REQUESTS
    assert len(failed) == report["error_request_count"]["avg"] > 0
    assert len(records) - len(failed) == report["request_count"]["avg"]
    by_code = Counter(record["error"]["code"] for record in failed)
    assert by_code == {row["error_details"]["code"]: row["count"] for row in report["error_summary"]}
    assert set(by_code) == {429, 500}


def test_warmup_is_told_apart(done: Done, report: dict[str, Any]) -> None:
    lines = done.lines("profile_export.jsonl")
    assert sum(line["metadata"]["benchmark_phase"] == "warmup" for line in lines) == WARMUPS
    warm = report["warmup_metrics"]
    failed = warm.get("error_request_count", {"avg": 0})["avg"]
    assert warm.get("request_count", {"avg": 0})["avg"] + failed == WARMUPS


# One line a request


def test_a_record_has_the_reference_fields(records: list[dict[str, Any]]) -> None:
    wanted = {
        "session_num", "x_request_id", "x_correlation_id", "conversation_id", "turn_index", "credit_issued_ns",
        "request_start_ns", "request_end_ns", "worker_id", "record_processor_id", "benchmark_phase", "phase_kind",
        "phase_index", "phase_name",
        "was_cancelled", "due_ns", "conversation_num",
    }  # fmt: skip
    for record in records:
        data = record["metadata"]
        assert wanted - set(data) == set()
        assert data["credit_issued_ns"] == data["due_ns"] <= data["request_start_ns"] <= data["request_end_ns"]
        for tag, found in record["metrics"].items():
            assert set(found) - {"intervals"} == {"value", "unit"}, tag
    assert sorted(record["metadata"]["session_num"] for record in records) == list(range(REQUESTS))
    assert len({record["metadata"]["x_request_id"] for record in records}) == REQUESTS


def test_the_summary_follows_from_the_records(records: list[dict[str, Any]], metrics: dict[str, dict[str, Any]]) -> None:
    checked = 0
    for tag, found in metrics.items():
        if single(found) or tag.startswith("adj_") or curve(tag):
            continue
        values: list[float] = []
        for record in records:
            value = record["metrics"].get(tag, {"value": []})["value"]
            values += value if isinstance(value, list) else [value]
        assert len(values) == found["count"], tag
        values.sort()
        for name, value in (("p50", at(values, 50)), ("p99", at(values, 99)), ("sum", math.fsum(values))):
            if "lower" in found:  # where the client merged reads, the records have estimates within the bounds
                slack = 1e-9 + 1e-6 * value
                assert found["lower"][name] - slack <= value <= found["upper"][name] + slack, (tag, name)
            else:
                assert value == pytest.approx(found[name], rel=1e-6, abs=1e-9), (tag, name)
        checked += 1
    assert checked >= 10


def test_the_ledger_knows_the_records(done: Done, ledger: list[dict[str, Any]]) -> None:
    lines = done.lines("profile_export.jsonl")
    wanted = {"n", "session", "turn", "worker", "due_ns", "started_ns", "sent_ns", "first_byte_ns", "last_byte_ns", "outcome"}
    for row in ledger:
        assert wanted - set(row) == set()
        assert row["due_ns"] <= row["started_ns"] <= row["sent_ns"] <= row["first_byte_ns"] <= row["last_byte_ns"]
    numbers = [number for row in ledger for name, number in row.items() if "record" in name]
    assert sorted(numbers) == list(range(1, len(lines) + 1))


def test_the_inputs_are_what_was_asked(done: Done, records: list[dict[str, Any]]) -> None:
    inputs = json.loads((done.artifacts / "inputs.json").read_text())["data"]
    by_session = {entry["session_id"]: entry["payloads"] for entry in inputs}
    assert {record["metadata"]["conversation_id"] for record in records} <= set(by_session)
    for payloads in by_session.values():
        (body,) = payloads
        assert body["model"] == "m"
        assert body["stream"] is True
        assert body["max_completion_tokens"] == 12
        assert body["messages"][0]["content"]


# The CSV and the console


def test_the_csv_has_the_numbers_of_the_json(done: Done, metrics: dict[str, dict[str, Any]]) -> None:
    text = (done.artifacts / "profile_export_aiperf.csv").read_bytes().decode()
    assert text.replace("\r\n", "").count("\n") == 0
    rows, values = tables(text)
    assert list(rows[0]) == ["Metric", *STATISTICS]
    distributions = sorted(tag for tag, found in metrics.items() if not single(found))
    assert len(rows) == len(distributions)
    for row, tag in zip(rows, distributions, strict=True):
        for name in STATISTICS:
            if name in metrics[tag]:
                assert float(row[name]) == pytest.approx(metrics[tag][name], abs=ROUNDED), (tag, name)
            else:
                assert row[name] == "", (tag, name)
    ones = [metrics[tag]["avg"] for tag in sorted(metrics) if single(metrics[tag])]
    assert [float(value) for value in values.values()] == pytest.approx(ones, abs=ROUNDED)


def console_rows(text: str) -> dict[str, list[str]]:
    """Cells of the metric tables by label; a label that was broken over two lines is whole again."""
    rows: dict[str, list[str]] = {}
    label = ""
    for line in text.splitlines():
        cells = [cell.strip() for cell in re.split("[│|┃]", line)[1:-1]]
        if len(cells) != 1 + len(CONSOLE):
            label = ""
            continue
        label = f"{label} {cells[0]}".strip() if not any(cells[1:]) or label else cells[0]
        if cells[0] == "Metric":
            label = ""
        elif any(cells[1:]):
            rows[label] = cells[1:]
            label = ""
        elif rows and cells[0].startswith("("):  # the unit, below its label
            last = list(rows)[-1]
            rows[f"{last} {cells[0]}"] = rows.pop(last)
            label = ""
    return rows


def test_every_number_on_the_console_is_the_jsons(done: Done, metrics: dict[str, dict[str, Any]]) -> None:
    rows, values = tables((done.artifacts / "profile_export_aiperf.csv").read_bytes().decode())
    distributions = sorted(tag for tag, found in metrics.items() if not single(found))
    ones = sorted(tag for tag, found in metrics.items() if single(found))
    tags = dict(zip((row["Metric"] for row in rows), distributions, strict=True)) | dict(zip(values, ones, strict=True))
    checked = 0
    for label, cells in console_rows(done.out).items():
        found = metrics[tags[label.removesuffix(" (requests)")]]  # the CSV leaves that unit out
        for name, cell in zip(CONSOLE, cells, strict=True):
            if name in found:
                assert float(cell.replace(",", "")) == pytest.approx(found[name], abs=ROUNDED), (label, name)
                checked += 1
            else:
                assert cell == "N/A", (label, name)
    assert checked >= 60
    assert "Time to First Token (ms)" in console_rows(done.out)


def test_the_console_ends_with_what_makes_it_repeatable(done: Done, report: dict[str, Any]) -> None:
    assert "trustworthy" in done.out or "suspect" in done.out
    assert report["measurement"]["verdict"] in done.out
    assert "--random-seed 7" in done.out
    for label in ("JSON Export", "CSV Export"):
        (line,) = [line for line in done.out.splitlines() if line.strip().startswith(label)]
        assert Path(line.split(":", 1)[1].strip()).is_file()


def test_the_console_copy_has_the_tables(done: Done) -> None:
    copy = (done.artifacts / "profile_export_console.txt").read_text()
    assert console_rows(copy) == console_rows(done.out)
    assert "\x1b" not in copy + done.out


# The same plan for any number of workers


def test_a_seed_gives_the_same_load_for_any_workers(tmp_path: Path) -> None:
    seen = []
    with running(first_token_ms=1, decode_ms=1, tokens=3) as simulator:
        for workers in (1, 2, 5):
            aiperf = Program(tmp_path)
            aiperf.environment["AIPERF_WORKERS"] = str(workers)
            done = aiperf(
                "profile", "--model", "m", "--url", simulator.url, "--tokenizer", "builtin", "--isl", 20, "--isl-stddev", 8,
                "--request-rate", 200, "--request-count", 60, "--random-seed", 3, "--ui", "none",
                "--artifact-dir", tmp_path / str(workers),
            )  # fmt: skip
            assert done.code == 0, done.err
            rows = sorted(done.lines("profile_export_arrivals.jsonl"), key=lambda row: int(row["n"]))
            assert len({row["worker"] for row in rows}) == workers
            begin = rows[0]["due_ns"]
            due = [row["due_ns"] - begin for row in rows]
            conversations = {
                line["metadata"]["session_num"]: line["metadata"]["conversation_id"]
                for line in done.lines("profile_export.jsonl")
            }
            seen.append(((done.artifacts / "inputs.json").read_bytes(), due, conversations))
    assert seen[0] == seen[1] == seen[2]
