import json
import math
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import jsonschema
import numpy as np
import pytest
from aiperf import Metric, RecordBatch, Target, Unit, ragged
from aiperf.rundir.journal import ABORTED, CANCELLED, COMPLETED, ERROR, NEVER_SENT, OVERFLOWED, UNFINISHED
from aiperf.sdk.columns import Bounds
from aiperf.testing import BatchExporterContract
from aiperf_exporter_records import Records
from aiperf_exporter_records.shape import schema
from hypothesis import given
from hypothesis import strategies as st

WALL = 2**60 + 1
TIMES = ("due_ns", "started_ns", "ack_ns", "first_byte_ns", "last_byte_ns", "ended_ns")
SCHEMA = json.loads(files("aiperf_exporter_records").joinpath("profile_export.schema.json").read_text())


class Latency(Metric):
    tag, title, unit, display, order = "request_latency", "Request Latency", Unit.NANOSECONDS, Unit.MILLISECONDS, 300


class Tokens(Metric):
    tag, title, unit, order = "output_sequence_length", "OSL", Unit.TOKENS, 600


class Gaps(Metric):
    tag, title, unit, display = "inter_chunk_latency", "ICL", Unit.NANOSECONDS, Unit.MILLISECONDS


class Inner(Metric):
    tag, title, unit, hidden = "inner", "Inner", Unit.COUNT, True


class Summed(Metric):
    tag, title, unit, per_record = "request_count", "Request Count", Unit.REQUESTS, False


def batch(rows: list[dict]) -> RecordBatch:
    def column(name, otherwise=math.nan):
        return np.array([row.get(name, otherwise) for row in rows], dtype=np.float64)

    columns = {name: column(name) for name in (*TIMES, "reconnected", "resent", "lane")}
    columns |= {"n": column("n", 0), "session": column("session", 0), "turn": column("turn", 0), "phase": column("phase", 0)}
    columns |= {"outcome": column("outcome", COMPLETED), "shard": column("shard", 0)}
    columns["chunk_ns"] = ragged([[1.0]] * len(rows), [[1.0]] * len(rows))
    names = ("error", "request_id", "session_id", "conversation_id", "worker")
    told = ["source"] if any("source" in row for row in rows) else []
    texts = {name: [row.get(name) for row in rows] for name in (*names, *told)}
    return RecordBatch(columns, np.array([row.get("valid", True) for row in rows]), texts)


def export(rows: list[dict], values: dict | None = None, metrics: tuple = (), **target) -> list[dict]:
    target = {"started_wall_ns": WALL, **target}
    exporter = Records(Target(Path(), **target))
    scored = batch(rows).with_metrics(values or {}, {metric.tag: metric() for metric in metrics})
    lines = [json.loads(line) for line in exporter.rows(scored).splitlines()]
    for line in lines:
        jsonschema.validate(line, SCHEMA)
    return lines


DONE = {"started_ns": 5, "ack_ns": 6, "last_byte_ns": 9, "ended_ns": 10}


def test_a_line_has_the_references_fields():
    row = DONE | {"n": 4, "session": 2, "turn": 1, "request_id": "r", "session_id": "s", "conversation_id": "c", "worker": "w"}
    assert export([row | {"due_ns": 3}]) == [
        {
            "metadata": {
                "session_num": 4, "turn_index": 1, "credit_issued_ns": WALL + 3, "request_start_ns": WALL + 5,
                "request_end_ns": WALL + 9, "benchmark_phase": "profiling", "phase_index": 0, "phase_name": "profiling",
                "phase_kind": "profiling", "was_cancelled": False, "context_overflow_skip": False, "agent_depth": 0,
                "due_ns": WALL + 3, "request_ack_ns": WALL + 6, "conversation_num": 2, "profiling_index": 0,
                "x_request_id": "r", "x_correlation_id": "s", "conversation_id": "c", "worker_id": "w",
                "record_processor_id": "reducer-0", "root_correlation_id": "s",
            },
            "metrics": {},
        }
    ]  # fmt: skip


def test_the_record_of_a_trace_is_named_in_full_or_in_part():
    told = '{"source_trace_id":"w","source_outer_idx":1,"source_inner_idx":0,"source_kind":"weka_subagent"}'
    lines = export([DONE | {"source": text} for text in (told, '{"source_trace_id":"w","source_outer_idx":2}', None)])
    found = [{name: value for name, value in line["metadata"].items() if name.startswith("source_")} for line in lines]
    assert found == [json.loads(told), {"source_trace_id": "w", "source_outer_idx": 2}, {}]


