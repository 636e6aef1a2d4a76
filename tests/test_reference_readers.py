"""A run's files, read by code that knows the reference's files alone: field lists as somebody wrote them down for their own
scripts, strict where theirs would break."""

from __future__ import annotations

import csv
import io
import json
import re
from dataclasses import dataclass, fields
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from aiperf_command_simulate.testing import running
from program import Done, Program

PERCENTILES = ["p1", "p5", "p10", "p25", "p50", "p75", "p90", "p95", "p99"]
COLUMNS = ["avg", "min", "max", "sum", *PERCENTILES, "std"]
REQUESTS, WARMUPS = 40, 4


# What a stranger's script has


@dataclass
class Stats:
    unit: str
    avg: float | None = None
    p1: float | None = None
    p5: float | None = None
    p10: float | None = None
    p25: float | None = None
    p50: float | None = None
    p75: float | None = None
    p90: float | None = None
    p95: float | None = None
    p99: float | None = None
    min: float | None = None
    max: float | None = None
    std: float | None = None
    count: int | None = None
    sum: float | None = None


@dataclass
class ErrorDetails:
    message: str
    code: int | None = None
    type: str | None = None
    cause: str | None = None
    cause_chain: list[str] | None = None
    details: Any = None


@dataclass
class Metadata:
    session_num: int
    x_request_id: str
    x_correlation_id: str
    conversation_id: str
    turn_index: int
    credit_issued_ns: int
    request_start_ns: int
    request_end_ns: int
    worker_id: str
    record_processor_id: str
    benchmark_phase: str
    phase_index: int
    phase_name: str
    phase_kind: str
    was_cancelled: bool
    context_overflow_skip: bool
    agent_depth: int
    root_correlation_id: str
    request_ack_ns: int | None = None
    profiling_index: int | None = None
    cancellation_time_ns: int | None = None


SUMMARY_FIELDS = {
    "schema_version": str, "aiperf_version": str, "benchmark_id": str, "input_config": dict, "run_info": dict,
    "was_cancelled": bool, "is_complete": bool, "error_summary": list, "start_time": str, "end_time": str,
}  # fmt: skip
SENDING = ("request_send_start_ns", "request_headers_sent_ns", "request_send_end_ns")
RECEIVING = ("request_headers_sent_ns", "response_receive_start_ns", "response_receive_end_ns")


