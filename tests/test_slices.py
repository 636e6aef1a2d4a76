"""Slices, URLs and what came of each request, in a run's own files and in a report made of them afterwards."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from aiperf_command_simulate.testing import running
from program import Done, Program


def sliced(done: Done) -> list[dict[str, Any]]:
    document = json.loads((done.artifacts / "profile_export_aiperf_timeslices.json").read_text())
    found: list[dict[str, Any]] = document["timeslices"]
    return found


def total(slices: list[dict[str, Any]], tag: str) -> float:
    return float(sum(one[tag]["avg"] for one in slices if tag in one))


def assert_valid(aiperf: Program, done: Done) -> None:
    judged = aiperf("validate", done.artifacts)
    assert judged.code == 0, judged.out


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Done:
    """A run at two URLs, the second of which cuts every answer short."""
    with running(first_token_ms=15, decode_ms=5) as whole, running(first_token_ms=15, faults=["cut=3"]) as cutting:
        done = Program(tmp_path_factory.mktemp("sliced"))(
            "profile", "--model", "sim", "--url", whole.url, "--url", cutting.url, "--tokenizer", "builtin", "--isl", "20",
            "--osl", "12", "--streaming", "--request-rate", "80", "--request-count", "80", "--random-seed", "5",
            "--slice-duration", "0.25", "--ui", "none",
        )  # fmt: skip
        assert done.code == 0, done.err
        assert (whole.summary()["requests"], cutting.summary()["requests"]) == (40, 40)
    return done


def test_slices_add_up_to_the_run_and_start_with_the_phase(done: Done) -> None:
    summary, slices = done.json(), sliced(done)
    begin = slices[0]["start_ns"]
    assert [one["start_ns"] for one in slices] == [begin + i * 250_000_000 for i in range(len(slices))]
    assert [one["end_ns"] for one in slices[:-1]] == [one["start_ns"] for one in slices[1:]]
    assert sum(one["started"] for one in slices) == 80
    assert total(slices, "request_count") == summary["request_count"]["avg"] == 40
    assert total(slices, "total_osl") == summary["total_osl"]["avg"] == 480
    assert total(slices, "error_request_count") == 40
    chunks = sum(one["inter_chunk_latency"]["count"] for one in slices if "inter_chunk_latency" in one)
    assert chunks == summary["inter_chunk_latency"]["count"]
    for one in slices:
        width_s = (one["end_ns"] - one["start_ns"]) / 1e9
        assert one["request_throughput"]["avg"] * width_s == pytest.approx(one["request_count"]["avg"])
        assert one["output_token_throughput"]["avg"] * width_s == pytest.approx(one["total_osl"]["avg"])
    rows = list(csv.DictReader((done.artifacts / "profile_export_aiperf_timeslices.csv").read_text().splitlines()))
    counts = [float(row["Value"]) for row in rows if (row["Metric"], row["Stat"]) == ("Request Count", "avg")]
    assert counts == [one["request_count"]["avg"] for one in slices]


def test_urls_and_kinds_of_failure_have_their_own_numbers(
    aiperf: Program, done: Done
) -> None:
    assert_valid(aiperf, done)
    summary = done.json()
    whole, cutting = summary["urls"]
    assert (whole["started"], whole["outcomes"], whole["error_summary"]) == (40, {"completed": 40}, [])
    assert (cutting["started"], cutting["outcomes"]) == (40, {"cut": 40})
    assert sum(one["count"] for one in cutting["error_summary"]) == 40
    assert summary["outcomes"] == {"completed": 40, "cut": 40}
    assert whole["metrics"]["time_to_first_token"] == summary["time_to_first_token"]
    assert "time_to_first_token" not in cutting["metrics"]
    throughputs = [one["metrics"].get("request_throughput", {"avg": 0})["avg"] for one in summary["urls"]]
    assert sum(throughputs) == pytest.approx(summary["request_throughput"]["avg"])
    worse = summary["adj_request_latency"]
    assert worse["count"] == 80
    assert worse["p25"] >= summary["request_latency"]["p25"] and "p75" not in worse and "avg" not in worse


def test_a_report_changes_slices_without_a_server(aiperf: Program, done: Done) -> None:
    done = done.copy(aiperf.folder / "again")
    before, slices = done.json(), sliced(done)
    again = aiperf("report", done.artifacts, "--slice-duration", "0.125")
    assert again.code == 0, again.err
    after, finer = done.json(), sliced(done)
    assert finer[0]["start_ns"] == slices[0]["start_ns"]
    assert abs(len(finer) - 2 * len(slices)) <= 1
    pairs = [finer[i : i + 2] for i in range(0, len(finer), 2)]
    for tag in ("request_count", "total_osl", "error_request_count"):
        assert [total(pair, tag) for pair in pairs] == [total([one], tag) for one in slices]
    assert after.pop("input_config")["artifacts"]["slice_duration"] == 0.125
    assert before.pop("input_config")["artifacts"]["slice_duration"] == 0.25
    assert after == before


def test_requests_cut_off_at_the_end_lasted_at_least_so_long(aiperf: Program) -> None:
    """Answers take 0.1 s, every fourth 30 s; the run ends after one."""
    with running(first_token_ms=90, decode_ms=5, faults=["stall=2:30@0.25"]) as simulator:
        done = aiperf(
            "profile", "--model", "sim", "--url", simulator.url, "--tokenizer", "builtin", "--isl", "20", "--osl", "3",
            "--streaming", "--concurrency", "8", "--benchmark-duration", "1.2", "--benchmark-grace-period", "0", "--ui", "none",
            "--random-seed", "5",
        )  # fmt: skip
    assert done.code == 0, done.err
    summary = done.json()
    aborted = summary["outcomes"]["aborted"]
    assert aborted > 0
    survival = summary["survival"]["request_latency"]
    assert survival["censored"] == aborted
    assert survival["count"] == aborted + summary["request_count"]["avg"]
    assert survival.get("p90", 1e9) > 1.5 * summary["request_latency"]["p90"]
    assert "requests in flight at the end" in done.out
    assert_valid(aiperf, done)


def test_results_of_another_tool_are_refused(aiperf: Program, tmp_path: Path) -> None:
    (tmp_path / "profile_export_aiperf.json").write_text('{"schema_version": "1.4", "aiperf_version": "0.13.0"}')
    done = aiperf("report", tmp_path)
    assert done.code == 1
    assert "no journal to compute them from" in done.err