@pytest.mark.parametrize("after_ns", [0, 1, 3_600_000_000_001, 2**52 + 1])
def test_stamps_near_2_to_the_60_are_exact(after_ns):
    (line,) = export([DONE | {"started_ns": float(after_ns)}])
    assert line["metadata"]["request_start_ns"] == 2**60 + 1 + after_ns


def test_values_are_in_display_units_and_counts_are_whole():
    (line,) = export(
        [DONE],
        {"request_latency": np.array([35_538_758.0]), "output_sequence_length": np.array([14.0])},
        (Latency, Tokens),
    )
    assert line["metrics"] == {
        "request_latency": {"value": 35.538758, "unit": "ms"},
        "output_sequence_length": {"value": 14, "unit": "tokens"},
    }
    assert isinstance(line["metrics"]["output_sequence_length"]["value"], int)


def test_estimates_are_marked_with_their_bounds():
    at = [[1.0], [1.0, 2.0, 3.0]]
    gaps, low, high, slack = (
        ragged([[9e6], part], at) for part in ([1e6, 2e6, 3e6], [1e6, 0, 0], [1e6, 4e6, 5e6], [0.0, 0, 1e6])
    )
    bounds = {"inter_chunk_latency": Bounds(low, high, slack)}
    scored = batch([DONE] * 2).with_metrics({"inter_chunk_latency": gaps}, {"inter_chunk_latency": Gaps()}, bounds=bounds)
    lines = [json.loads(line) for line in Records(Target(Path(), started_wall_ns=WALL)).rows(scored).splitlines()]
    assert [line["metrics"]["inter_chunk_latency"] for line in lines] == [
        {"value": [9.0], "unit": "ms"},
        {"value": [1.0, 2.0, 3.0], "unit": "ms", "intervals": {"at": [1, 2], "upper": [4.0, 5.0], "slack": 1.0}},
    ]
    jsonschema.validate(lines[1], SCHEMA)


def test_bounds_have_no_more_digits_than_picoseconds():
    values = ragged([[], [1e6 / 3, 2e6 / 3]], [[], [1.0, 2.0]])
    low, high, slack = (ragged([[], part], [[], [1.0, 2.0]]) for part in ([1e6 / 7, 0], [1e6, 2e6 / 3], [0, 0]))
    bounds = {"inter_chunk_latency": Bounds(low, high, slack)}
    scored = batch([DONE] * 2).with_metrics({"inter_chunk_latency": values}, {"inter_chunk_latency": Gaps()}, bounds=bounds)
    lines = [json.loads(line)["metrics"] for line in Records(Target(Path(), started_wall_ns=WALL)).rows(scored).splitlines()]
    intervals = {"lower": [0.142857143, 0.0], "upper": [1.0, 0.666666667]}
    assert lines == [
        {}, {"inter_chunk_latency": {"value": [0.333333333, 0.666666667], "unit": "ms", "intervals": intervals}}
    ]  # fmt: skip


def test_a_value_beside_an_estimate_has_all_of_its_digits():
    bounds = {"request_latency": Bounds(np.array([1e6 / 3, 0]), np.array([1e6 / 3, 1e6]), np.array([0.0, 0]))}
    values = {"request_latency": np.array([1e6 / 3, 1e6 / 3])}
    scored = batch([DONE] * 2).with_metrics(values, {"request_latency": Latency()}, bounds=bounds)
    lines = [json.loads(line) for line in Records(Target(Path(), started_wall_ns=WALL)).rows(scored).splitlines()]
    assert [line["metrics"]["request_latency"]["value"] for line in lines] == [1e6 / 3 / 1e6, 0.333333333]


def test_an_estimate_of_one_value_is_marked_too():
    bounds = {"request_latency": Bounds(np.array([1e6, 2e6]), np.array([1e6, 4e6]), np.array([0.0, 1e6]))}
    values = {"request_latency": np.array([1e6, 3e6])}
    scored = batch([DONE] * 2).with_metrics(values, {"request_latency": Latency()}, bounds=bounds)
    lines = [json.loads(line) for line in Records(Target(Path(), started_wall_ns=WALL)).rows(scored).splitlines()]
    assert [line["metrics"]["request_latency"].get("intervals") for line in lines] == [
        None, {"lower": [2.0], "upper": [4.0], "slack": 1.0}
    ]  # fmt: skip


def test_an_absent_value_is_an_absent_key_whatever_the_neighbours_have():
    values = {
        "request_latency": np.array([1e6, math.nan, 3e6]),
        "output_sequence_length": np.array([math.nan, math.inf, 1.0]),
    }
    lines = export([DONE] * 3, values, (Latency, Tokens))
    assert [sorted(line["metrics"]) for line in lines] == [
        ["request_latency"], [], ["output_sequence_length", "request_latency"]
    ]  # fmt: skip


