"""Results that something has happened to: what is damaged is named, and what can be had from the journal is had again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from aiperf_command_simulate.testing import Simulator
from program import Done, Program

REQUESTS = 12
ENDS = ("completed", "errors", "cut", "cancelled", "aborted_in_flight", "unfinished", "damaged", "never_sent", "unknown")


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory, shared_simulator: Simulator) -> Done:
    """A run that kept what it saw, in several flushes of the journal (one each 50 ms)."""
    done = Program(tmp_path_factory.mktemp("kept"))(
        "profile", "--model", "m", "--url", shared_simulator.url, "--streaming", "--tokenizer", "builtin", "--isl", "10",
        "--osl", "6", "--request-rate", "50", "--request-count", str(REQUESTS), "--export-level", "raw", "--ui", "none",
    )  # fmt: skip
    assert done.code == 0, done.err
    return done


@pytest.fixture
def done(kept: Done, tmp_path: Path) -> Done:
    return kept.copy(tmp_path / "damaged")


def cut(path: Path, share: float) -> None:
    """Leave this much of the file, and never a whole last line or frame."""
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * share)].rstrip(b"\n"))


def segments(done: Done) -> list[Path]:
    return sorted((done.artifacts / "journal").glob("shard-*.seg"))


def drop(done: Done, *patterns: str) -> None:
    found = [path for pattern in patterns for path in (done.artifacts / "journal").glob(pattern)]
    assert found
    for path in found:
        path.unlink()


def test_files_that_are_cut_are_named_and_a_report_restores_them(aiperf: Program, done: Done) -> None:
    names = ["profile_export.jsonl", "profile_export_raw.jsonl", "profile_export_arrivals.jsonl"]
    before = [done.lines(name) for name in names]
    for name in names:
        cut(done.artifacts / name, 0.6)
    whole = [len((done.artifacts / name).read_bytes().splitlines()) - 1 for name in names]
    judged = aiperf("validate", done.artifacts)
    assert judged.code == 1
    for name, lines in zip(names, whole, strict=True):
        assert f"{name}:{lines + 1}: " in judged.out
    assert aiperf("report", done.artifacts).code == 0
    assert [done.lines(name) for name in names] == before
    assert aiperf("validate", done.artifacts).code == 0


def test_a_cut_summary_is_named_and_a_report_restores_it(aiperf: Program, done: Done) -> None:
    before = done.json()
    cut(done.artifacts / "profile_export_aiperf.json", 0.5)
    judged = aiperf("validate", done.artifacts)
    assert judged.code == 1
    assert "profile_export_aiperf.json" in judged.out
    assert aiperf("report", done.artifacts).code == 0
    assert done.json() == before


def test_a_torn_last_segment_costs_nothing_that_is_in_the_columns(aiperf: Program, done: Done) -> None:
    before = done.json()
    cut(segments(done)[-1], 0.5)
    again = aiperf("report", done.artifacts)
    assert done.json()["request_count"] == before["request_count"]
    assert done.json()["inter_token_latency"] == before["inter_token_latency"]
    # The file of what was sent and said is made of the segments alone.
    assert again.code == 1
    assert "the plugin exporters:raw" in again.err


def test_whole_frames_of_a_torn_segment_count(aiperf: Program, done: Done) -> None:
    drop(done, "columns-*", "summary.msgpack")
    cut(segments(done)[-1], 0.7)
    again = aiperf("report", done.artifacts)
    assert "Traceback" not in again.err
    summary = done.json()
    arrivals = summary["measurement"]["arrivals"]
    assert summary["is_complete"] is False
    assert 0 < arrivals["completed"] < REQUESTS
    assert arrivals["planned"] == REQUESTS == sum(arrivals[name] for name in ENDS)
    assert again.code == 1 and f"requests are lost: {segments(done)[-1].name} lacks" in again.err
    assert summary["request_count"]["avg"] == arrivals["completed"]


def test_columns_that_are_torn_where_the_answers_are_gone_are_named(aiperf: Program, simulator: Simulator) -> None:
    done = aiperf(
        "profile", "--model", "m", "--url", simulator.url, "--tokenizer", "builtin", "--isl", "10", "--osl", "6",
        "--request-count", str(REQUESTS), "--ui", "none",
    )  # fmt: skip
    assert segments(done) == []
    (columns,) = (done.artifacts / "journal").glob("columns-*")
    cut(columns, 0.7)
    again = aiperf("report", done.artifacts)
    assert "Traceback" not in again.err
    assert done.json()["is_complete"] is False
    assert f"bytes of {columns.name} are damaged" in done.json()["incomplete_reason"]


def test_a_plan_cut_in_the_middle_is_refused_by_name(aiperf: Program, done: Done) -> None:
    cut(done.artifacts / "journal" / "run.json", 0.5)
    for command in ("report", "validate"):
        refused = aiperf(command, done.artifacts)
        assert refused.code == 1
        assert "journal/run.json can't be read" in refused.err


def theirs(directory: Path) -> dict[str, str]:
    """Files as the reference leaves them, none of them ours."""
    stats: dict[str, Any] = {"unit": "requests", "avg": 2.0}
    summary = {
        "schema_version": "1.4", "aiperf_version": "0.13.0", "benchmark_id": "be4a9683ef6c", "request_count": stats,
        "input_config": {}, "run_info": {}, "was_cancelled": False, "is_complete": True, "error_summary": [],
        "start_time": "2026-11-20T15:30:52.737015", "end_time": "2026-11-20T15:30:53.236669",
    }  # fmt: skip
    found = {
        "profile_export_aiperf.json": json.dumps(summary, indent=2),
        "profile_export_console.txt": "theirs",
        "inputs.json": '{"data": []}',
        ".aiperf_results_ready.json": '{"ready":true,"was_cancelled":false,"partial":false}',
    }
    for name, text in found.items():
        (directory / name).write_text(text)
    return found


def test_results_of_the_reference_are_replaced_with_a_warning(
    aiperf: Program, simulator: Simulator, tmp_path: Path
) -> None:
    directory = tmp_path / "theirs"
    directory.mkdir()
    before = theirs(directory)
    refused = aiperf("report", directory)
    assert refused.code == 1
    assert "no journal to compute them from: another tool wrote them" in refused.err
    line = ["profile", "--model", "m", "--tokenizer", "builtin", "--osl", "2", "--request-count", "2", "--ui", "none"]
    never = aiperf(*line, "--url", simulator.url, "--goodput", "bad:1", "--artifact-dir", directory)
    assert never.code == 2
    assert {name: (directory / name).read_text() for name in before} == before
    beside = {path.name for path in directory.iterdir()} - {"logs"}  # of a start that took long
    assert beside == set(before), "and nothing besides"
    ours = aiperf(*line, "--url", simulator.url, "--artifact-dir", directory)
    assert ours.code == 0, ours.err
    assert f"{directory} holds results of an earlier run, which this one replaces" in ours.err
    assert aiperf("validate", directory).code == 0


def test_a_report_over_results_warns_that_it_replaces_them(aiperf: Program, done: Done, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    first = aiperf("report", done.artifacts, "--output", elsewhere)
    assert first.code == 0, first.err
    assert "holds results already" not in first.err
    second = aiperf("report", done.artifacts, "--output", elsewhere)
    assert f"{elsewhere} holds results already, which these replace" in second.err


@pytest.fixture(scope="module")
def columns_alone(tmp_path_factory: pytest.TempPathFactory, shared_simulator: Simulator) -> Done:
    """A run whose answers are gone, as usual: only columns are left."""
    done = Program(tmp_path_factory.mktemp("columns"))(
        "profile", "--model", "m", "--url", shared_simulator.url, "--streaming", "--tokenizer", "builtin", "--isl", "10",
        "--osl", "6", "--request-rate", "20", "--request-count", str(REQUESTS), "--ui", "none",
    )  # fmt: skip
    assert done.code == 0, done.err
    assert segments(done) == [] and done.json()["is_complete"] is True
    return done


@pytest.fixture
def reduced(columns_alone: Done, tmp_path: Path) -> Done:
    return columns_alone.copy(tmp_path / "damaged")


def flip(path: Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


def assert_partial(done: Done, again: Done, *words: str) -> dict[str, Any]:
    """The report is partial, says why on stderr, and its arrivals add up."""
    report = done.json()
    assert again.code == 1 and report["is_complete"] is False
    assert f"aiperf: results are partial: {report['incomplete_reason']}" in again.err
    for word in words:
        assert word in report["incomplete_reason"]
    arrivals = report["measurement"]["arrivals"]
    assert arrivals["planned"] == REQUESTS == sum(arrivals[name] for name in ENDS)
    assert arrivals["never_sent"] == 0
    return dict(arrivals)


def test_a_report_without_the_columns_names_the_file_and_the_missing_requests(aiperf: Program, reduced: Done) -> None:
    drop(reduced, "columns-*")
    again = aiperf("report", reduced.artifacts)
    arrivals = assert_partial(reduced, again, "columns-0.0 is missing", f"{REQUESTS} of {REQUESTS} requests are in no file")
    assert arrivals["unknown"] == REQUESTS


def test_a_flipped_byte_in_the_columns_costs_one_batch(aiperf: Program, reduced: Done) -> None:
    (columns,) = (reduced.artifacts / "journal").glob("columns-*")
    flip(columns, 100)
    again = aiperf("report", reduced.artifacts)
    arrivals = assert_partial(reduced, again, f"bytes of {columns.name} are damaged", f"of {REQUESTS} requests are in no file")
    assert arrivals["unknown"] > 0


@pytest.mark.parametrize("frame", ["first", "middle"])
def test_a_flipped_byte_in_a_segment_damages_what_was_in_flight(aiperf: Program, done: Done, frame: str) -> None:
    drop(done, "columns-*", "summary.msgpack")
    (segment,) = segments(done)
    flip(segment, 60 if frame == "first" else segment.stat().st_size // 2)
    again = aiperf("report", done.artifacts)
    if frame == "first":  # it tells who wrote the file, and nothing of a request
        assert again.code == 0 and done.json()["is_complete"] is True
        return
    arrivals = assert_partial(done, again, f"{segment.name} lacks 1 frame")
    assert 0 < arrivals["damaged"] + arrivals["unknown"] < REQUESTS
    assert done.json()["request_count"]["avg"] == arrivals["completed"]
    assert all(line["outcome"] != "damaged" or "latency" not in line for line in done.lines("profile_export_arrivals.jsonl"))
