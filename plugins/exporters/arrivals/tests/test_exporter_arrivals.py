import gzip
import json
import math
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import aiperf_exporter_arrivals
import jsonschema
import numpy as np
from aiperf import RecordBatch, Target
from aiperf.rundir.journal import ABORTED, CANCELLED, COMPLETED, ERROR, NEVER_SENT, OUTCOMES, OVERFLOWED, RELEASED, UNFINISHED
from aiperf.testing import BatchExporterContract
from aiperf_exporter_arrivals import Arrivals
from aiperf_exporter_arrivals.lines import schema

WALL = 2**60 + 1
STAMPS = ("due_ns", "started_ns", "connected_ns", "sent_ns", "sent_end_ns", "first_byte_ns", "last_byte_ns", "ended_ns")
SCHEMA = json.loads(files("aiperf_exporter_arrivals").joinpath("profile_export_arrivals.schema.json").read_text())


def part(rows: list[dict]) -> bytes:
    def column(name, otherwise=math.nan):
        return np.array([row.get(name, otherwise) for row in rows], dtype=np.float64)

    columns = {name: column(name) for name in (*STAMPS, "session", "turn", "lane")}
    columns |= {"n": column("n", 0), "phase": column("phase", 0), "outcome": column("outcome", COMPLETED)}
    columns |= {name: column(name) for name in ("fault", "reconnected", "resent")}
    texts = {name: [row.get(name) for row in rows] for name in ("worker", "url", "request_id", "conversation_id")}
    columns |= {"stream": column("stream")} if any("stream" in row for row in rows) else {}
    valid = np.array([row.get("outcome", COMPLETED) == COMPLETED for row in rows])
    target = Target(Path(), started_wall_ns=WALL, phases=("warmup", "load"), kinds=("warmup", "profiling"))
    return Arrivals(target).rows(RecordBatch(columns, valid, texts))


def joined(directory: Path, *parts: bytes) -> list[dict]:
    paths = []
    for number, content in enumerate(parts):
        paths.append(directory / f"part-arrivals-{number}")
        paths[-1].write_bytes(content)
    lines = [json.loads(line) for line in b"".join(Arrivals(Target(directory)).join(paths)).splitlines()]
    for line in lines:
        jsonschema.validate(line, SCHEMA)
    return lines


def test_an_answered_arrival_has_every_stamp_exactly(tmp_path):
    row = {"n": 7, "session": 3, "turn": 1, "phase": 1, "worker": "worker-0", "url": "http://h#\u00e9", "request_id": "r"}
    (line,) = joined(tmp_path, part([row | {name: float(i) for i, name in enumerate(STAMPS)}]))
    assert line == {
        "phase": "load", "phase_index": 1, "n": 7, "outcome": "completed", "session": 3, "turn": 1, "worker": "worker-0",
        "url": "http://h#\u00e9", "x_request_id": "r", **{name: WALL + i for i, name in enumerate(STAMPS)}, "record_line": 1,
    }  # fmt: skip


def test_what_was_never_sent_has_its_due_time_and_nothing_else(tmp_path):
    (line,) = joined(tmp_path, part([{"n": 9, "due_ns": 5, "outcome": NEVER_SENT}]))
    assert line == {"phase": "warmup", "phase_index": 0, "n": 9, "outcome": "never_sent", "due_ns": WALL + 5}


def test_a_turn_of_a_tree_that_was_not_sent_names_its_conversation(tmp_path):
    row = {"n": math.nan, "session": 4, "turn": 2, "stream": 1, "lane": 7, "conversation_id": "w::sa:x", "outcome": RELEASED}
    (line,) = joined(tmp_path, part([row]))
    assert line == {
        "phase": "warmup", "phase_index": 0, "outcome": "released", "session": 4, "turn": 2, "stream": 1,
        "conversation_id": "w::sa:x", "lane": 7,
    }  # fmt: skip


def test_every_outcome_is_named_and_only_recorded_ones_point_at_a_line(tmp_path):
    outcomes = (ABORTED, COMPLETED, NEVER_SENT, ERROR, UNFINISHED, CANCELLED, OVERFLOWED)
    lines = joined(tmp_path, part([{"outcome": outcome} for outcome in outcomes]))
    assert [line["outcome"] for line in lines] == [OUTCOMES[outcome] for outcome in outcomes]
    assert [line.get("record_line") for line in lines] == [None, 1, None, 2, None, 3, 4]


def test_a_new_connection_has_its_reason(tmp_path):
    flags = ((0, 0), (1, 0), (0, 1), (1, 1), (1, math.nan))
    lines = joined(tmp_path, part([{"reconnected": closed, "resent": resent} for closed, resent in flags]))
    assert [line.get("reconnected") for line in lines] == [None, "closed_before_write", *["unacknowledged"] * 2, None]


def test_an_aborted_request_has_its_end_and_a_broken_answer_is_cut(tmp_path):
    aborted, cut = {"outcome": ABORTED, "ended_ns": 5}, {"outcome": ERROR, "fault": 1, "ended_ns": 7}
    lines = joined(tmp_path, part([aborted, cut, {"outcome": ERROR, "fault": 0}]))
    ends = [(line["outcome"], line.get("ended_ns")) for line in lines]
    assert ends == [("aborted", WALL + 5), ("cut", WALL + 7), ("error", None)]
    assert [line.get("record_line") for line in lines] == [None, 1, 2]


def test_record_lines_are_counted_across_batches_and_reducers(tmp_path, monkeypatch):
    monkeypatch.setattr(aiperf_exporter_arrivals, "_BLOCK_BYTES", 7)  # blocks end anywhere
    first, second = part([{}, {"outcome": ABORTED}, {}]), part([{}, {}])
    lines = joined(tmp_path, first + second, part([]), second)
    assert [line.get("record_line") for line in lines] == [1, None, 2, 3, 4, 5, 6]


def test_a_long_ledger_is_the_same_lines_in_gzip(tmp_path, monkeypatch):
    rows = part([{"n": n, "outcome": ABORTED if n % 3 else COMPLETED} for n in range(40)])
    paths = [tmp_path / "part-arrivals-0", tmp_path / "part-arrivals-1"]
    for path in paths:
        path.write_bytes(rows)
    exporter = Arrivals(Target(tmp_path))
    monkeypatch.setattr(aiperf_exporter_arrivals, "_BLOCK_BYTES", 100)  # many members
    monkeypatch.setattr(aiperf_exporter_arrivals, "MOST_PLAIN", 80)
    assert exporter.form(paths) == "arrivals.jsonl"
    plain = b"".join(exporter.join(paths))
    monkeypatch.setattr(aiperf_exporter_arrivals, "MOST_PLAIN", 79)
    assert exporter.form(paths) == "arrivals.jsonl.gz"
    packed = b"".join(exporter.join(paths))
    assert gzip.decompress(packed) == plain
    assert b"".join(exporter.join(paths)) == packed


def test_the_shipped_schema_is_that_of_the_structure():
    assert schema() == SCHEMA
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


def test_joining_parts_in_the_parent_needs_no_numpy():
    code = "import sys, aiperf_exporter_arrivals; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


class TestArrivalsKeepsTheContract(BatchExporterContract):
    exporter = Arrivals