def test_a_fraction_stays_as_it_is_among_whole_values():
    lines = export([DONE] * 2, {"output_sequence_length": np.array([2.5, 3.0])}, (Tokens,))
    assert [line["metrics"]["output_sequence_length"]["value"] for line in lines] == [2.5, 3]


def test_lists_keep_their_rows_and_drop_what_is_not_finite():
    gaps = ragged([[1e6, 2e6], [], [math.nan, 3e6]], [[1, 2], [], [3, 4]])
    lines = export([DONE] * 3, {"inter_chunk_latency": gaps}, (Gaps,))
    assert [line["metrics"] for line in lines] == [
        {"inter_chunk_latency": {"value": [1.0, 2.0], "unit": "ms"}},
        {},
        {"inter_chunk_latency": {"value": [3.0], "unit": "ms"}},
    ]


def test_hidden_metrics_and_those_of_the_whole_run_are_left_out():
    one = np.array([1.0])
    assert export([DONE], {"inner": one, "request_count": one}, (Inner, Summed))[0]["metrics"] == {}


def test_what_never_ended_has_no_line_and_takes_its_values_along():
    rows = [
        DONE | {"n": n, "outcome": outcome, "valid": outcome == COMPLETED}
        for n, outcome in enumerate((ABORTED, COMPLETED, NEVER_SENT, ERROR, UNFINISHED, CANCELLED))
    ]
    values = {"request_latency": np.arange(6) * 1e6, "inter_chunk_latency": ragged([[n * 1e6] for n in range(6)], [[0]] * 6)}
    lines = export(rows, values, (Latency, Gaps))
    assert [line["metadata"]["session_num"] for line in lines] == [1, 3, 5]
    assert [line["metrics"]["request_latency"]["value"] for line in lines] == [1.0, 3.0, 5.0]
    assert [line["metrics"]["inter_chunk_latency"]["value"] for line in lines] == [[1.0], [3.0], [5.0]]


def test_a_failed_request_carries_its_error_as_it_was():
    error = '{"message":"{\\"error\\": \\"full\\"}","type":"Too Many Requests","code":429}'
    (line,) = export([{"started_ns": 1, "ended_ns": 7, "outcome": ERROR, "valid": False, "error": error}])
    assert line["error"] == {"message": '{"error": "full"}', "type": "Too Many Requests", "code": 429}
    assert line["metadata"]["request_end_ns"] == WALL + 7
    assert "request_ack_ns" not in line["metadata"]


def test_a_failure_without_a_word_is_still_seen_to_be_one():
    (line,) = export([DONE | {"valid": False, "outcome": ERROR}])
    assert line["error"] == {"message": "error"}


def test_a_request_longer_than_the_context_says_so():
    error = '{"message":"maximum context length is 8","type":"Bad Request","code":400}'
    (line,) = export([DONE | {"outcome": OVERFLOWED, "valid": False, "error": error}])
    assert line["metadata"]["context_overflow_skip"] is True and line["metadata"]["was_cancelled"] is False
    assert line["error"]["code"] == 400


def test_a_cancelled_request_says_when():
    error = '{"message":"cancelled","type":"RequestCancellationError","code":499}'
    (line,) = export([{"started_ns": 1, "ended_ns": 8, "outcome": CANCELLED, "valid": False, "error": error}])
    assert line["metadata"]["was_cancelled"] is True
    assert line["metadata"]["cancellation_time_ns"] == WALL + 8


def test_headers_are_never_later_than_the_body_behind_them():
    lines = export([DONE | {"ack_ns": 9, "first_byte_ns": 7}, DONE | {"ack_ns": 12}, DONE | {"ack_ns": 6, "first_byte_ns": 7}])
    assert [line["metadata"]["request_ack_ns"] - WALL for line in lines] == [7, 9, 6]


def test_a_request_names_the_reducer_of_its_shard():
    lines = export([DONE | {"shard": shard} for shard in range(5)], reducers=2)
    assert [line["metadata"]["record_processor_id"][-1] for line in lines] == ["0", "1", "0", "1", "0"]


def test_phases_are_named_and_profiling_ones_numbered():
    lines = export(
        [DONE | {"phase": phase} for phase in (0, 1, 2)],
        phases=("warmup", "first", "second"),
        kinds=("warmup", "profiling", "profiling"),
    )
    metadata = [line["metadata"] for line in lines]
    assert [one.get("profiling_index") for one in metadata] == [None, 0, 1]
    assert [(one["phase_name"], one["phase_kind"], one["phase_index"]) for one in metadata] == [
        ("warmup", "warmup", 0), ("first", "profiling", 1), ("second", "profiling", 2)
    ]  # fmt: skip


