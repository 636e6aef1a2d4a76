import gzip
import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from aiperf import AiperfError, BadDataset, Conversation, Dataset, Turn, UsageError
from aiperf.registry.registry import Registry
from aiperf.sdk.descriptor import Descriptor
from aiperf.sdk.trees import Branch, Stream, TreeBuilder
from aiperf.testing import CommandContract, check_row
from aiperf_command_validate import Validate
from aiperf_command_validate.faults import MOST, Faults
from aiperf_command_validate.records import Records
from aiperf_command_validate.results import check
from aiperf_command_validate.schemas import schemas
from aiperf_command_validate.values import Values
from aiperf_rows.row_files import rows as rows_of

WALL = 1_795_188_652_000_000_000
STATISTICS = ("avg", "min", "max", "sum", "p1", "p5", "p10", "p25", "p50", "p75", "p90", "p95", "p99", "std")
HEADER = ",".join(("Metric", *STATISTICS))
PARTS = ("blocked", "connecting", "dns_lookup", "receiving", "sending", "waiting")


def distribution(*values: float) -> dict[str, Any]:
    """Of two values: enough for sums and extremes."""
    low, high = sorted(values)
    steps = {f"p{q}": low + (high - low) * q / 100 for q in (1, 5, 10, 25, 50, 75, 90, 95, 99)}
    total = low + high
    spread = {"min": low, "max": high, "std": (high - low) / 2, "count": 2, "sum": total}
    return {"unit": "ms", "avg": total / 2, **steps, **spread}


def single(value: float, unit: str) -> dict[str, Any]:
    return {"unit": unit, "avg": value}


