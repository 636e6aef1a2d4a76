"""Compressed row files, and tables."""

from __future__ import annotations

import gzip
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from aiperf.errors import BadDataset
from aiperf_rows.row_files import blocks, first_row, rows, stored_rows, tables

pyarrow = pytest.importorskip("pyarrow")
ROWS = [{"question": f"what is {number}?", "level": number} for number in range(1, 3001)]
TEXT = b'\xef\xbb\xbfquestion,level\n"who, and\nwhere?",1\n\nwhy?,2\n'


def _zst(path: Path, text: bytes) -> Path:
    path.write_bytes(pyarrow.compress(text, codec="zstd", asbytes=True))
    return path


def _parquet(path: Path) -> None:
    from pyarrow import parquet

    parquet.write_table(pyarrow.Table.from_pylist(ROWS), path, row_group_size=700)


def _feather(path: Path) -> None:
    from pyarrow import feather

    feather.write_feather(pyarrow.Table.from_pylist(ROWS), str(path))


def _arrow(path: Path) -> None:
    table = pyarrow.Table.from_pylist(ROWS)
    with pyarrow.ipc.new_stream(str(path), table.schema) as stream:
        stream.write_table(table, max_chunksize=1500)


def _said(found: Any) -> str:
    with pytest.raises(BadDataset) as caught:
        list(found)
    return str(caught.value.message) + " " + " ".join(caught.value.hints)


def test_rows_of_a_zstd_file_have_their_lines(tmp_path: Path) -> None:
    path = _zst(tmp_path / "x.jsonl.zst", b'\n{"a": 1}\n  \n{"a": 2}\n')
    assert list(rows(path)) == [(2, {"a": 1}), (4, {"a": 2})]
    whole = path.read_bytes()
    path.write_bytes(whole * 2)
    assert [number for number, _ in rows(path)] == [2, 4, 6, 8], "a file can have several frames"
    path.write_bytes(whole[:-6])
    assert "x.jsonl.zst can't be read" in _said(rows(path))


@pytest.mark.parametrize("name", ["x.csv", "x.csv.zst"])
def test_lines_of_csv_are_those_where_rows_begin(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(TEXT) if name == "x.csv" else _zst(path, TEXT)
    assert list(tables(path)) == [(2, {"question": "who, and\nwhere?", "level": "1"}), (5, {"question": "why?", "level": "2"})]
    assert list(tables(path, columns=["level"])) == [(2, {"level": "1"}), (5, {"level": "2"})]


def test_a_header_without_commas_tells_what_is_between_values(tmp_path: Path) -> None:
    for between in ";\t":
        (tmp_path / "x.csv").write_text(f'a{between}b\n"1{between}, 2"{between}\n'.replace("\n", "\r\n"))
        assert list(tables(tmp_path / "x.csv")) == [(2, {"a": f"1{between}, 2", "b": ""})]
        assert list(rows(tmp_path / "x.csv")) == [(2, {"a": f"1{between}, 2"})]


def test_rows_of_a_table_are_those_of_its_json(tmp_path: Path) -> None:
    from pyarrow import parquet

    given = [{"a": 1, "of": [{"b": None, "c": "d"}]}, {"a": None, "of": None}]
    parquet.write_table(pyarrow.Table.from_pylist(given), tmp_path / "x.parquet")
    assert list(rows(tmp_path / "x.parquet")) == [(1, {"a": 1, "of": [{"c": "d"}]}), (2, {})]


@pytest.mark.parametrize(("name", "write"), [("x.parquet", _parquet), ("x.feather", _feather), ("x.arrow", _arrow)])
def test_columnar_files_have_rows_and_types(tmp_path: Path, name: str, write: Callable[[Path], None]) -> None:
    path = tmp_path / name
    write(path)
    assert list(tables(path)) == list(enumerate(ROWS, 1))
    assert next(tables(path, columns=["level"])) == (1, {"level": 1})
    assert "has no column answer its columns: question, level" in _said(tables(path, columns=["level", "answer"]))
    path.write_bytes(path.read_bytes()[:60])
    assert f"{name} can't be read" in _said(tables(path))


@pytest.mark.parametrize(("text", "words"), [
    (b"a,b\n1,2\n3\n", "x.csv:3: 1 values for 2 columns"), (b"a,a\n", "x.csv:1: a column's name occurs twice"),
    (b'a\n1\n"2', "x.csv can't be read after line 2"), (b"a\n1\n\xff\n", "x.csv can't be read"),
])  # fmt: skip
def test_a_bad_table_is_named_with_its_line(tmp_path: Path, text: bytes, words: str) -> None:
    (tmp_path / "x.csv").write_bytes(text)
    assert words in _said(tables(tmp_path / "x.csv"))


def test_a_name_without_a_known_ending_is_refused(tmp_path: Path) -> None:
    assert "known: .csv, .parquet, .arrow, .feather" in _said(tables(tmp_path / "x.xlsx"))


def test_a_missing_package_is_named_with_its_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    for found in (rows(tmp_path / "x.jsonl.zst"), tables(tmp_path / "x.parquet"), tables(tmp_path / "x.arrow")):
        assert "pip install 'aiperf-core[tables]'" in _said(found)
    (tmp_path / "x.csv").write_bytes(TEXT)
    assert len(list(tables(tmp_path / "x.csv"))) == 2


def test_a_directory_in_place_of_a_file_is_refused_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(BadDataset, match="can't be read: Is a directory") as caught:
        next(rows(tmp_path))
    assert "name a file in it" in "\n".join(caught.value.lines())


@pytest.mark.parametrize(
    "text", [b"", b"\xef\xbb\xbf", b"\xef\xbb\xbfa\n\nbc", b"a\n", b"\n" * 9, b"long line without end", b"abc\r\nd\n"]
)
@pytest.mark.parametrize("ending", [".jsonl", ".jsonl.gz"])
def test_blocks_are_whole_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: bytes, ending: str) -> None:
    monkeypatch.setattr("aiperf_rows.row_files._BLOCK_BYTES", 4)
    file = tmp_path / f"rows{ending}"
    file.write_bytes(gzip.compress(text) if ending == ".jsonl.gz" else text)
    found = list(map(bytes, blocks(file)))
    assert b"".join(found) == text.removeprefix(b"\xef\xbb\xbf")
    assert all(found)
    assert all(block.endswith(b"\n") for block in found[:-1])