def test_a_batch_gives_the_same_lines_as_its_halves():
    rows = [DONE | {"n": n, "valid": n % 2 == 0, "outcome": n % 2} for n in range(6)]
    values = {"output_sequence_length": np.array([1.0, math.nan, 2.5, math.nan, 4.0, 5.0])}

    def lines(low, high):
        part = {tag: column[low:high] for tag, column in values.items()}
        return Records(Target(Path())).rows(batch(rows[low:high]).with_metrics(part, {Tokens.tag: Tokens()}))

    assert lines(0, 6) == lines(0, 3) + lines(3, 6)


@pytest.mark.parametrize(
    "values",
    [
        [7.0] * 12, [0.1] * 12, [1e300] * 12, [0.0] * 12, [-0.0] * 12, [0.0] * 11 + [-0.0], [math.nan] * 12,
        [3.0] * 11 + [math.nan],
    ],
)
@pytest.mark.parametrize("metric", [Latency, Tokens])
def test_a_value_that_all_lines_have_is_written_as_in_each_alone(metric: type[Metric], values: list[float]):
    column, metrics = np.array(values), {metric.tag: metric()}

    def lines(low, high):
        return Records(Target(Path())).rows(batch([DONE] * (high - low)).with_metrics({metric.tag: column[low:high]}, metrics))

    assert lines(0, 12) == b"".join(lines(at, at + 1) for at in range(12))


ODD_TEXTS = st.none() | st.text(max_size=4) | st.sampled_from(['","', '"', "\\", '",', '"metrics":{,', "a,b", "{,"])
ODD_VALUES = st.sampled_from([math.nan, math.inf, 0.0, -0.0, 1.0, 1e-7, 2.0**60]) | st.floats(0, 1e12)


@given(st.lists(st.tuples(ODD_TEXTS, ODD_TEXTS, ODD_VALUES, ODD_VALUES), min_size=1, max_size=6))
def test_whatever_the_values_are_each_line_is_as_it_is_alone(values):
    def lines(some) -> bytes:
        ids, words, latencies, tokens = zip(*some, strict=True)
        errors = [None if word is None else json.dumps({"message": word}) for word in words]
        shared = {"outcome": COMPLETED} | DONE
        scored = batch([
            shared | {"conversation_id": one, "worker": word, "error": error, "valid": error is None}
            for one, word, error in zip(ids, words, errors, strict=True)
        ]).with_metrics(
            {"request_latency": np.array(latencies), "output_sequence_length": np.array(tokens)},
            {"request_latency": Latency(), "output_sequence_length": Tokens()},
        )  # fmt: skip
        return Records(Target(Path(), started_wall_ns=WALL)).rows(scored)

    together = lines(values)
    assert together == b"".join(lines([one]) for one in values)
    for line, (conversation, word, latency, count) in zip(together.splitlines(), values, strict=True):
        found = json.loads(line)
        assert found["metadata"].get("conversation_id") == conversation
        assert found.get("error", {}).get("message") == word
        named = {"request_latency": latency, "output_sequence_length": count}
        assert list(found["metrics"]) == [name for name, value in named.items() if math.isfinite(value)]


def test_an_empty_batch_gives_nothing():
    assert Records(Target(Path())).rows(batch([])) == b""


def test_the_shipped_schema_is_that_of_the_structures():
    assert schema() == SCHEMA
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


def test_joining_parts_in_the_parent_needs_no_numpy():
    code = "import sys, aiperf_exporter_records; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_new_connection_has_its_reason():
    flags = ((0, 0), (1, 0), (0, 1))
    lines = export([DONE | {"reconnected": closed, "resent": resent} for closed, resent in flags])
    assert [line["metadata"].get("reconnected") for line in lines] == [None, "closed_before_write", "unacknowledged"]


# --export-http-trace


class Sending(Metric):
    tag, title, unit, display = "http_req_sending", "HTTP Sending", Unit.NANOSECONDS, Unit.MILLISECONDS