UNITS = {
    "requests/sec": "goodput request_throughput",
    "ms": (
        "decode_duration http_req_blocked http_req_connecting http_req_connection_overhead http_req_dns_lookup"
        " http_req_duration http_req_receiving http_req_sending http_req_total http_req_waiting inter_chunk_latency"
        " inter_token_latency request_latency time_to_first_output_token time_to_first_token time_to_second_token"
    ),
    "requests": (
        "completed_request_count effective_concurrency effective_decode_concurrency effective_prefill_concurrency"
        " error_request_count good_request_count osl_mismatch_count request_count usage_discrepancy_count"
    ),
    "tokens/sec": (
        "active_decode_throughput active_prefill_throughput active_total_throughput effective_decode_throughput"
        " effective_prefill_throughput effective_total_throughput input_token_throughput output_token_throughput"
        " total_token_throughput"
    ),
    "tokens/sec/user": (
        "active_decode_throughput_per_user active_prefill_throughput_per_user e2e_output_token_throughput"
        " effective_decode_throughput_per_user effective_prefill_throughput_per_user output_token_throughput_per_user"
        " prefill_throughput_per_user"
    ),
    "tokens": (
        "error_isl input_sequence_length output_sequence_length output_token_count tokens_in_flight total_error_isl total_isl"
        " total_osl total_output_tokens total_usage_completion_tokens total_usage_prompt_cache_read_tokens"
        " total_usage_prompt_tokens total_usage_total_tokens usage_completion_tokens usage_prompt_cache_read_tokens"
        " usage_prompt_tokens usage_total_tokens"
    ),
    "sec": "benchmark_duration",
    "count": "http_req_chunks_received",
    "KB": "http_req_data_received http_req_data_sent",
    "ratio": "good_request_fraction http_req_connection_reused",
    "%": (
        "osl_mismatch_diff_pct overall_usage_prompt_cache_read_pct request_error_rate usage_completion_tokens_diff_pct"
        " usage_prompt_tokens_diff_pct"
    ),
}
UNIT_OF = {tag: unit for unit, tags in UNITS.items() for tag in tags.split()}
"""Of every metric in an ordinary streaming chat run."""
OF_THE_RUN = {
    "benchmark_duration", "completed_request_count", "error_request_count", "goodput", "good_request_fraction",
    "input_token_throughput", "osl_mismatch_count", "output_token_throughput", "overall_usage_prompt_cache_read_pct",
    "request_count", "request_error_rate", "request_throughput", "total_error_isl", "total_isl", "total_osl",
    "total_output_tokens", "total_token_throughput", "total_usage_completion_tokens",
    "total_usage_prompt_cache_read_tokens", "total_usage_prompt_tokens", "total_usage_total_tokens",
    "usage_discrepancy_count",
}  # fmt: skip
"""Of no single request."""
HEADINGS = [  # as the tables of the CSV name those that aren't simply their tags in capitals
    "Completed Requests (Success + Error)", "E2E Output Token Throughput (tokens/sec/user)", "GoodRequestFraction (ratio)",
    "HTTP Blocked (ms)", "HTTP Chunks Received", "HTTP Connection Reused (ratio)", "HTTP Data Received (KB)",
    "HTTP DNS Lookup (ms)", "HTTP Duration (excl. conn) (ms)", "HTTP Total Time (ms)", "HTTP Waiting (TTFB) (ms)",
    "OSL Mismatch Count", "OSL Mismatch Diff % (%)", "Output Token Throughput Per User (tokens/sec/user)",
    "Overall Usage Prompt Cache Read % (%)", "Request Count", "Request Error Rate (%)", "Time to First Token (ms)",
    "Tokens In Flight (tokens)", "Total Input Sequence Length (tokens)", "Usage Completion Diff % (%)",
    "Usage Prompt Diff % (%)",
]  # fmt: skip
SECTIONS = {"artifacts": {"dir", "prefix", "summary", "records", "raw", "trace", "slice_duration", "show_trace_timing"},
    "datasets": {"name", "type", "entries", "sampling", "path", "format"}, "runtime": {"ui", "workers", "record_processors"},
    "endpoint": {"urls", "url_strategy", "type", "path", "api_key", "timeout", "streaming", "connection_reuse", "headers",
                 "extra", "session_header", "use_server_token_count"}}  # fmt: skip


def known(cls: type, found: dict[str, Any]) -> Any:
    """An object of the fields that the script knows; others are none of its business, missing ones break it."""
    return cls(**{field.name: found[field.name] for field in fields(cls) if field.name in found})


def read_metric(found: dict[str, Any]) -> Stats:
    """Stats, and nothing that isn't: scripts splat these.  A gap around a merged read has bounds, too (docs/differences.md)."""
    return Stats(**{name: value for name, value in found.items() if name not in ("lower", "upper")})


def read_records(path: Path) -> list[tuple[Metadata, dict[str, Any], ErrorDetails | None, dict[str, Any]]]:
    rows = []
    for text in path.read_text(encoding="utf-8").splitlines():
        record = json.loads(text)
        assert set(record) <= {"metadata", "metrics", "trace_data", "spec_decode_acceptance", "server_timing", "error"}
        error = known(ErrorDetails, record["error"]) if "error" in record else None
        values = {tag: found["value"] for tag, found in record["metrics"].items() if isinstance(found["unit"], str)}
        rows.append((known(Metadata, record["metadata"]), values, error, record.get("trace_data", {})))
    return rows


