"""Files of rows, read lazily: one JSON object per line, or a table in CSV, Parquet, Arrow or Feather."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import mmap
import zlib
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from types import ModuleType
from typing import Any, BinaryIO, cast

import msgspec
from aiperf import BadDataset
from aiperf.sdk.environment import most_line_bytes

from aiperf_rows.bounds import bounded_lines, regular, too_long, unpacked, why_no_json

MOST_TIME = 1e18
"""The largest time of a row, in any unit: its ns are still a float, which those of JSON's integers need not be."""

_decode = msgspec.json.Decoder().decode
_UNREADABLE = (OSError, EOFError, zlib.error, csv.Error, ValueError, NotImplementedError)  # pyarrow's errors are some of these
_AT_ONCE = 1024
"""Rows of a table that are Python objects together."""
_BLOCK_BYTES = 1 << 18
_COLUMNAR = (".parquet", ".arrow", ".feather", ".ipc")
_DELIMITERS = ",;\t"


def rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Line numbers, from 1, and objects; blank lines are skipped.  A name in ``.gz`` or ``.zst`` is of a compressed file.

    A name that :func:`tables` knows is of a table: each row is an object of its columns.  Empty cells and nulls are left out;
    values of CSV are texts.

    Raises:
        BadDataset: The file can't be read, or a line isn't a JSON object; the message gives path and line.  Or the package for
            ``.zst`` is missing; the message says how to install it.
    """
    if is_table(path):
        empty = "" if is_csv(path) else None
        for number, row in tables(path):
            yield number, {name: _without_nulls(value) for name, value in row.items() if value is not None and value != empty}
        return
    for number, line in lines(path):
        yield number, row_of(path, number, line)


def is_table(path: Path) -> bool:
    """Whether :func:`tables` knows the name."""
    return path.suffix in _COLUMNAR or is_csv(path)


def is_csv(path: Path) -> bool:
    """Whether the name is of CSV, compressed or not."""
    return (path.with_suffix("").suffix if path.suffix in (".gz", ".zst") else path.suffix) == ".csv"


def _without_nulls(value: Any) -> Any:
    """All rows of a column have the same fields: a null is a field that the row doesn't have."""
    if isinstance(value, dict):
        return {name: _without_nulls(each) for name, each in value.items() if each is not None}
    return [_without_nulls(each) for each in value] if isinstance(value, list) else value


def lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Line numbers, from 1, and lines as they stand in the file; blank lines are skipped.  Compressed files as :func:`rows`.

    Raises:
        BadDataset: The file can't be read.
    """
    number = 0
    try:
        with opened(path) as file:
            for number, line in enumerate(bounded_lines(path, file), 1):
                if number == 1:
                    line = line.removeprefix(codecs.BOM_UTF8)  # noqa: PLW2901  # some editors write it
                if line.strip():
                    yield number, line
    except (OSError, EOFError, zlib.error) as error:
        raise _unreadable(path, "line", number, error) from error


def blocks(path: Path) -> Iterator[memoryview]:
    """The bytes of a file in pieces of whole lines, without a byte order mark; lines may be blank.

    Compressed files as :func:`rows`.  A piece has about a quarter of a megabyte, or is one longer line.  Of a file that is not
    compressed nothing is copied.

    Raises:
        BadDataset: The file can't be read.
    """
    number = 0
    try:
        with opened(path) as file:
            if path.suffix in (".gz", ".zst"):
                for piece in _pieces(path, file):
                    yield memoryview(piece)
                    number += piece.count(b"\n")
            elif path.stat().st_size:
                yield from _mapped(path, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    except (OSError, EOFError, zlib.error) as error:
        raise _unreadable(path, "line", number, error) from error


def _mapped(path: Path, whole: mmap.mmap) -> Iterator[memoryview]:
    view, start, most = memoryview(whole), len(codecs.BOM_UTF8) if whole[:3] == codecs.BOM_UTF8 else 0, most_line_bytes()
    while start < len(whole):
        end = (whole.rfind(b"\n", start, start + _BLOCK_BYTES) + 1) or (whole.find(b"\n", start, start + most) + 1)
        if not end and len(whole) - start > most:
            raise too_long(path, _lines_before(whole, start) + 1, most)
        end = end or len(whole)
        yield view[start:end]
        start = end


def _lines_before(whole: mmap.mmap, end: int) -> int:
    return sum(whole[start : min(end, start + _BLOCK_BYTES)].count(b"\n") for start in range(0, end, _BLOCK_BYTES))


def _pieces(path: Path, file: BinaryIO) -> Iterator[bytes]:
    piece, rest = file.read(_BLOCK_BYTES).removeprefix(codecs.BOM_UTF8), list[bytes]()
    held, number, most = 0, 1, most_line_bytes()
    while piece:
        end = piece.rfind(b"\n") + 1
        if end:
            number += piece.count(b"\n")
            yield b"".join((*rest, piece[:end]))
            rest, held = [], 0
        rest.append(piece[end:])
        held += len(piece) - end
        if held > most:
            raise too_long(path, number, most)
        piece = file.read(_BLOCK_BYTES)
    if last := b"".join(rest):
        yield last


def tables(path: Path, columns: Sequence[str] = ()) -> Iterator[tuple[int, dict[str, Any]]]:
    """Numbers and rows of a table: a name in ``.csv`` (also compressed), ``.parquet``, ``.arrow``, ``.feather`` or ``.ipc``.

    Of CSV the number is the line on which the row begins (the header is line 1) and values are texts; a header without commas
    tells that semicolons or tabs are between them.  Of the others it is the row, from 1, and values have their types.  Memory
    holds a batch at a time.  columns: those to read; () reads all.

    Raises:
        BadDataset: The file can't be read, has no such column, or a row of CSV has too few or too many values; the message
            gives path and number.  Or pyarrow is missing, which columnar and ``.zst`` files need; the message names its extra.
    """
    if path.suffix in _COLUMNAR:
        found, unit = _batches(path, columns), "row"
    elif is_csv(path):
        found, unit = _csv(path, columns), "line"
    else:
        raise BadDataset(f"{path} is no table that is known by its name", f"known: .csv, {', '.join(_COLUMNAR)}")
    number = 0
    try:
        for number, row in found:
            yield number, row
    except _UNREADABLE as error:
        raise _unreadable(path, unit, number, error) from error


def stored_rows(path: Path) -> int | None:
    """How many rows a Parquet file says it has; None of other files.

    Raises:
        BadDataset: The file can't be read, or pyarrow is missing.
    """
    if path.suffix != ".parquet":
        return None
    _pyarrow(path)
    from pyarrow.parquet import read_metadata

    try:
        return cast("int", read_metadata(path).num_rows)
    except _UNREADABLE as error:
        raise _unreadable(path, "row", 0, error) from error


def _unreadable(path: Path, unit: str, number: int, error: Exception) -> BadDataset:
    where = f"{path} can't be read" + (f" after {unit} {number}" if number else "")
    hints = ["name a file in it, or leave the format out"] if isinstance(error, IsADirectoryError) else []
    why = getattr(error, "strerror", None) or error
    if isinstance(error, gzip.BadGzipFile) and not number:
        why, hints = "its name says gzip, and its content is none", [f"name it {path.stem}, without .gz"]
    elif isinstance(error, UnicodeDecodeError):
        why, hints = "it is not UTF-8", ["write it as UTF-8: iconv -f UTF-16 -t UTF-8, if it is UTF-16"]
    return BadDataset(f"{where}: {why}", *hints)


def opened(path: Path) -> BinaryIO:
    """The bytes of a file for reading, unpacked where its name ends in ``.gz`` or ``.zst``.

    Raises:
        OSError: The file can't be opened.  Reading may also raise EOFError and zlib.error, where it is cut or damaged.
        BadDataset: A ``.zst`` file needs pyarrow; the path is a pipe.  Reading raises it where an unpacked file grows too much.
    """
    package = _pyarrow(path) if path.suffix == ".zst" else None
    regular(path)
    if package is not None:
        return unpacked(path, package.input_stream(str(path), compression="zstd"))
    return unpacked(path, cast("BinaryIO", gzip.open(path, "rb"))) if path.suffix == ".gz" else path.open("rb")


def _pyarrow(path: Path) -> ModuleType:
    try:
        import pyarrow
    except ImportError as error:
        hint = "pip install 'aiperf-core[tables]'"
        raise BadDataset(f"{path} needs the package pyarrow, of the extra 'tables': {error}", hint) from error
    return cast("ModuleType", pyarrow)


def _wanted(path: Path, columns: Sequence[str], present: Sequence[str]) -> list[str]:
    if missing := [name for name in columns if name not in present]:
        raise BadDataset(f"{path} has no column {', '.join(missing)}", f"its columns: {', '.join(present)}")
    return list(columns or present)


def _csv(path: Path, columns: Sequence[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    with io.TextIOWrapper(opened(path), encoding="utf-8-sig", newline="") as file:
        first = next(_texts(path, file, 1), "")
        delimiter = delimiter_of(first)
        reader = csv.reader(chain([first], _texts(path, file)), strict=True, delimiter=delimiter)
        header = next(reader, [])
        if len(set(header)) < len(header):
            raise BadDataset(f"{path}:1: a column's name occurs twice", f"its columns: {', '.join(header)}")
        wanted, line = [(name, header.index(name)) for name in _wanted(path, columns, header)], reader.line_num + 1
        for values in reader:
            if values and len(values) != len(header):
                raise BadDataset(f"{path}:{line}: {len(values)} values for {len(header)} columns", "quote values with commas")
            if values:
                yield line, {name: values[place] for name, place in wanted}
            line = reader.line_num + 1


def _texts(path: Path, file: io.TextIOWrapper, first: int = 2) -> Iterator[str]:
    """The lines of *file*, whose next line has the number *first*.

    Raises:
        BadDataset: A line is too long.
    """
    most = most_line_bytes()
    while line := file.readline(most):
        if len(line) == most and not line.endswith("\n"):
            raise too_long(path, first, most)
        yield line
        first += 1


def delimiter_of(header: str) -> str:
    """What is between the values of CSV, by its first line: a comma, a semicolon or a tab."""
    return max(_DELIMITERS, key=lambda each: (each in header, -_DELIMITERS.index(each)))


def _batches(path: Path, columns: Sequence[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    number = 0
    for batch in _parquet(path, columns) if path.suffix == ".parquet" else _arrow(path, columns):
        for start in range(0, batch.num_rows, _AT_ONCE):
            for row in batch.slice(start, _AT_ONCE).to_pylist():
                number += 1
                yield number, row


def _parquet(path: Path, columns: Sequence[str]) -> Iterator[Any]:
    _pyarrow(path)
    from pyarrow.parquet import ParquetFile

    regular(path)
    with ParquetFile(path) as file:
        yield from file.iter_batches(_AT_ONCE, columns=_wanted(path, columns, file.schema_arrow.names))


def _arrow(path: Path, columns: Sequence[str]) -> Iterator[Any]:
    """The batches of a file, or of a stream in a file."""
    package = _pyarrow(path)
    regular(path)
    with package.memory_map(str(path)) as file:
        import pyarrow.ipc

        indexed = file.read(6) == b"ARROW1"
        file.seek(0)
        reader = (pyarrow.ipc.open_file if indexed else pyarrow.ipc.open_stream)(file)
        wanted = _wanted(path, columns, reader.schema.names)
        for batch in map(reader.get_batch, range(reader.num_record_batches)) if indexed else reader:
            yield batch.select(wanted)


def row_of(path: Path, number: int, line: bytes) -> dict[str, Any]:
    """The JSON object of a line of *path*.

    Raises:
        BadDataset: It is none; the message gives path and line.
    """
    try:
        row = _decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        why, hint = why_no_json(path, line, error)
        raise BadDataset(f"{path}:{number}: no JSON: {why}", hint) from error
    if not isinstance(row, dict):
        raise BadDataset(f"{path}:{number}: {type(row).__name__} is no JSON object", "write one JSON object per line")
    return row


def first_row(path: Path) -> dict[str, Any] | None:
    """The file's first row; None where the file has none or isn't of this kind."""
    try:
        return next((row for _, row in rows(path)), None)
    except BadDataset:
        return None


def head(path: Path, size: int) -> bytes:
    """At most the first *size* bytes, uncompressed and without a byte order mark.

    Raises:
        BadDataset: The file can't be read.
    """
    try:
        with opened(path) as file:
            return file.read(size).removeprefix(codecs.BOM_UTF8)
    except _UNREADABLE as error:
        raise _unreadable(path, "line", 0, error) from error


__all__ = [
    "blocks", "delimiter_of", "first_row", "head", "is_csv", "is_table", "lines", "opened", "row_of", "rows", "stored_rows",
    "tables",
]  # fmt: skip