class TestTraces:
    ROW = DONE | {
        "connected_ns": 50, "sent_ns": 51, "sent_end_ns": 60, "ack_ns": 80, "first_byte_ns": 90, "last_byte_ns": 99,
        "ended_ns": 100, "status": 200, "bytes_sent": 7, "bytes_received": 30, "dns_ns": 4, "connect_ns": 10, "tls_ns": 20,
        "reused": 0,
    }  # fmt: skip
    TEXT = json.dumps(
        {"request_headers": {"A": "b"}, "reason": "OK", "response_headers": {"c": "d"}, "reads": [[90, 10], [99, 20]]}
    )

    def traced(self, rows: list[dict], texts: list[str | None]) -> list[dict | None]:
        def column(name):
            return np.array([row.get(name, math.nan) for row in rows], dtype=np.float64)

        found = batch(rows)
        columns = found.columns | {name: column(name) for name in self.ROW}
        whole = RecordBatch(columns, found.valid, found.texts | {"trace": texts})
        config = {"endpoint": {"transport": "aiohttp"}}
        sending = {"http_req_sending": columns["sent_end_ns"] - columns["connected_ns"]}
        scored = whole.with_metrics(sending, {"http_req_sending": Sending()})
        lines = Records(Target(Path(), started_wall_ns=WALL, config=config)).rows(scored).splitlines()
        for line in lines:
            jsonschema.validate(json.loads(line), SCHEMA)
        return [json.loads(line).get("trace_data") for line in lines]

    def test_a_fresh_connections_steps_follow_each_other(self):
        (trace,) = self.traced([self.ROW], [self.TEXT])
        assert trace == {
            "trace_type": "aiohttp", "request_headers": {"A": "b"},
            "connection_pool_wait_start_ns": WALL + 5, "connection_pool_wait_end_ns": WALL + 16,
            "dns_lookup_start_ns": WALL + 16, "dns_lookup_end_ns": WALL + 20,
            "tcp_connect_start_ns": WALL + 20, "tcp_connect_end_ns": WALL + 50,
            "request_send_start_ns": WALL + 50, "request_headers_sent_ns": WALL + 51, "request_send_end_ns": WALL + 60,
            "request_bytes_total": 7, "response_status_code": 200, "response_reason": "OK", "response_headers": {"c": "d"},
            "response_headers_received_ns": WALL + 80, "response_receive_start_ns": WALL + 90,
            "response_receive_end_ns": WALL + 99, "response_chunks": [[WALL + 90, 10], [WALL + 99, 20]],
            "response_chunks_count": 2, "response_bytes_total": 30, "sending_ns": 10,
        }  # fmt: skip

    def test_an_open_connection_was_neither_looked_up_nor_made(self):
        row = self.ROW | {"reused": 1, "dns_ns": 0, "connect_ns": 0, "tls_ns": 0}
        (trace,) = self.traced([row], [self.TEXT])
        assert trace is not None
        assert trace["connection_reused_ns"] == trace["connection_pool_wait_end_ns"] == WALL + 50
        assert [name for name in trace if name.startswith(("dns", "tcp"))] == []

    def test_what_never_came_to_it_is_absent(self):
        row = {"started_ns": 5, "ended_ns": 8, "outcome": ERROR, "valid": False, "dns_ns": 0, "connect_ns": 0, "tls_ns": 0}
        never, (aborted) = self.traced([row, row | {"outcome": ABORTED}, self.ROW], [None, None, self.TEXT])
        assert never == {
            "trace_type": "aiohttp", "connection_pool_wait_start_ns": WALL + 5, "error_timestamp_ns": WALL + 8
        }  # fmt: skip
        assert aborted is not None, "the aborted one has no line, and the last keeps its own trace"
        assert aborted["response_chunks_count"] == 2

    def test_without_the_option_there_is_none(self):
        assert "trace_data" not in export([DONE])[0]


class TestRecordsKeepsTheContract(BatchExporterContract):
    exporter = Records


class Torn(Metric):
    tag, title, unit, detail_field = "torn", "Torn", Unit.REQUESTS, "torn_detail"

    def column(self, batch):
        return np.ones(len(batch))

    def details(self, batch):
        raise ValueError("no such text")


class Short(Torn):
    def details(self, batch):
        return []


@pytest.mark.parametrize(("metric", "why"), [
    (Torn(), "details() failed: ValueError: no such text"),
    (Short(), "details() returned 0 values for 1 requests"),
])  # fmt: skip
def test_details_that_fail_cost_their_field_alone_and_name_the_metrics_package(metric, why):
    exporter = Records(Target(Path()))
    scored = batch([{}]).with_metrics({"torn": np.ones(1)}, {"torn": metric})
    for data in (exporter.rows(scored), exporter.rows(scored)):
        (line,) = map(json.loads, data.splitlines())
        assert line["metrics"]["torn"]["value"] == 1 and "torn_detail" not in line
    package = __name__.partition(".")[0]
    assert exporter.left_out() == [f"metric torn of {package}: {why}; its records have no torn_detail from here on"]