def read_tables(path: Path) -> tuple[list[dict[str, str]], dict[str, str]]:
    """Sections stand apart by one empty row; rows end in CR LF."""
    text = path.read_bytes().decode()
    spread, single = text.rstrip("\r\n").split("\r\n\r\n")[:2]
    return list(csv.DictReader(io.StringIO(spread))), dict(list(csv.reader(io.StringIO(single)))[1:])


# The run


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Done:
    aiperf = Program(tmp_path_factory.mktemp("readers"))
    with running(faults=["fail=429@0.2"], first_token_ms=5, decode_ms=10, seed=5) as simulator:
        done = aiperf(
            "profile", "--model", "m", "--url", simulator.url, "--streaming", "--tokenizer", "builtin", "--isl", 20, "--osl", 8,
            "--concurrency", 4, "--request-count", REQUESTS, "--warmup-request-count", WARMUPS, "--random-seed", 7,
            "--export-level", "raw", "--export-http-trace", "--slice-duration", 0.1, "--header", "X-Team: hush", "--ui", "none",
            "--goodput", "request_latency:1000",
        )  # fmt: skip
    assert done.code == 0, done.err
    return done


@pytest.fixture(scope="module")
def summary(done: Done) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((done.artifacts / "profile_export_aiperf.json").read_text())
    return found


@pytest.fixture(scope="module")
def records(done: Done) -> list[Any]:
    return read_records(done.artifacts / "profile_export.jsonl")


def test_the_files_are_there_under_their_names(done: Done) -> None:
    names = {path.name for path in done.artifacts.iterdir()}
    assert {
        "profile_export_aiperf.json", "profile_export_aiperf.csv", "profile_export.jsonl", "profile_export_raw.jsonl",
        "inputs.json",
        "profile_export_aiperf_timeslices.csv", "profile_export_aiperf_timeslices.json", "profile_export_console.txt", "logs",
        ".aiperf_results_ready.json",
    } <= names  # fmt: skip
    assert (done.artifacts / "logs" / "aiperf.log").stat().st_size > 0
    marker = json.loads((done.artifacts / ".aiperf_results_ready.json").read_text())
    assert (marker["ready"], marker["was_cancelled"], marker["partial"]) == (True, False, False)


def test_the_summary_has_its_fields_and_every_metric_is_one(summary: dict[str, Any]) -> None:
    for name, kind in SUMMARY_FIELDS.items():
        assert isinstance(summary[name], kind), name
    assert summary["schema_version"].startswith("1.")
    assert datetime.fromisoformat(summary["start_time"]) < datetime.fromisoformat(summary["end_time"])
    assert summary["run_info"].keys() >= {"benchmark_id", "trial", "cli_command"}
    for tag in ("request_latency", "time_to_first_token", "inter_token_latency", "output_sequence_length"):
        stats = read_metric(summary[tag])
        assert stats.count is not None and stats.p50 is not None and stats.sum is not None, tag
    for tag in ("request_throughput", "request_count", "error_request_count", "benchmark_duration"):
        assert summary[tag].keys() == {"unit", "avg"}, tag
    for tag, found in summary["warmup_metrics"].items():
        assert read_metric(found).unit == summary.get(tag, found)["unit"]
    assert summary["input_config"]["models"]["items"][0]["name"] == "m"
    assert summary["input_config"]["phases"][-1]["concurrency"] == 4
    (error,) = summary["error_summary"]
    assert known(ErrorDetails, error["error_details"]).code == 429
    assert error["count"] == summary["error_request_count"]["avg"]


