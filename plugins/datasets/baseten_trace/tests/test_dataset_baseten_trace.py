"""Tables of recorded prompts: sessions, times of each kind of replay, hints, and rows that are none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from aiperf import BadDataset, Capabilities, Conversation, DatasetContext
from aiperf.testing import DatasetContract
from aiperf_dataset_baseten_trace.contract import BasetenTraceContract, recorded
from aiperf_dataset_baseten_trace.dataset import BasetenTrace
from aiperf_dataset_baseten_trace.options import BasetenTraceOptions

pyarrow = pytest.importorskip("pyarrow")


def written(path: Path, *rows: dict[str, Any]) -> Path:
    columns = {name: None for row in rows for name in row}
    table = pyarrow.Table.from_pylist([{name: row.get(name) for name in columns} for row in rows])
    if path.suffix == ".parquet":
        from pyarrow import parquet

        parquet.write_table(table, path)
    else:
        with pyarrow.ipc.new_file(str(path), table.schema) as file:
            file.write_table(table)
    return path


def read(path: Path, *rows: dict[str, Any], seed: int = 7, **given: Any) -> list[Conversation]:
    context = DatasetContext(100, seed, True, None, Capabilities(system_message=True), written(path, *rows))
    options = BasetenTraceOptions(**given)
    found = list(BasetenTrace(options, context))
    DatasetContract.check_promise(BasetenTrace(options, context), found)
    return found


class TestBasetenTraceKeepsTheContract(BasetenTraceContract):
    pass


@pytest.mark.parametrize("name", ["t.parquet", "t.arrow", "t.ipc", "t.feather"])
def test_prompts_are_sent_as_they_are(tmp_path: Path, name: str) -> None:
    one, other = read(tmp_path / name, recorded(0.5, "a  b", 0), recorded(0, "c", 3, total_hashes="[9]", block_size=64))
    assert [each.turns[0].text for each in (one, other)] == ["c", "a  b"], "in the order of their times"
    assert one.turns[0].extra == {"min_tokens": 3, "hash_ids": [9], "block_size": 64}
    assert (other.turns[0].max_tokens, other.turns[0].extra) == (1, {"min_tokens": 1})
    assert (one.turns[0].timestamp_ms, other.turns[0].timestamp_ms) == (0, 500)


def test_hashes_that_are_texts_are_sent_as_numbers(tmp_path: Path) -> None:
    rows = recorded(0, total_hashes='["9", "deadbeef"]'), recorded(1, total_hashes='["deadbeef", 9]')
    (one, other), (again, nine) = (each.turns[0].extra["hash_ids"] for each in read(tmp_path / "t.parquet", *rows))
    assert (one, nine) == (9, 9)
    assert other == again
    assert 0 <= other < 1 << 53


def test_hints_and_lengths_can_be_left_out(tmp_path: Path) -> None:
    row = recorded(0, total_hashes=[1, 2], block_size=64)
    assert read(tmp_path / "t.parquet", row)[0].turns[0].extra["hash_ids"] == [1, 2]
    assert read(tmp_path / "t.parquet", row, omit_kv_hints=True)[0].turns[0].extra == {"min_tokens": 5}
    assert read(tmp_path / "t.parquet", row, force_min_tokens=False, omit_kv_hints=True)[0].turns[0].extra == {}


SESSION = (
    recorded(10, "a", provided_session_id="s", duration_e2e_ms=800),
    recorded(11, "other", provided_session_id=None, duration_e2e_ms=50),
    recorded(12, "a b", provided_session_id="s", duration_e2e_ms=700),
    recorded(12.2, "a b c", provided_session_id="s", duration_e2e_ms=1),
)


@pytest.mark.parametrize(("given", "times"), [
    ({}, [[(0, None), (2000, None), (2200, None)], [(1000, None)]]),
    ({"open_loop_replay": False}, [[(0, None), (None, 1200), (None, 0)], [(1000, None)]]),
    ({"open_loop_strict": True}, [[(0, None)], [(1000, None)], [(2000, None)], [(2200, None)]]),
    ({"speedup": 2}, [[(0, None), (1000, None), (1100, None)], [(500, None)]]),
    ({"speedup": 2, "open_loop_replay": False}, [[(0, None), (None, 600), (None, 0)], [(500, None)]]),
    ({"idle_gap_cap_s": 0.5}, [[(0, None), (1000, None), (1200, None)], [(500, None)]]),
    ({"idle_gap_cap_s": 0.5, "speedup": 2}, [[(0, None), (500, None), (600, None)], [(250, None)]]),
])  # fmt: skip
def test_each_kind_of_replay_has_its_times(tmp_path: Path, given: dict[str, Any], times: list[Any]) -> None:
    found = read(tmp_path / "t.parquet", *SESSION, **given)
    assert [[(turn.timestamp_ms, turn.delay_ms) for turn in one.turns] for one in found] == times
    assert all(one.alone for one in found)
    assert found[0].turns[0].text == "a"


def test_sessions_are_named_by_the_first_id_that_a_row_has(tmp_path: Path) -> None:
    rows = [
        recorded(0, "a", poor_man_session_id="p", provided_session_id="s"), recorded(1, "b", poor_man_session_id="p"),
        recorded(2, "c", poor_man_session_id="x", provided_session_id="s"), recorded(3, "d", poor_man_session_id="p"),
    ]  # fmt: skip
    found = read(tmp_path / "t.parquet", *rows)
    assert [(one.id, [turn.text for turn in one.turns]) for one in found] == [("s", ["a", "c"]), ("p", ["b", "d"])]


def test_a_sample_has_whole_sessions_of_the_seed(tmp_path: Path) -> None:
    rows = [recorded(n + part, f"{n}", provided_session_id=f"s{n}") for part in (0, 0.5) for n in range(100)]
    found = [[one.id for one in read(tmp_path / "t.parquet", *rows, seed=seed, session_sample_ratio=0.3)] for seed in (1, 1, 2)]
    assert found[0] == found[1] != found[2]
    assert 15 < len(found[0]) < 45
    assert {len(one.turns) for one in read(tmp_path / "t.parquet", *rows, session_sample_ratio=0.3)} == {2}
    with pytest.raises(BadDataset, match="keeps none of 1 sessions"):
        read(tmp_path / "t.parquet", recorded(0), session_sample_ratio=1e-9)


@pytest.mark.parametrize(("bad", "words"), [
    ({"timestamp_start_unix_ms": -1}, "timestamp_start_unix_ms is -1; it must be a number of milliseconds"),
    ({"prompt": None}, "prompt is None; it must be a text"), ({"prompt": ""}, "prompt is ''"),
    ({"output_tokens": None}, "output_tokens is None; it must be a whole number of tokens"),
    ({"output_tokens": -1}, "output_tokens is -1"), ({"input_tokens": None}, "input_tokens is None"),
    ({"total_hashes": "[1"}, "total_hashes is '[1'; it must be a list of hashes, or its JSON"),
    ({"duration_e2e_ms": -5}, "duration_e2e_ms is -5"), ({"block_size": -1}, "block_size is -1"),
])  # fmt: skip
def test_a_row_that_breaks_a_rule_is_named_with_its_number(tmp_path: Path, bad: dict[str, Any], words: str) -> None:
    with pytest.raises(BadDataset) as caught:
        read(tmp_path / "t.parquet", recorded(0), {**recorded(1), **bad})
    assert words in caught.value.message
    assert "t.parquet: row 2: " in caught.value.message


def test_columns_of_another_kind_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadDataset, match="row 1: timestamp_start_unix_ms is '1700'"):
        read(tmp_path / "t.parquet", {**recorded(0), "timestamp_start_unix_ms": "1700"})
    with pytest.raises(BadDataset, match="has no column prompt"):
        read(tmp_path / "t.parquet", {name: value for name, value in recorded(0).items() if name != "prompt"})
    with pytest.raises(BadDataset, match="has no rows"):
        path = written(tmp_path / "t.parquet", recorded(0))
        from pyarrow import parquet

        parquet.write_table(parquet.read_table(path).slice(0, 0), path)
        list(BasetenTrace(BasetenTraceOptions(), DatasetContext(1, 7, True, None, Capabilities(), path)))


def test_it_knows_tables_with_its_columns() -> None:
    assert BasetenTrace.recognises(Path("t.parquet"), recorded(0))
    assert not BasetenTrace.recognises(Path("t.parquet"), {"prompt": "a"})
    assert not BasetenTrace.recognises(Path("t.parquet"), None)


def test_kinds_of_replay_exclude_each_other() -> None:
    (said,) = BasetenTraceOptions(open_loop_strict=True, open_loop_replay=False).problems({})
    assert "--open-loop-strict and --no-open-loop-replay exclude each other" in said