def test_parquet_says_how_many_rows_it_has(tmp_path: Path) -> None:
    _parquet(tmp_path / "rows.parquet")
    assert stored_rows(tmp_path / "rows.parquet") == len(ROWS)
    assert stored_rows(tmp_path / "rows.csv") is None
    (tmp_path / "rows.parquet").write_bytes(b"PAR1")
    with pytest.raises(BadDataset, match=r"rows\.parquet can't be read"):
        stored_rows(tmp_path / "rows.parquet")


def test_rows_come_with_their_lines_also_from_a_compressed_file(tmp_path: Path) -> None:
    text = b'\n{"a": 1}\n  \n{"a": 2}\n'
    (tmp_path / "x.jsonl").write_bytes(text)
    (tmp_path / "x.jsonl.gz").write_bytes(gzip.compress(text))
    for name in ("x.jsonl", "x.jsonl.gz"):
        assert list(rows(tmp_path / name)) == [(2, {"a": 1}), (4, {"a": 2})]
    assert first_row(tmp_path / "x.jsonl") == {"a": 1}


def test_a_byte_order_mark_is_no_part_of_the_first_row(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_text('{"a": 1}\n', encoding="utf-8-sig")
    assert first_row(tmp_path / "x.jsonl") == {"a": 1}


@pytest.mark.parametrize(("text", "where"), [
    (b'{"a": 1}\n{"a": \n', ":2: no JSON"), (b"[1]\n", ":1: list"), (b'{"a": "\xff"}\n', ":1: no JSON"),
])  # fmt: skip
def test_a_bad_row_is_named_with_its_line(tmp_path: Path, text: bytes, where: str) -> None:
    (tmp_path / "x.jsonl").write_bytes(text)
    with pytest.raises(BadDataset) as caught:
        list(rows(tmp_path / "x.jsonl"))
    assert where in caught.value.message
    assert first_row(tmp_path / "x.jsonl") in (None, {"a": 1})


def test_a_compressed_file_that_is_cut_is_named(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl.gz").write_bytes(gzip.compress(b'{"a": 1}\n' * 5000)[:-20])
    with pytest.raises(BadDataset, match="can't be read"):
        list(rows(tmp_path / "x.jsonl.gz"))