def test_every_metric_has_the_unit_it_always_had(done: Done, summary: dict[str, Any]) -> None:
    assert {tag: summary[tag]["unit"] for tag in UNIT_OF if tag in summary} == UNIT_OF
    slices = json.loads((done.artifacts / "profile_export_aiperf_timeslices.json").read_text())["timeslices"]
    for one in slices:
        units = {tag: found["unit"] for tag, found in one.items() if tag in UNIT_OF}
        assert units == {tag: UNIT_OF[tag] for tag in units}
    assert {tag for one in slices for tag in one} >= {"request_latency", "goodput", "total_osl", "effective_concurrency"}


def test_every_value_of_a_request_has_the_unit_it_always_had(done: Done) -> None:
    units: dict[str, str] = {}
    for line in done.lines("profile_export.jsonl"):
        units |= {tag: found["unit"] for tag, found in line["metrics"].items()}
    over_time = [tag for tag in UNIT_OF if tag.startswith(("effective_", "active_", "tokens_in_flight"))]
    wanted = UNIT_OF.keys() - OF_THE_RUN - set(over_time)
    assert {tag: units.get(tag) for tag in wanted} == {tag: UNIT_OF[tag] for tag in wanted}
    assert not units.keys() & {*OF_THE_RUN, *over_time}


def test_the_configuration_has_only_sections_that_readers_accept(
    summary: dict[str, Any],
) -> None:
    config = summary["input_config"]
    for name, allowed in SECTIONS.items():
        for section in config[name] if isinstance(config[name], list) else [config[name]]:
            assert section.keys() <= allowed, name
    assert config.keys() <= {"models", "endpoint", "datasets", "phases", "artifacts", "slos", "tokenizer", "runtime"}
    assert config["artifacts"]["records"] == ["jsonl"]
    assert (config["artifacts"]["raw"], config["artifacts"]["trace"]) == (True, True)
    assert [phase["kind"] for phase in config["phases"]] == ["warmup", "profiling"]


def test_every_record_can_be_read_and_they_come_to_the_summary(records: list[Any], summary: dict[str, Any]) -> None:
    profiling = [row for row in records if row[0].benchmark_phase == "profiling"]
    good = [row for row in profiling if row[2] is None]
    assert len(records) == REQUESTS + WARMUPS
    assert len(good) == summary["request_count"]["avg"]
    assert len(profiling) - len(good) == summary["error_request_count"]["avg"]
    for data, values, error, _ in records:
        assert data.credit_issued_ns <= data.request_start_ns <= data.request_end_ns
        assert (data.profiling_index is None) == (data.benchmark_phase == "warmup")
        if error is None:
            assert values["request_latency"] == pytest.approx((data.request_end_ns - data.request_start_ns) / 1e6, abs=1.0)
            assert isinstance(values["inter_chunk_latency"], list)
    latencies = sorted(values["request_latency"] for _, values, _, _ in good)
    stats = read_metric(summary["request_latency"])
    assert (stats.min, stats.max, stats.count) == (latencies[0], latencies[-1], len(latencies))


def test_traces_tell_the_exchange_and_no_secret(records: list[Any]) -> None:
    for data, values, error, trace in records:
        for names in (SENDING, RECEIVING):
            instants = [trace[name] for name in names]
            assert instants == sorted(instants)
        assert trace["request_headers"]["X-Request-ID"] == data.x_request_id
        assert trace["request_headers"]["X-Team"] == "<redacted>"
        assert trace["response_status_code"] == (200 if error is None else 429)
        assert trace["response_headers"]
        if error is None:
            assert sum(size for _, size in trace["response_chunks"]) == trace["response_bytes_total"]
            assert trace["response_chunks_count"] == len(trace["response_chunks"]) > 2
            assert values["time_to_first_token"] > 0


