"""A good run's files, edited as somebody might who wants other numbers: ``aiperf validate`` notices each edit."""

from __future__ import annotations

import csv
import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest.mock import ANY

import pytest
from aiperf.registry.registry import Registry
from aiperf.results import open_run
from aiperf_command_simulate.testing import running
from aiperf_command_validate import journal
from aiperf_command_validate.faults import Faults
from aiperf_command_validate.results import Findings, check
from aiperf_command_validate.schemas import Check, schemas
from program import Program

parquet = pytest.importorskip("pyarrow.parquet")

JSON, CSV = "profile_export_aiperf.json", "profile_export_aiperf.csv"
RECORDS, RAW, ARRIVALS = "profile_export.jsonl", "profile_export_raw.jsonl", "profile_export_arrivals.jsonl"
SLICES, SLICES_CSV = "profile_export_aiperf_timeslices.json", "profile_export_aiperf_timeslices.csv"
INPUTS, CONSOLE, PARQUET = "inputs.json", "profile_export_console.txt", "profile_export.parquet"

Edit = Callable[[Path], None]


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two workers and reducers, a warmup, failed requests, time slices, raw records, traces, Parquet.

    Without traces only the journal has when a failed request was over: its record ends with its last byte.
    """
    aiperf = Program(tmp_path_factory.mktemp("good"), parquet=True)
    aiperf.environment["AIPERF_WORKERS"] = "2"
    with running(first_token_ms=6, decode_ms=2, decode_batch_us=0, faults=["fail=500@0.1"]) as simulator:
        done = aiperf(
            "profile", "--model", "sim", "--url", simulator.url, "--tokenizer", "builtin", "--isl", "20", "--osl", "8",
            "--streaming", "--request-rate", "80", "--request-count", "48", "--warmup-request-count", "3", "--random-seed", "5",
            "--slice-duration", "0.25", "--export-level", "raw", "--export-http-trace", "--workers-max", "2",
            "--record-processors", "2", "--ui", "none",
        )  # fmt: skip
    assert done.code == 0, done.err
    assert done.json()["error_request_count"]["avg"] > 0
    return done.artifacts


def document(name: str, change: Callable[[dict[str, Any]], object]) -> Edit:
    def edit(directory: Path) -> None:
        path = directory / name
        content = json.loads(path.read_bytes())
        change(content)
        path.write_text(json.dumps(content, indent=2))

    return edit


def statistic(tag: str, name: str, change: Callable[[float], float], *files: str) -> Edit:
    """Another number under *tag* in the JSON, and in the CSV where *files* names it."""

    def edit(directory: Path) -> None:
        path = directory / JSON
        content = json.loads(path.read_bytes())
        content[tag][name] = change(content[tag].get(name, 1000.0))
        path.write_text(json.dumps(content, indent=2))
        if CSV in files:
            cell(directory / CSV, TITLES[tag], name, f"{content[tag][name]:.2f}")

    return edit


TITLES = {
    "time_to_first_token": "Time to First Token (ms)",
    "adj_time_to_first_token": "Time to First Token (error-adjusted) (ms)",
    "inter_chunk_latency": "Inter Chunk Latency (ms)",
    "effective_concurrency": "Effective Concurrency",
    "request_throughput": "Request Throughput (requests/sec)",
    "total_token_throughput": "Total Token Throughput (tokens/sec)",
    "total_osl": "Total Output Sequence Length (tokens)",
    "request_error_rate": "Request Error Rate (%)",
}


def cell(path: Path, title: str, name: str, text: str) -> None:
    with path.open(newline="") as file:
        rows = list(csv.reader(file))
    header: list[str] = []
    changed = 0
    for row in rows:
        if row[:1] == ["Metric"]:
            header = row
        if row[:1] == [title]:
            row[header.index(name) if name in header else 1] = text
            changed += 1
    assert changed == 1, f"{title}: {sorted(row[0] for row in rows if row)}"
    with path.open("w", newline="") as file:
        csv.writer(file).writerows(rows)


def lines(name: str, change: Callable[[list[Any]], object]) -> Edit:
    """Edits the list of a file's lines, each of them read."""

    def edit(directory: Path) -> None:
        path = directory / name
        content = [json.loads(line) for line in path.read_bytes().splitlines()]
        change(content)
        path.write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in content))

    return edit


def good_line(content: list[Any]) -> Any:
    """A request of the profiling phase that succeeded."""
    return next(line for line in content[10:] if "error" not in line and line["metadata"]["benchmark_phase"] == "profiling")


def value(tag: str, change: Callable[[float], float]) -> Edit:
    def apply(content: list[Any]) -> None:
        metric = good_line(content)["metrics"][tag]
        metric["value"] = change(metric["value"])

    return lines(RECORDS, apply)


