import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

pq = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed: the parquet exporters need it")

from aiperf import AiperfError, RecordBatch, Target, ragged  # noqa: E402
from aiperf.testing.batches import sample_batch  # noqa: E402
from aiperf.testing.manifests import check_row  # noqa: E402
from aiperf.testing.summaries import sample_summary  # noqa: E402
from aiperf_exporter_parquet import ChunkTable, RequestTable  # noqa: E402
from aiperf_exporter_parquet.chunks import _ROW  # noqa: E402
from aiperf_exporter_parquet.contract import ChunkTableContract, RequestTableContract  # noqa: E402

WALL = 1_700_000_000_000_000_000
RECORDS = {"jsonl": "{prefix}.jsonl"}
"""The file of the records exporter, which the table is made of."""


def records(path: Path, *lines: dict) -> None:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def line(number: int, metrics: dict | None = None, **more) -> dict:
    metadata = {"session_num": number, "x_request_id": f"r{number}", "was_cancelled": False, "request_start_ns": WALL + number}
    return {"metadata": metadata, "metrics": metrics or {}, **more}


def test_a_row_a_record_with_a_column_a_metric(tmp_path):
    latency, gaps = {"value": 1.5, "unit": "ms"}, {"value": [0.5, 1.0], "unit": "ms"}
    error = {"code": 503, "type": "Busy", "message": "later"}
    tokens = {"value": 7, "unit": "tokens"}
    first = line(0, {"request_latency": latency, "inter_chunk_latency": gaps, "osl": tokens})
    records(tmp_path / "profile_export.jsonl", first, line(1, error=error))
    (artifact,) = RequestTable(Target(tmp_path, files=RECORDS)).export(sample_summary())
    table = pq.read_table(artifact.path)
    assert artifact.path.name == "profile_export.parquet"
    assert table.to_pylist() == [
        {
            "session_num": 0, "x_request_id": "r0", "was_cancelled": False, "request_start_ns": WALL, "request_latency": 1.5,
            "inter_chunk_latency": [0.5, 1.0], "osl": 7.0, "error_code": None, "error_type": None, "error_message": None,
        },
        {
            "session_num": 1, "x_request_id": "r1", "was_cancelled": False, "request_start_ns": WALL + 1,
            "request_latency": None, "inter_chunk_latency": None, "osl": None,
            "error_code": 503, "error_type": "Busy", "error_message": "later",
        },
    ]  # fmt: skip
    assert table.schema.field("request_latency").metadata == {b"unit": b"ms"}


def test_a_run_without_records_is_an_empty_table(tmp_path):
    records(tmp_path / "profile_export.jsonl")
    (artifact,) = RequestTable(Target(tmp_path, prefix=None, files=RECORDS)).export(sample_summary())
    assert pq.read_table(artifact.path).num_rows == 0


def test_without_the_per_request_file_it_says_what_is_missing(tmp_path):
    with pytest.raises(AiperfError, match=r"profile_export\.jsonl is not there"):
        RequestTable(Target(tmp_path, files=RECORDS)).export(sample_summary())
    assert list(tmp_path.iterdir()) == []


def chunks(tmp_path: Path, parts: int) -> list[dict]:
    batch = sample_batch(30)
    exporter = ChunkTable(Target(tmp_path, started_wall_ns=WALL), SimpleNamespace(parquet_chunks=True))
    paths = []
    for number, rows in enumerate(np.array_split(np.arange(30), parts)):
        path = tmp_path / f"part-{number}"
        path.write_bytes(exporter.rows(batch.take(rows)))
        paths.append(path)
    out = tmp_path / "chunks.parquet"
    out.write_bytes(b"".join(exporter.join(paths)))
    found: list[dict] = pq.read_table(out).to_pylist()
    return found


def test_every_chunk_is_a_row_with_instant_and_gap(tmp_path):
    batch, found = sample_batch(30), chunks(tmp_path, 1)
    instants = batch.lists("chunk_ns")
    assert [row["at_ns"] for row in found] == (instants.values.astype(np.int64) + WALL).tolist()
    for i in range(30):
        mine = [row for row in found if (row["worker_id"], row["request"]) == (f"worker-{i % 2}", i // 2)]
        assert [row["chunk"] for row in mine] == list(range(len(instants.row(i))))
        assert [row["gap_ns"] for row in mine] == ([None, *np.diff(instants.row(i)).astype(int).tolist()] if mine else [])
    assert {row["phase_name"] for row in found} == {"profiling"}


def test_a_gap_in_front_of_a_merged_read_is_unknown(tmp_path):
    at = [[10.0, 40.0, 50.0]]
    columns = sample_batch(1).columns | {"chunk_ns": ragged(at, at)}
    ends = [[40.0, 40.0, 50.0]]
    lists = {"gap_ns": [15.0, 15, 10], "gap_low_ns": [15.0, 0, 10], "gap_high_ns": [30.0, 15, 10], "gap_slack_ns": [0.0, 0, 0]}
    columns |= {name: ragged([values], ends) for name, values in lists.items()}
    rows = ChunkTable(Target(tmp_path, started_wall_ns=WALL), SimpleNamespace(parquet_chunks=True)).rows(
        RecordBatch(columns, np.ones(1, dtype=bool), sample_batch(1).texts)
    )
    assert np.frombuffer(rows, dtype=_ROW)["gap_ns"].tolist() == [-1, -1, 10]


def test_parts_of_several_reducers_are_one_table(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    assert chunks(tmp_path / "a", 1) == chunks(tmp_path / "b", 4)


@pytest.mark.parametrize(("options", "wanted"), [(None, False), (False, False), (True, True)])
def test_chunks_are_written_on_request_alone(tmp_path, options, wanted):
    made = ChunkTable(Target(tmp_path), None if options is None else SimpleNamespace(parquet_chunks=options))
    assert made.wanted() is wanted


def test_their_manifest_says_what_they_are():
    check_row("exporters", RequestTable)


class TestRequestsKeepTheContract(RequestTableContract):
    pass


class TestChunksKeepTheContract(ChunkTableContract):
    pass
