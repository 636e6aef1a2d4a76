import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed: the parquet exporters need it")
pq = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed: the parquet exporters need it")

from aiperf import Metric, Ragged, RecordBatch, Target, Unit, ragged  # noqa: E402
from aiperf.parts.journal import CANCELLED, OUTCOMES  # noqa: E402
from aiperf.sdk.columns import BOUND_COLUMNS  # noqa: E402
from aiperf_exporter_parquet import ChunkTable, RequestTable  # noqa: E402
from aiperf_exporter_parquet.chunks import _ROW  # noqa: E402
from aiperf_exporter_parquet.contract import ChunkTableContract, RequestTableContract  # noqa: E402
from aiperf_exporter_records import Records  # noqa: E402
from aiperf_testing.batches import sample_batch, scored  # noqa: E402
from aiperf_testing.journals import Recording  # noqa: E402
from aiperf_testing.manifests import check_row  # noqa: E402

WALL = 1_700_000_000_000_000_000
class Tokens(Metric):
    tag, title, unit, order = "osl", "Tokens", Unit.TOKENS, 2

    def column(self, batch):
        return batch["output_tokens"]


class Latency(Metric):
    tag, title, unit, display, order = "request_latency", "Latency", Unit.NANOSECONDS, Unit.MILLISECONDS, 1

    def column(self, batch):
        return batch["last_token_ns"] - batch["started_ns"]


class Gaps(Metric):
    tag, title, unit, display, order = "inter_chunk_latency", "Gaps", Unit.NANOSECONDS, Unit.MILLISECONDS, 3

    def column(self, batch):
        return batch.lists("gap_ns")


def written(folder: Path, *parts: list[RecordBatch], **changes) -> tuple[pa.Table, list[dict]]:
    """The table of reducers with these batches, and the lines of the per-request file."""
    target = Target(folder, started_wall_ns=WALL, **changes)
    exporter, paths, lines = RequestTable(target), [], []
    for number, batches in enumerate(parts):
        paths.append(folder / f"part-{number}")
        paths[-1].write_bytes(b"".join(map(exporter.rows, batches)))
        lines += [json.loads(line) for batch in batches for line in Records(target).rows(batch).splitlines()]
    (folder / "table").write_bytes(b"".join(exporter.join(paths)))
    table = pq.read_table(folder / "table")
    return table.drop_columns([name for name in table.schema.names if name == "estimated_gaps"]), lines


def test_a_row_says_how_many_of_its_gaps_are_estimates(tmp_path):
    batch = sample_batch(30)
    gaps = batch.lists("gap_ns")
    owners = np.repeat(np.arange(30), np.diff(gaps.offsets))
    doubtful = (np.arange(len(owners)) % 3 == 0) & (owners % 2 == 0)
    for name, factor in zip(BOUND_COLUMNS[:2], (0.5, 1.5), strict=True):
        batch.columns[name] = Ragged(np.where(doubtful, gaps.values * factor, gaps.values), gaps.offsets, gaps.at_ns)
    written(tmp_path, [scored((Latency(),), batch)])
    told = pq.read_table(tmp_path / "table")["estimated_gaps"].to_pylist()
    counts = np.bincount(owners[doubtful], minlength=30).tolist()
    assert told == [count if size else None for count, size in zip(counts, np.diff(gaps.offsets).tolist(), strict=True)]
    assert None in told and 0 in told and max(counts) > 0


def test_a_table_says_of_which_run_it_is(tmp_path):
    made = Recording(tmp_path)
    table, _ = written(tmp_path, [scored((Latency(),), sample_batch(3))], journal=made.journal)
    told = {name.decode(): value.decode() for name, value in table.schema.metadata.items()}
    run = made.plan.run
    assert told == {"aiperf.benchmark_id": run.run_id, "aiperf.random_seed": str(run.seed), "aiperf.cli_command": run.command,
                    "aiperf.version": run.version}  # fmt: skip


def row(line: dict, columns: list[str]) -> dict:
    """The row of a line of the per-request file."""
    error = {f"error_{name}": value for name, value in line.get("error", {}).items() if name in ("code", "type", "message")}
    known = line["metadata"] | {tag: metric["value"] for tag, metric in line["metrics"].items()} | error
    return {name: known.get(name) for name in columns}


def test_a_row_is_a_line_of_the_per_request_file(tmp_path):
    batch = sample_batch(60)
    errors = [None] * 60
    errors[7] = '{"code":503,"type":"Busy","message":"später"}'
    batch.texts["error"], batch.texts["conversation_id"][5] = errors, None
    batch.columns["phase"][:8] = 1.0
    batch.columns["outcome"][[3, 11]] = [CANCELLED, OUTCOMES.index("aborted")]
    parts = [scored((Latency(), Tokens(), Gaps()), batch.take(np.arange(60)[rows])) for rows in (slice(0, 9), slice(9, 60))]
    table, lines = written(tmp_path, parts, phases=("profiling", "w"), kinds=("profiling", "warmup"), reducers=2)
    names = table.schema.names
    assert table.to_pylist() == [row(line, names) for line in lines] and len(lines) == 59
    firsts = dict.fromkeys(name for part in ("metadata", "metrics") for line in lines for name in line[part])
    assert names == [*firsts, "error_code", "error_type", "error_message"]
    assert table.schema.field("request_latency").metadata == {b"unit": b"ms"}
    assert [str(table.schema.field(name).type) for name in ("session_num", "was_cancelled", "inter_chunk_latency")] == [
        "int64", "bool", "list<element: double>"
    ]  # fmt: skip


def test_a_run_without_records_is_an_empty_table(tmp_path):
    table, _ = written(tmp_path)
    assert table.num_rows == 0 and table.schema.names == ["error_code", "error_type", "error_message"]


def test_a_metric_that_is_switched_off_leaves_absent_values(tmp_path):
    batches = [scored(metrics, sample_batch(6)) for metrics in ((Latency(),), (Latency(), Tokens()), (Tokens(),))]
    table, lines = written(tmp_path, batches[:1], batches[1:])
    assert table.to_pylist() == [row(line, table.schema.names) for line in lines]
    assert table.schema.names[-5:-3] == ["request_latency", "osl"]
    assert table["osl"][:6].null_count == 6 and table["request_latency"][-6:].null_count == 6


def test_many_requests_are_groups_of_rows(tmp_path, monkeypatch):
    monkeypatch.setattr("aiperf_exporter_parquet.requests._GROUP_ROWS", 50)
    table, lines = written(tmp_path, *[[scored((Latency(),), sample_batch(40))] * 2] * 2)
    assert pq.ParquetFile(tmp_path / "table").metadata.num_row_groups == 4
    assert table["session_num"].to_pylist() == [line["metadata"]["session_num"] for line in lines] and len(lines) == 160


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