def arrival(field: str, change: Callable[[Any], Any], outcome: str = "completed") -> Edit:
    def apply(content: list[Any]) -> None:
        row = next(row for row in content if row["phase"] == "profiling" and row["outcome"] == outcome)
        row[field] = change(row[field])

    return lines(ARRIVALS, apply)


def text(name: str, change: Callable[[str], str]) -> Edit:
    def edit(directory: Path) -> None:
        path = directory / name
        before = path.read_bytes().decode()
        after = change(before)
        assert after != before
        path.write_bytes(after.encode())

    return edit


def flipped(directory: Path) -> None:
    """One bit of the data of a column."""
    path = directory / PARQUET
    group = parquet.ParquetFile(path).metadata.row_group(0)
    columns = (group.column(number) for number in range(group.num_columns))
    chunk = next(column for column in columns if column.path_in_schema == "request_latency")
    content = bytearray(path.read_bytes())
    content[chunk.data_page_offset + chunk.total_compressed_size // 2] ^= 1
    path.write_bytes(content)


def put(*path: Any, to: Any) -> Callable[[Any], None]:
    def apply(content: Any) -> None:
        for step in path[:-1]:
            content = content[step]
        assert content[path[-1]] != to
        content[path[-1]] = to

    return apply


def later_chunk(content: list[Any]) -> None:
    """By half of the time to the next one."""
    pairs = (pair for line in content[10:] for pair in pairwise(line["responses"][1:]))
    one, after = next((one, after) for one, after in pairs if after["perf_ns"] - one["perf_ns"] > 10_000)
    one["perf_ns"] += (after["perf_ns"] - one["perf_ns"]) // 2


def other_word(content: list[Any]) -> None:
    """As long as before, so that no number of bytes changes."""
    packet = next(line for line in content[10:] if len(line["responses"]) > 6)["responses"][4]["packets"][0]
    before = packet["value"]
    packet["value"] = before.replace('"content":" ', '"content":"_')
    assert packet["value"] != before


def less(factor: float) -> Callable[[float], float]:
    return lambda number: number * factor


def another_number(report: str) -> str:
    at = report.index("Time to First Token (ms)")
    digit = next(i for i in range(at, len(report)) if report[i].isdigit())
    return report[:digit] + str((int(report[digit]) + 1) % 10) + report[digit + 1 :]


def other_cell(table: str) -> str:
    rows = table.split("\n")
    at = next(i for i, row in enumerate(rows) if row.startswith("Time to First Token (ms)"))
    rows[at] = ",".join(["Time to First Token (ms)", "1.00", *rows[at].split(",")[2:]])
    return "\n".join(rows)


def without_row(table: str) -> str:
    return "\n".join(row for row in table.split("\n") if not row.startswith("Inter Token Latency"))


def without_slice_row(table: str) -> str:
    rows = table.split("\n")
    return "\n".join([*rows[:5], *rows[6:]])


EDITS: dict[str, Edit] = {
    "json TTFT avg +10%": statistic("time_to_first_token", "avg", less(1.1)),
    "json TTFT p99 +10%": statistic("time_to_first_token", "p99", less(1.1)),
    "json TTFT avg +0.002 ms": statistic("time_to_first_token", "avg", lambda ms: ms + 0.002),
    "json+csv TTFT p50 -30%": statistic("time_to_first_token", "p50", less(0.7), CSV),
    "json+csv TTFT avg -30%": statistic("time_to_first_token", "avg", less(0.7), CSV),
    "json+csv TTFT std -30%": statistic("time_to_first_token", "std", less(0.7), CSV),
    "json+csv ICL p99 -30%": statistic("inter_chunk_latency", "p99", less(0.7), CSV),
    "json+csv effective_concurrency avg x2": statistic("effective_concurrency", "avg", less(2.0), CSV),
    "json+csv request_throughput +10%": statistic("request_throughput", "avg", less(1.1), CSV),
    "json+csv total_token_throughput +10%": statistic("total_token_throughput", "avg", less(1.1), CSV),
    "json+csv total_osl +10%": statistic("total_osl", "avg", less(1.1), CSV),
    "json+csv request_error_rate 0": statistic("request_error_rate", "avg", less(0.0), CSV),
    "json+csv adj TTFT p99": statistic("adj_time_to_first_token", "p99", less(0.7), CSV),
    "json verdict": document(JSON, lambda content: content["measurement"].update(
        verdict="trustworthy" if content["measurement"]["verdict"] == "suspect" else "suspect")),
    "json client_error p99 0": document(JSON, put("measurement", "client_error_ms", "p99", to=0.0)),
    "json is_complete false": document(JSON, put("is_complete", to=False)),
    "json unit of TTFT s": document(JSON, put("time_to_first_token", "unit", to="sec")),
    "json error_summary count 1": document(JSON, put("error_summary", 0, "count", to=1)),
    "json benchmark_duration x2": statistic("benchmark_duration", "avg", less(2.0)),
    "json on_time_share 1": document(JSON, put("delivered_load", "on_time_share", to=0.123)),
    "json schema_version": document(JSON, put("schema_version", to="1.3")),
    "csv cell": text(CSV, other_cell),
    "csv delete a row": text(CSV, without_row),
    "jsonl TTFT +1us": value("time_to_first_token", lambda ms: ms + 0.001),
    "jsonl TTFT +10%": value("time_to_first_token", less(1.1)),
    "jsonl request_start_ns -1ms": lines(RECORDS, lambda content: good_line(content)["metadata"].update(
        request_start_ns=good_line(content)["metadata"]["request_start_ns"] - 1_000_000)),
    "jsonl unit": lines(RECORDS, lambda content: put("metrics", "time_to_first_token", "unit", to="s")(good_line(content))),
    "jsonl delete line": lines(RECORDS, lambda content: content.pop(20)),
    "jsonl duplicate line": lines(RECORDS, lambda content: content.insert(20, content[20])),
    "jsonl swap order": lines(RECORDS, lambda content: content.insert(5, content.pop(20))),
    "jsonl truncate": text(RECORDS, lambda content: content[:-200]),
    "raw delete line": lines(RAW, lambda content: content.pop(20)),
    "raw perf_ns of chunk": lines(RAW, later_chunk),
    "raw content text": lines(RAW, other_word),
    "arrivals delete line": lines(ARRIVALS, lambda content: content.pop(20)),
    "arrivals outcome": arrival("outcome", lambda _: "error"),
    "arrivals due_ns +1ms": arrival("due_ns", lambda at: at + 1_000_000),
    "arrivals last_byte +1ms": arrival("last_byte_ns", lambda at: at + 1_000_000),
    "arrivals ended +1ms": arrival("ended_ns", lambda at: at + 1_000_000),
    "arrivals ended of a failed request +1ms": arrival("ended_ns", lambda at: at + 1_000_000, "error"),
    "timeslices throughput": document(SLICES, put("timeslices", 1, "request_throughput", "avg", to=1.0)),
    "timeslices started": document(SLICES, put("timeslices", 1, "started", to=1)),
    "timeslices csv row deleted": text(SLICES_CSV, without_slice_row),
    "timeslices slice removed": document(SLICES, lambda content: content["timeslices"].pop(1)),
    "inputs conversation removed": document(INPUTS, lambda content: content["data"].pop(1)),
    "inputs prompt text": document(INPUTS, put("data", 1, "payloads", 0, "messages", 0, "content", to="Another prompt.")),
    "console number": text(CONSOLE, another_number),
    "console deleted": lambda directory: (directory / CONSOLE).unlink(),
    "parquet flipped": flipped,
}  # fmt: skip


def shadowed(directory: Path) -> None:
    """Another request count before the true one: readers that keep the first value see it."""
    path = directory / JSON
    path.write_text(path.read_text().replace("{", '{"request_count": {"unit": "requests", "avg": 9000}, ', 1))


def shadowed_line(directory: Path) -> None:
    path = directory / RECORDS
    path.write_text(path.read_text().replace('{"metadata":{', '{"metadata":{"session_num":900,', 1))


def written(name: str, content: str) -> Edit:
    def edit(directory: Path) -> None:
        (directory / name).write_text(content)

    return edit


def another_header(table: str) -> str:
    return table.replace("Metric,Value", "Metric,Value,Median", 1)


def longer_row(table: str) -> str:
    title = "Total Output Sequence Length (tokens),"
    at = table.index("\r\n", table.index(title))
    return f"{table[:at]},7{table[at:]}"


# Nothing of these is in the report of a journal.
BESIDE: dict[str, Edit] = {
    "a key put before its double": shadowed,
    "a key of a line put before its double": shadowed_line,
    "a cell more in the CSV's header": text(CSV, another_header),
    "a cell more in the CSV's long header": text(CSV, lambda table: table.replace(",std", ",std,mad", 1)),
    "a cell more in a row of the CSV": text(CSV, longer_row),
    "a cell more in the header of time slices": text(SLICES_CSV, lambda table: table.replace("\r\n", ",mad\r\n", 1)),
    "another run's file": written("profile_export_extra.json", "{}"),
    "the marker emptied": written(".aiperf_results_ready.json", ""),
    "the marker without a word": written(".aiperf_results_ready.json", "{}"),
}
OF_THE_WHOLE: dict[str, Edit] = {
    "a file of columns deleted": lambda directory: next((directory / "journal").glob("columns-0.*")).unlink(),
    "a file of columns cut": lambda directory: os.truncate(next((directory / "journal").glob("columns-0.*")), 100),
    "the log deleted": lambda directory: (directory / "logs" / "aiperf.log").unlink(),
}
JOURNAL_ALONE = {"raw perf_ns of chunk", "raw content text", "inputs prompt text", "console number"}
"""Edits that contradict no other file."""


@pytest.fixture
def copy(good: Path, tmp_path: Path) -> Path:
    """A copy of the files, without the journal."""
    directory = tmp_path / good.name
    directory.mkdir()
    for path in good.iterdir():
        if path.is_file():
            shutil.copy(path, directory)
    return directory


@pytest.fixture(scope="module")
def registry() -> Registry:
    return Registry.discover()


@pytest.fixture(scope="module")
def checks(registry: Registry) -> dict[str, Check]:
    return schemas(registry)


@pytest.fixture(scope="module")
def expected(good: Path, registry: Registry) -> Iterator[list[Path]]:
    """The report of the journal, made once: no edit touches the journal."""
    run = open_run(good)
    with journal.reported(run, run.summary, registry) as files:
        yield files


def test_an_unedited_run_has_no_fault(good: Path, copy: Path, checks: dict[str, Check], registry: Registry) -> None:
    assert check(good, checks, registry) == Findings(str(good), "this program", True, ANY, [], [])
    without = check(copy, checks, registry)
    assert (without.faults, without.notes) == ([], ["there is no journal: the files were compared with each other alone"])


@pytest.mark.parametrize("name", EDITS)
def test_the_other_files_contradict_an_edit(name: str, copy: Path, checks: dict[str, Check], registry: Registry) -> None:
    EDITS[name](copy)
    faults = check(copy, checks, registry).faults
    assert (name in JOURNAL_ALONE) == (not faults), faults


@pytest.mark.parametrize("name", BESIDE)
def test_what_a_run_never_writes_is_a_fault(name: str, copy: Path, checks: dict[str, Check], registry: Registry) -> None:
    BESIDE[name](copy)
    assert check(copy, checks, registry).faults


@pytest.mark.parametrize("name", OF_THE_WHOLE)
def test_what_is_missing_beside_the_results_is_named(
    name: str, good: Path, tmp_path: Path, checks: dict[str, Check], registry: Registry
) -> None:
    whole = shutil.copytree(good, tmp_path / "whole")
    OF_THE_WHOLE[name](whole)
    named = {fault.file for fault in check(whole, checks, registry).faults}
    assert named & {"journal/columns-0.0", "logs/aiperf.log"}, named


@pytest.mark.parametrize("name", EDITS)
def test_the_journal_contradicts_an_edit(name: str, good: Path, copy: Path, expected: list[Path]) -> None:
    EDITS[name](copy)
    faults = Faults()
    journal.compare(copy, expected, faults)
    with suppress(ValueError):
        journal.inputs(open_run(good), json.loads((copy / INPUTS).read_bytes()), INPUTS, faults)
    assert faults.all() or name in ("jsonl truncate", "parquet flipped"), "files that can't be read are faults before"


def test_results_of_a_report_with_other_slices_have_no_fault(
    good: Path, copy: Path, checks: dict[str, Check], registry: Registry
) -> None:
    for folder in ("journal", "logs"):
        shutil.copytree(good / folder, copy / folder)
    assert Program(copy.parent, parquet=True)("report", copy, "--slice-duration", "0.1").code == 0
    found = check(copy, checks, registry)
    assert (found.faults, found.notes) == ([], [])


def test_results_of_another_version_are_compared_with_each_other_alone(
    good: Path, copy: Path, checks: dict[str, Check], registry: Registry
) -> None:
    for folder in ("journal", "logs"):
        shutil.copytree(good / folder, copy / folder)
    plan = copy / "journal" / "run.json"
    run = json.loads(plan.read_bytes())
    run["plan"]["run"]["version"] = "0.0.1"
    plan.write_text(json.dumps(run))
    EDITS["console number"](copy)
    found = check(copy, checks, registry)
    assert found.faults == []
    assert [note for note in found.notes if "not compared with the journal: version 0.0.1 made the run" in note]


def test_the_command_says_what_was_edited(good: Path, copy: Path) -> None:
    aiperf = Program(copy.parent, parquet=True)
    assert aiperf("validate", good).code == 0
    (copy / "journal").symlink_to(good / "journal")
    EDITS["json verdict"](copy)
    done = aiperf("validate", copy)
    assert done.code == 1
    assert f"{JSON}: measurement.verdict is " in done.out and "says the journal" in done.out