def test_raw_records_hold_what_was_sent_and_every_event(done: Done, records: list[Any]) -> None:
    lines = [json.loads(line) for line in (done.artifacts / "profile_export_raw.jsonl").read_text().splitlines()]
    assert [line["metadata"]["x_request_id"] for line in lines] == [data.x_request_id for data, *_ in records]
    for line, (_, values, error, _) in zip(lines, records, strict=True):
        assert line["payload"]["model"] == "m"
        assert line["request_headers"]["Content-Type"] == "application/json"
        assert (error is None) == ("error" not in line) == bool(line["responses"])
        if error is not None:
            continue
        events = [packet["value"] for one in line["responses"] for packet in one["packets"] if packet["name"] == "data"]
        assert events[-1] == "[DONE]"
        deltas = [json.loads(event)["choices"] for event in events[:-1]]
        text = [choice["delta"].get("content") for choices in deltas for choice in choices]
        assert len([piece for piece in text if piece]) == values["output_sequence_length"] == 8
        first = next(one for one, piece in zip(line["responses"], text, strict=False) if piece)
        least, most = (first.get("after_perf_ns", first["perf_ns"]), first["perf_ns"])  # apart where reads merged
        latency_ms = [(at - line["start_perf_ns"]) / 1e6 for at in (least, most)]
        assert latency_ms[0] - 1e-5 <= values["time_to_first_token"] <= latency_ms[1] + 1e-5


def test_inputs_are_found_by_conversation_and_turn(done: Done, records: list[Any]) -> None:
    inputs = json.loads((done.artifacts / "inputs.json").read_text())
    assert set(inputs) == {"data"}
    payloads = {entry["session_id"]: entry["payloads"] for entry in inputs["data"]}
    raw = [json.loads(line) for line in (done.artifacts / "profile_export_raw.jsonl").read_text().splitlines()]
    for (data, *_), line in zip(records, raw, strict=True):
        assert payloads[data.conversation_id][data.turn_index] == line["payload"]


def test_the_csv_has_its_sections_and_the_jsons_numbers(done: Done, summary: dict[str, Any]) -> None:
    spread, single = read_tables(done.artifacts / "profile_export_aiperf.csv")
    assert list(spread[0]) == ["Metric", *COLUMNS]
    by_name = {row["Metric"]: row for row in spread}
    for name, tag in (("Request Latency (ms)", "request_latency"), ("Time to First Token (ms)", "time_to_first_token")):
        for key in COLUMNS:
            assert float(by_name[name][key]) == pytest.approx(summary[tag][key], abs=0.005001)
    throughput = float(single["Request Throughput (requests/sec)"])
    assert throughput == pytest.approx(summary["request_throughput"]["avg"], abs=0.005001)
    assert float(single["Request Count"]) == summary["request_count"]["avg"]
    assert [heading for heading in HEADINGS if heading not in by_name and heading not in single] == []


def test_time_slices_are_read_from_both_files(done: Done, summary: dict[str, Any]) -> None:
    content = json.loads((done.artifacts / "profile_export_aiperf_timeslices.json").read_text())
    assert {"timeslices", "input_config"} <= set(content)
    slices = content["timeslices"]
    for one in slices:
        assert one["start_ns"] < one["end_ns"]
        metrics = {name: value for name, value in one.items() if isinstance(value, dict) and "unit" in value}
        assert all(read_metric(found) for found in metrics.values())
    counts = [one["request_count"]["avg"] for one in slices if "request_count" in one]
    assert sum(counts) == summary["request_count"]["avg"]
    text = (done.artifacts / "profile_export_aiperf_timeslices.csv").read_text()
    rows = list(csv.DictReader(io.StringIO(text)))
    assert list(rows[0]) == ["Timeslice", "Start_NS", "End_NS", "Metric", "Unit", "Stat", "Value"]
    for row in rows:
        assert int(row["Start_NS"]) == slices[int(row["Timeslice"])]["start_ns"]
        assert re.fullmatch(r"-?\d+(\.\d+)?", row["Value"])


def test_the_directory_is_valid_and_no_schema_of_ours_breaks(done: Done, tmp_path: Path) -> None:
    found = Program(tmp_path)("validate", done.artifacts, "--json")
    assert json.loads(found.out)["faults"] == []
    assert found.code == 0