class Results:
    """The files of a run of two good requests and a failed one, as they should be; a test breaks one of them."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.summary: dict[str, Any] = {
            "schema_version": "1.4", "request_throughput": single(4.0, "requests/sec"),
            "request_latency": distribution(10.0, 20.0), "request_count": single(2.0, "requests"),
            "benchmark_duration": single(0.5, "sec"), "error_request_count": single(1.0, "requests"),
            "input_config": {"artifacts": {"records": ["jsonl"], "raw": True}}, "is_complete": True,
            "start_time": "2026-11-20T15:30:52.000000+00:00", "end_time": "2026-11-20T15:30:53.000000+00:00",
            "observation_window": single(0.6, "sec"), "plugins": {},
            "measurement": {
                "arrivals": {"planned": 4, "sent": 3, "completed": 2, "errors": 1, "never_sent": 1}, "verdict": "suspect",
                "reasons": ["1 was never sent"], "notes": ["from far away"], "scope": "inter-chunk",
                "findings": [
                    self.finding("suspect", "1 was never sent", scope="inter-chunk"), self.finding("note", "from far away"),
                    self.finding("advice", "send more"),
                ],
            },
            "warnings": ["send more"],
            "outcomes": {"completed": 2, "failed": 1}, "good_request_count": single(1.0, "requests"),
            "urls": [self.url("http://a", 1), self.url("http://b", 2, failed=1)],
            "phases": [{"name": "profiling", "kind": "profiling", "valid": 2, "failed": 1}],
        }  # fmt: skip
        self.summary |= {f"http_req_{part}": distribution(1.0, 1.0) for part in PARTS}
        self.summary["http_req_total"] = distribution(6.0, 6.0)
        self.table = [
            HEADER, *(self.row(f"http_req_{part}") for part in sorted((*PARTS, "total"))), self.row("request_latency"),
            "", "Metric,Value", "Benchmark Duration (sec),0.50",
            "Error Request Count,1.00", "Good Request Count,1.00", "Request Count,2.00",
            "Request Throughput (requests/sec),4.00",
        ]  # fmt: skip
        self.records = [self.record(0, 10.0), self.record(1, 20.0), self.record(2)]
        self.raw = [{"metadata": one["metadata"], "start_perf_ns": 5, "responses": [{"perf_ns": 7}]} for one in self.records]
        self.ledger: list[dict[str, Any]] = [
            {"phase": "profiling", "outcome": outcome, "due_ns": WALL, "started_ns": WALL + 1, "sent_ns": WALL + 2}
            for outcome in ("completed", "completed", "error", "never_sent")
        ]
        for line, row in enumerate(self.ledger[:3], 1):
            row["record_line"] = line
        self.inputs: dict[str, Any] = {"data": [{"session_id": "s", "payloads": [{}]}]}
        self.marker: dict[str, Any] = {"ready": True, "was_cancelled": False, "partial": False, "files": []}

    def row(self, tag: str) -> str:
        return ",".join([tag, *(f"{self.summary[tag][key]:.2f}" for key in STATISTICS)])

    def record(self, number: int, latency: float | None = None) -> dict[str, Any]:
        metadata = {
            "x_request_id": f"r{number}", "conversation_id": "s", "turn_index": 0, "benchmark_phase": "profiling",
            "phase_name": "profiling", "credit_issued_ns": WALL, "request_start_ns": WALL + 1, "request_ack_ns": WALL + 2,
            "request_end_ns": WALL + 3,
        }  # fmt: skip
        if latency is None:
            return {"metadata": metadata, "metrics": {}, "error": {"message": "busy"}}
        http = {f"http_req_{part}": {"value": 1.0, "unit": "ms"} for part in PARTS} | {"http_req_total": {"value": 6.0}}
        return {"metadata": metadata, "metrics": {"request_latency": {"value": latency, "unit": "ms"}, **http}}

    def finding(self, level: str, sentence: str, **more: str) -> dict[str, Any]:
        return {"kind": "made_up", "level": level, "sentence": sentence, "confidence": 1.0, "package": "acme 1.2", **more}

    def url(self, url: str, started: int, failed: int = 0) -> dict[str, Any]:
        """One of two servers, with a good request."""
        outcomes = {"completed": 1, "failed": failed} if failed else {"completed": 1}
        metrics = {"request_throughput": single(2.0, "requests/sec")}
        return {"url": url, "started": started, "outcomes": outcomes, "metrics": metrics}

    def write(self) -> None:
        self.path.mkdir(exist_ok=True)
        (self.path / "profile_export_aiperf.json").write_text(json.dumps(self.summary))
        (self.path / "profile_export_aiperf.csv").write_text("\r\n".join([*self.table, ""]))
        (self.path / "inputs.json").write_text(json.dumps(self.inputs))
        for name, lines in (("", self.records), ("_raw", self.raw), ("_arrivals", self.ledger)):
            text = "".join(json.dumps(line) + "\n" for line in lines)
            (self.path / f"profile_export{name}.jsonl").write_text(text)
        self.mark()

    def mark(self) -> None:
        """Write the marker, which names the files that are there, unless a test says which."""
        names = self.marker["files"] or [path.name for path in self.path.iterdir() if not path.name.startswith(".")]
        (self.path / ".aiperf_results_ready.json").write_text(json.dumps({**self.marker, "files": names}))

    def faults(self, checks: dict[str, Any] | None = None) -> list[str]:
        return [str(fault) for fault in check(self.path, checks or {}, Registry.discover()).faults]


@pytest.fixture(autouse=True)
def no_exporter(monkeypatch: pytest.MonkeyPatch) -> None:
    """Schemas are those of whatever is installed; here only names of files are."""
    files = {"arrivals.jsonl": "{prefix}_arrivals.jsonl", "parquet": "{prefix}.parquet"}
    installed = [Descriptor("exporters", "some", "some:Exporter", "acme", "1", capabilities={"files": files})]
    monkeypatch.setattr(Registry, "discover", lambda: Registry(installed, kernel_options=()))


@pytest.fixture
def results(tmp_path: Path) -> Results:
    return Results(tmp_path / "run")


def validate(*words: Any, as_json: bool = False, file: Path | None = None) -> int:
    command = Validate()
    command.registry = Registry.discover()
    return command.run(SimpleNamespace(as_json=as_json, input=file), [str(word) for word in words])


def test_files_that_are_as_they_should_be_have_no_fault(results, capsys):
    results.write()
    assert validate(results.path) == 0
    assert capsys.readouterr().out.splitlines()[-1] == f"{results.path}: nothing is wrong"


def estimate(results: Results) -> None:
    """A metric whose first value is 4, and only known to lie between 0 and 10."""
    tag = "time_to_second_token"
    sides = {"lower": distribution(0.0, 20.0), "upper": distribution(10.0, 20.0)}
    bounds = {side: {key: of[key] for key in of.keys() - {"unit", "std", "count"}} for side, of in sides.items()}
    results.summary[tag] = distribution(4.0, 20.0) | bounds
    results.records[0]["metrics"][tag] = {"value": 4.0, "unit": "ms", "intervals": {"upper": [10.0], "slack": 6.0}}
    results.records[1]["metrics"][tag] = {"value": 20.0, "unit": "ms"}
    results.table.insert(results.table.index(""), results.row(tag))


def test_a_context_overflow_is_no_error(results):
    results.summary["error_request_count"]["avg"] = 0.0
    results.summary["measurement"]["arrivals"] |= {"errors": 0, "overflowed": 1}
    results.summary["urls"][1]["outcomes"] = {"completed": 1, "overflowed": 1}
    results.summary["outcomes"] = {"completed": 2, "overflowed": 1}
    results.summary["phases"][0]["failed"] = 0
    results.table[results.table.index("Error Request Count,1.00")] = "Error Request Count,0.00"
    results.records[2]["metadata"]["context_overflow_skip"] = True
    results.ledger[2]["outcome"] = "overflowed"
    results.write()
    assert results.faults() == []


def test_estimates_with_their_bounds_have_no_fault(results, capsys):
    estimate(results)
    results.write()
    assert validate(results.path) == 0
    assert capsys.readouterr().out.splitlines()[-1] == f"{results.path}: nothing is wrong"


def test_errors_that_differ_in_their_cause_are_counted_apart(results):
    error = {"message": "lost", "type": "OSError"}
    results.summary["error_summary"] = [{"error_details": {**error, "cause": cause}, "count": 1} for cause in "ab"]
    for number, cause in ((1, "a"), (2, "b")):
        results.records[number] = {**results.record(number), "error": {**error, "cause": cause}}
    results.write()
    assert not [fault for fault in results.faults() if "error_summary counts" in fault]
    results.records[2]["error"]["cause"] = "a"
    results.write()
    assert [fault for fault in results.faults() if "error_summary counts" in fault]


@pytest.mark.parametrize(("intervals", "faults"), [({}, 1), ({"intervals": {"upper": [1.0]}}, 0)])
def test_a_rate_follows_as_exactly_as_its_value_is_known(intervals, faults):
    found = Faults()
    latency = {"value": 0.002, "unit": "ms", **intervals}
    rate = {"value": 1e3 / 0.0020000004, "unit": "tokens/sec/user"}
    metrics = {"inter_token_latency": latency, "output_token_throughput_per_user": rate}
    line = {"metadata": {"benchmark_phase": "profiling"}, "metrics": metrics}
    list(Records("profile_export.jsonl", found).read(iter([(1, line)])))
    assert sum("output_token_throughput_per_user is" in str(fault) for fault in found.all()) == faults


@pytest.mark.parametrize(("side", "key", "fault"), [
    ("lower", "avg", "time_to_second_token.lower.avg is 9"), ("upper", "p99", "time_to_second_token.upper.p99 is 9"),
    (None, "p99", "time_to_second_token.p99 is 9"),
])  # fmt: skip
def test_bounds_and_the_values_between_them_are_computed_again(results, side, key, fault):
    estimate(results)
    entry = results.summary["time_to_second_token"]
    (entry if side is None else entry[side])[key] = 9.0
    results.write()
    assert any(fault in each for each in results.faults())


def test_each_slice_has_the_bounds_of_its_own_estimates():
    values = Values()
    for group, value, upper in ((0, 5.0, 10.0), (1, 20.0, None), (1, 6.0, 8.0)):
        assert upper is None or values.estimate({"upper": [upper], "lower": [4.0]}, 1)
        values.add([value], group)
    (first, (low, high)), (_, sides) = values.by_group()[0], values.by_group()[1]
    assert (low["avg"], first["avg"], high["avg"]) == (4.0, 5.0, 10.0)
    assert [(side["min"], side["max"], side["sum"]) for side in sides] == [(4.0, 20.0, 24.0), (8.0, 20.0, 28.0)]


@pytest.mark.parametrize("intervals", [
    [], {}, {"upper": ["10"]}, {"upper": [10.0], "at": [1]}, {"upper": [10.0, 11.0]}, {"upper": [10.0], "lower": [1.0, 2.0]},
    {"upper": [10.0], "at": [0.5]}, {"upper": [10.0], "slack": "5"},
])  # fmt: skip
def test_intervals_that_do_not_fit_the_values_are_a_fault(results, intervals):
    estimate(results)
    results.records[0]["metrics"]["time_to_second_token"]["intervals"] = intervals
    results.write()
    assert "profile_export.jsonl:1: time_to_second_token has intervals that don't fit its values" in results.faults()


def change(*path: Any, to: Any) -> Callable[[Results], None]:
    def apply(results: Results) -> None:
        place: Any = getattr(results, path[0])
        for step in path[1:-1]:
            place = place[step]
        place[path[-1]] = to

    return apply


def chosen(results: Results, **artifacts: Any) -> None:
    """The files of a run whose user chose other statistics."""
    columns = artifacts.get("columns") or ["avg", "min", "max", "sum", "p50", "p99.9", "std"]
    results.summary["input_config"]["artifacts"] |= artifacts
    for each in results.summary.values():
        if isinstance(each, dict) and "p99" in each:
            each["p99.9"] = each["min"] + (each["max"] - each["min"]) * 0.999
    for place, line in enumerate(results.table):
        name, cells, *_ = [*line.split(",", 1), ""]
        if line == HEADER:
            results.table[place] = ",".join(["Metric", *columns])
        elif cells.count(",") > 1:
            results.table[place] = ",".join([name, *(f"{results.summary[name][key]:.2f}" for key in columns)])


@pytest.mark.parametrize("artifacts", [{"percentiles": [50.0, 99.9]}, {"columns": ["p99.9", "avg"]}])
def test_statistics_that_were_chosen_are_in_all_files(results, artifacts):
    chosen(results, **artifacts)
    results.write()
    assert results.faults() == []
    del results.summary["request_latency"]["p99.9"]
    results.write()
    assert [fault for fault in results.faults() if "request_latency.p99.9 is None" in fault]


def test_a_percentile_that_nobody_asked_for_is_a_fault(results):
    chosen(results, percentiles=[50.0, 99.9])
    del results.summary["input_config"]["artifacts"]["percentiles"]
    results.write()
    faults = results.faults()
    assert [fault for fault in faults if "request_latency has p99.9, and input_config.artifacts asks for no such" in fault]
    assert [fault for fault in faults if "aiperf.csv: has a table of 8 columns" in fault]


@pytest.mark.parametrize(
    ("harm", "fault"),
    [
        (change("summary", "request_count", "avg", to=3.0), "request_throughput × benchmark_duration is 2, request_count is 3"),
        (change("summary", "request_latency", "p50", to=1.0), "request_latency: percentiles go down"),
        (change("summary", "end_time", to="2026-11-20T15:30:51.000000+00:00"), "end_time is before start_time"),
        (change("summary", "measurement", "arrivals", "planned", to=9), "9 planned arrivals are not the sum"),
        (change("summary", "phases", 0, "valid", to=7), "don't add up to request_count"),
        (change("summary", "request_latency", "count", to=5), "profile_export.jsonl: has 2 values of request_latency"),
        (change("summary", "request_latency", "max", to=21.0), "the values of request_latency have another max"),
        (change("table", 11, to="Benchmark Duration (sec),0.60"), "profile_export_aiperf.csv: Benchmark Duration (sec): avg"),
        (change("table", 12, to='"Error'), "profile_export_aiperf.csv:"),
        (change("records", 1, "metadata", "request_end_ns", to=WALL), "jsonl:2: request_end_ns is 2 ns before request_ack_ns"),
        (change("records", 1, "metadata", "x_request_id", to="r0"), "jsonl:2: x_request_id r0 has another line"),
        (change("records", 1, "metadata", "conversation_id", to="t"), "conversation t is not in inputs.json"),
        (change("records", 1, "metadata", "turn_index", to=1), "conversation s has turn 1, inputs.json 1 turns"),
        (change("records", 1, "metrics", "request_latency", "value", to="x"), "jsonl:2: request_latency has no number"),
        (change("records", 1, to={"metrics": {}}), "jsonl:2: has no metadata or no metrics"),
        (change("records", 1, to=[]), "jsonl:2: is not a JSON object"),
        (change("raw", 2, "metadata", to={}), "raw.jsonl:3: is not of the request of line 3"),
        (change("raw", 0, "responses", 0, "perf_ns", to=1), "raw.jsonl:1: has responses whose times go back"),
        (change("raw", 0, "responses", 0, "after_perf_ns", to=WALL), "raw.jsonl:1: perf_ns is"),
        (change("ledger", 0, "sent_ns", to=WALL), "arrivals.jsonl:1: sent_ns is 1 ns before started_ns"),
        (change("ledger", 0, "reconnected", to="unacknowledged"), "arrivals.jsonl:1: has another reconnected than the record"),
        (
            change("ledger", 3, "reconnected", to="closed_before_write"),
            "has 1 arrivals that were reconnected, closed_before_write, the summary 0",
        ),
        (
            change("summary", "measurement", "reconnects", to={"unacknowledged": 1}),
            "measurement.reconnects are 1 requests, reconnected 0",
        ),
        (change("summary", "measurement", "first_stamp_share", to=0.5), "measurement.first_stamp_share is 0.5, merged_first 0"),
        (change("ledger", 1, "record_line", to=1), "arrivals.jsonl:2: record_line 1 is another arrival's, too"),
        (change("ledger", 0, "outcome", to="aborted"), "arrivals.jsonl:1: is aborted and has record_line 1"),
        (change("ledger", 3, "outcome", to="unfinished"), "has 1 arrivals unfinished, the summary 0"),
        (change("summary", "outcomes", "cut", to=1), "outcomes has 1 cut, the arrivals 0 cut"),
        (
            change("summary", "outcomes", "empty", to=1),
            "outcomes has 2 failed + empty + client_limit, the arrivals 1 errors",
        ),
        (change("summary", "urls", 0, "started", to=2), "the URLs' started requests are 4, those sent 3"),
        (change("summary", "urls", 1, "outcomes", "failed", to=0), "the URLs' failed requests are 0, the run's 1"),
        (change("summary", "urls", 0, "metrics", to={}), "the URLs' request_throughput adds up to 2, the run's is 4"),
        (change("summary", "goodput", to=single(3.0, "requests/sec")), "goodput × benchmark_duration is 1.5"),
        (change("records", 0, "metrics", "http_req_sending", "value", to=2.0), "jsonl:1: the parts of its HTTP exchange"),
        (change("records", 0, "metrics", "request_latency", "unit", to="s"), "jsonl:2: request_latency has the units ms and s"),
        (change("records", 0, "metrics", "request_latency", "value", to=10**400), "jsonl:1: request_latency has no number"),
        (
            change("summary", "request_latency", "std", to=4.9),
            "request_latency.std is 4.9, the per-request file's values give 5",
        ),
        (
            change("summary", "request_latency", "unit", to="sec"),
            "request_latency is in sec, the per-request file has it in ms",
        ),
        (change("summary", "is_complete", to=False), "is_complete is false, and neither of them says why"),
        (change("summary", "measurement", "reasons", to=[]), "results is suspect, with 0 reasons for suspicion"),
        (change("summary", "measurement", "verdict", to="none"), "results is none, with 1 reasons for suspicion"),
        (change("summary", "measurement", "arrivals", "completed", to=0), "the verdict on empty results is suspect, with 1"),
        (
            change("summary", "measurement", "findings", 0, "level", to="note"),
            "measurement.reasons are not the sentences of the 0 findings of level suspect",
        ),
        (
            change("summary", "measurement", "notes", to=[]),
            "measurement.notes are not the sentences of the 1 findings of level note",
        ),
        (change("summary", "measurement", "scope", to="all"), "measurement.scope is all, that of the findings inter-chunk"),
        (change("summary", "warnings", to=[]), "the advice 'send more' is not among the warnings"),
        (
            change("summary", "phases", 0, "duration", to=single(0.7, "sec")),
            "observation_window is 0.6 s, phase profiling lasts",
        ),
        (change("summary", "request_throughput", "unit", to="1/s"), "request_throughput is in 1/s, not requests/sec"),
        (change("ledger", 0, "outcome", to="error"), "arrivals.jsonl:1: has another outcome than the record on line 1"),
        (change("ledger", 0, "last_byte_ns", to=WALL + 9), "arrivals.jsonl:1: has another last_byte_ns than the record"),
        (change("summary", "measurement", to=None), "aiperf.json: has values of the wrong type"),
        (change("summary", "phases", 0, to="profiling"), "aiperf.json: has values of the wrong type"),
        (change("summary", "request_latency", "p50", to=[1]), "aiperf.json: has values of the wrong type"),
        (change("marker", "partial", to=True), "an exporter failed"),
        (change("marker", "files", to=["gone.csv"]), "gone.csv: is missing; the run wrote it"),
    ],
)
def test_what_is_wrong_is_said_where_it_is(results, harm, fault):
    harm(results)
    results.write()
    found = results.faults()
    assert [one for one in found if fault in one], found


def rows(results: Results) -> dict[str, list[Any]]:
    """The records as columns, a row each."""
    tags = sorted({tag for one in results.records for tag in one["metrics"]})
    columns = {tag: [one["metrics"].get(tag, {}).get("value") for one in results.records] for tag in tags}
    return {"benchmark_phase": [one["metadata"]["benchmark_phase"] for one in results.records], **columns}


def spoilt(tag: str | None = None) -> Callable[[dict[str, list[Any]]], dict[str, list[Any]]]:
    """Another value in that column; the last row gone where none is named."""
    return lambda columns: {
        name: [9.0, *values[1:]] if name == tag else values[: None if tag else -1] for name, values in columns.items()
    }


@pytest.mark.parametrize(
    ("harm", "fault"),
    [
        (lambda columns: columns, None),
        (spoilt(), "profile_export.parquet: has 2 rows, the per-request file 3 lines"),
        (spoilt("request_latency"), "profile_export.parquet: the column request_latency has other values"),
        (lambda columns: {name: column for name, column in columns.items() if name != "request_latency"},
         "profile_export.parquet: has no column request_latency"),
    ],
)  # fmt: skip
def test_a_parquet_table_has_the_per_request_files_values(results, harm, fault):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    results.write()
    parquet.write_table(pyarrow.table(harm(rows(results))), results.path / "profile_export.parquet")
    results.mark()
    assert [one.split(" than ")[0] for one in results.faults()] == ([] if fault is None else [fault])


def test_what_is_no_parquet_table_is_said(results):
    pytest.importorskip("pyarrow")
    results.write()
    (results.path / "profile_export.parquet").write_text("PAR?")
    results.mark()
    assert results.faults()[0].startswith("profile_export.parquet: is not Parquet:")


def test_without_pyarrow_a_parquet_table_is_not_judged(results, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    results.write()
    (results.path / "profile_export.parquet").write_text("PAR?")
    results.mark()
    found = check(results.path, {}, Registry.discover())
    assert (found.faults, found.notes[0]) == ([], "profile_export.parquet was not looked at: pip install pyarrow")


@pytest.mark.parametrize("name", ["_aiperf.json", "_aiperf.csv", ".jsonl", "_raw.jsonl"])
def test_a_file_of_the_export_level_that_is_not_there_is_named(results, name):
    results.write()
    (results.path / f"profile_export{name}").unlink()
    if name == "_aiperf.json":  # which says the level, where there is no journal
        (results.path / "profile_export_aiperf.csv").unlink()
        results.mark()
        assert results.faults() == []
    else:
        assert f"profile_export{name}: is missing; export level raw has it" in results.faults()


def test_a_file_cut_within_a_line_is_named_with_the_line(results):
    results.write()
    path = results.path / "profile_export.jsonl"
    path.write_bytes(path.read_bytes()[:-30])
    assert "profile_export.jsonl:3: is cut in the middle of its last line" in results.faults()


@pytest.mark.parametrize("text", ["{", "[]", "nonsense\n", '{"request_count": NaN'])
def test_a_summary_that_is_none_is_said(results, text):
    results.write()
    (results.path / "profile_export_aiperf.json").write_text(text)
    assert [one for one in results.faults() if one.startswith("profile_export_aiperf.json: is not")]


def test_faults_of_one_kind_are_counted_once_there_are_many():
    faults = Faults()
    for line in range(MOST + 5):
        faults.add("f", "wrong", line, kind="wrong lines")
    found = faults.all()
    assert len(found) == MOST + 1
    assert str(found[-1]) == "f: 5 more faults of this kind: wrong lines"


def test_an_incomplete_run_is_noted_and_no_fault(results, capsys):
    results.summary |= {"is_complete": False, "incomplete_reason": "the run was cancelled"}
    results.write()
    assert validate(results.path) == 0
    assert "the run is not complete: the run was cancelled" in capsys.readouterr().out


def test_an_export_that_never_ended_is_said(results):
    results.write()
    (results.path / ".aiperf_results_ready.json").unlink()
    assert results.faults() == [".aiperf_results_ready.json: is missing: the export never came to its end"]


def test_machines_get_json_and_the_exit_code(results, capsys):
    results.summary["benchmark_duration"]["avg"] = 0.7
    results.write()
    assert validate(results.path, as_json=True) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["valid"] is False
    assert found["files"]["profile_export.jsonl"] == 3
    assert {fault["file"] for fault in found["faults"]} == {"profile_export_aiperf.json", "profile_export_aiperf.csv"}


def test_files_under_a_prefix_are_found(results):
    results.write()
    for path in list(results.path.glob("profile_export*")):
        name = path.name.replace("profile_export_aiperf", "mine").replace("profile_export", "mine")
        path.rename(path.with_name(name))
    results.mark()
    found = check(results.path, {}, Registry.discover())
    assert found.valid, found.faults
    assert found.files["mine.jsonl"] == 3


def unsent_turns(results: Results) -> None:
    turn = {"phase": "profiling", "session": 0, "stream": 0}
    results.ledger[0] |= turn | {"turn": 0}
    results.ledger += [turn | {"turn": at, "outcome": "truncated"} for at in (1, 2)]
    results.ledger.append(turn | {"stream": 1, "turn": 0, "outcome": "released"})
    results.summary["measurement"]["arrivals"] |= {"truncated": 2, "released": 1}


def test_unsent_turns_of_trees_are_counted_beside_the_plan(results):
    unsent_turns(results)
    results.write()
    assert results.faults() == []


@pytest.mark.parametrize(
    ("broken", "fault"),
    [
        (change("ledger", 4, "turn", to=0), "arrivals.jsonl:5: is the same turn of session 0, stream 0, turn 0, as an earlier"),
        (change("ledger", 5, "started_ns", to=WALL), "arrivals.jsonl:6: is truncated and has started_ns"),
        (change("ledger", 6, "outcome", to="truncated"), "has 3 arrivals truncated, the summary 2"),
    ],
)
def test_a_wrong_turn_of_a_tree_is_a_fault(results, broken, fault):
    unsent_turns(results)
    broken(results)
    results.write()
    assert [each for each in results.faults() if fault in each], results.faults()


def test_a_packed_ledger_is_checked_like_a_plain_one(results):
    results.write()
    plain = results.path / "profile_export_arrivals.jsonl"
    packed = gzip.compress(plain.read_bytes())
    plain.unlink()
    path = results.path / "profile_export_arrivals.jsonl.gz"
    path.write_bytes(packed)
    results.mark()
    found = check(results.path, {}, Registry.discover())
    assert (found.faults, found.files[path.name]) == ([], 4)
    path.write_bytes(packed[:-9])
    assert any(f"{path.name}: can't be unpacked to its end: " in fault for fault in results.faults())
    change("ledger", 0, "sent_ns", to=WALL)(results)
    path.write_bytes(gzip.compress("".join(json.dumps(line) + "\n" for line in results.ledger).encode()))
    assert f"{path.name}:1: sent_ns is 1 ns before started_ns" in results.faults()


def test_the_references_files_are_checked_for_what_they_have(results):
    for name in ("plugins", "measurement", "phases", "observation_window", "outcomes", "urls"):
        del results.summary[name]
    results.summary["request_throughput"]["avg"] = 3.9  # from the phase's start, which is before the first request's
    results.table[-1] = "Request Throughput (requests/sec),3.90"
    results.write()
    for name in ("profile_export_arrivals.jsonl", "profile_export_raw.jsonl", ".aiperf_results_ready.json"):
        (results.path / name).unlink()
    found = check(results.path, {"aiperf.json": lambda document: "a schema of ours"}, Registry.discover())
    assert (found.made_by, found.faults) == ("the reference tool, or another", [])
    results.records[0]["metadata"]["request_end_ns"] = 0
    (results.path / "profile_export.jsonl").write_text("".join(json.dumps(one) + "\n" for one in results.records))
    assert "request_end_ns" in results.faults()[0]


def test_schemas_are_those_that_exporters_ship(tmp_path, monkeypatch, results, caplog):
    package = tmp_path / "shipping"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "line.json").write_text('{"type": "object", "required": ["extra"]}')
    (package / "broken.json").write_text("{")
    monkeypatch.syspath_prepend(tmp_path)
    said = {"jsonl": "line.json", "raw.jsonl": "broken.json", "inputs.json": "absent.json"}
    row = Descriptor("exporters", "mine", "shipping:Mine", "acme", "1.0", capabilities={"schemas": said})
    checks = schemas(Registry([row], kernel_options=()))
    assert list(checks) == ["jsonl"]
    assert caplog.text.count("can't be used") == 2
    results.write()
    assert "profile_export.jsonl:1: data must contain ['extra'] properties" in results.faults(checks)


@pytest.mark.parametrize("name", ["nothing", "file", "empty"])
def test_what_is_no_results_directory_gets_a_sentence(tmp_path, name):
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("x")
    with pytest.raises(AiperfError, match=name) as caught:
        validate(tmp_path / name)
    assert caught.value.exit_code == 1
    with pytest.raises(UsageError):
        validate()


def test_results_that_a_start_has_set_aside_are_not_judged(results, capsys):
    results.write()
    (results.path / "journal.earlier").mkdir()
    with pytest.raises(AiperfError, match="results of an earlier run lie aside") as caught:
        validate(results.path)
    assert "aiperf report" in caught.value.hints[0]


def test_of_several_directories_each_is_told(results, tmp_path, capsys):
    results.write()
    assert validate(tmp_path, results.path) == 1
    said = capsys.readouterr()
    assert said.err.startswith(f"error: {tmp_path} holds no results")
    assert "nothing is wrong" in said.out


class Lines(Dataset):
    """A conversation a line; the word ``bad`` is none."""

    @classmethod
    def recognises(cls, path, first_row):
        return isinstance(first_row, dict) and "say" in first_row

    def __iter__(self):
        for line, row in rows_of(self.context.source):
            if row["say"] == "bad":
                raise BadDataset(f"line {line} says bad", "say something else")
            turns = (Turn((row["say"],)),) * row.get("times", 1)
            yield Conversation(str(line), turns, streams=_pair(len(turns)) if row.get("starts") else ())


def _pair(turns: int) -> tuple[Stream, ...]:
    """A conversation that starts another behind its first turn, which has all turns but that one."""
    tree = TreeBuilder()
    tree.stream("root", 1)
    tree.branch(0, Branch((tree.stream("child", turns - 1),), after=0))
    return tree.streams()


@pytest.fixture
def formats(monkeypatch: pytest.MonkeyPatch) -> None:
    can = {"reads": True, "keys": ["say"]}
    found = [
        Descriptor("datasets", "some_lines", f"{__name__}:Lines", "acme", "1", capabilities=can),
        Descriptor("datasets", "made", f"{__name__}:Lines", "acme", "1"),
        Descriptor("hooks", "recognition", "aiperf_hook_recognition:FileRecognition", "aiperf-hook-recognition", "1"),
    ]
    monkeypatch.setattr(Registry, "discover", lambda: Registry(found, kernel_options=()))


@pytest.mark.parametrize("words", [("dataset",), ("some_lines",), ("some-lines",)])
@pytest.mark.parametrize("as_option", [False, True])
def test_a_data_sets_file_is_read_to_its_end(tmp_path, formats, capsys, words, as_option):
    file = tmp_path / "said.jsonl"
    file.write_text('{"say": "a", "times": 2}\n\n{"say": "b"}\n')
    given = {"file": file} if as_option else {}
    assert validate(*words, *([] if as_option else [file]), **given) == 0
    assert capsys.readouterr().out == f"{file}: some_lines: 2 conversations, 3 turns: nothing is wrong\n"


def test_conversations_that_others_start_are_counted_apart(tmp_path, formats, capsys):
    file = tmp_path / "said.jsonl"
    file.write_text('{"say": "a", "times": 3, "starts": true}\n{"say": "b"}\n')
    assert validate("dataset", file) == 0
    said = f"{file}: some_lines: 2 conversations and 1 started by others, 4 turns: nothing is wrong\n"
    assert capsys.readouterr().out == said
    assert validate("dataset", file, as_json=True) == 0
    assert json.loads(capsys.readouterr().out)["started"] == 1


def test_a_row_that_is_wrong_is_told_with_what_came_before_it(tmp_path, formats, capsys):
    file = tmp_path / "said.jsonl"
    file.write_text('{"say": "a"}\n{"say": "bad"}\n{"say": "b"}\n')
    assert validate("dataset", file) == 1
    assert capsys.readouterr().out.splitlines() == [
        "line 2 says bad", "  say something else", f"{file}: some_lines: 1 conversation, 1 turn: the rest was not read",
    ]  # fmt: skip
    assert validate("dataset", file, as_json=True) == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["valid"], found["conversations"], found["format"]) == (False, 1, "some_lines")
    assert found["fault"].startswith("line 2 says bad")


def test_a_file_that_no_format_knows_is_refused_by_name(tmp_path, formats):
    file = tmp_path / "said.jsonl"
    file.write_text('{"sung": "a"}\n')
    with pytest.raises(AiperfError) as caught:
        validate("dataset", file)
    assert "validate dataset: no installed format knows" in "\n".join(caught.value.lines())


def test_controls_of_terminals_are_escaped_in_json(tmp_path, formats, capsys):
    file = tmp_path / "rows\x9b31m.jsonl"
    file.write_text('{"say": "a"}\n')
    assert validate("dataset", file, as_json=True) == 0
    out = capsys.readouterr().out
    assert "\x9b" not in out and r"rows\u009b31m.jsonl" in out


@pytest.mark.parametrize(
    ("words", "file", "said"),
    [
        (("dataset",), None, "takes one file, 0 were given"),
        (("dataset", "a", "b"), None, "takes one file, 2 were given"),
        (("dataset", "a"), Path("b"), "takes one file, 2 were given"),
        (("made",), Path("b"), "'made' is no format"),
    ],
)
def test_a_data_set_is_one_file(tmp_path, formats, words, file, said):
    with pytest.raises(UsageError, match=said):
        validate(*words, file=file)


def test_a_directory_that_is_called_like_a_format_is_one_of_results(results, formats, monkeypatch):
    results.path = results.path.with_name("dataset")
    results.write()
    monkeypatch.chdir(results.path.parent)
    assert validate("dataset") == 0


def test_its_manifest_says_what_it_is():
    check_row("commands", Validate)


class TestValidateKeepsTheContract(CommandContract):
    command = Validate
