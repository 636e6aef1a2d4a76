"""Rows of a set's files, one after the other: a JSON array, JSON lines, a table."""

from __future__ import annotations

import codecs
import gzip
import json
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, cast

from aiperf import BadDataset
from aiperf_rows.row_files import rows, tables

Row = dict[str, Any]
_PIECE = 1 << 20
"""Bytes that are read together, at least."""
_LARGEST_ROW = 256 << 20
"""Characters of a row, from which its JSON is held to be damaged."""
_BATCH_BYTES, _BATCH_ROWS = 32 << 20, 1024
_decode = json.JSONDecoder().raw_decode


def records(path: Path, columns: Sequence[str]) -> Iterator[tuple[str, Row]]:
    """Place and row of each record.  Memory holds few of them: a JSON array is read piece by piece, Parquet in small batches.

    columns: those that are read; of JSON the first row has them, too.

    Raises:
        BadDataset: The file can't be read, or has no such column; the message has the path and names the columns.
    """
    base = path.name.removesuffix(".gz").removesuffix(".zst")
    if base.endswith(".parquet"):
        yield from _parquet(path, columns)
    elif base.endswith((".arrow", ".csv", ".feather", ".ipc")):
        for number, row in tables(path, columns):
            yield f"{path}: row {number}", row
    else:
        array = path.suffix in (".json", ".gz") and _is_array(path)
        found = _array(path) if array else ((f"{path}:{number}", row) for number, row in rows(path))
        for index, (place, row) in enumerate(found):
            if index == 0 and (missing := [column for column in columns if column not in row]):
                raise BadDataset(f"{place} has no {_named(missing)}", f"its columns: {', '.join(row) or 'none'}")
            yield place, row


def _named(columns: Sequence[str]) -> str:
    return f"column{'s' if len(columns) > 1 else ''} {', '.join(columns)}"


def _opened(path: Path) -> BinaryIO:
    return cast("BinaryIO", gzip.open(path, "rb")) if path.suffix == ".gz" else path.open("rb")


def _is_array(path: Path) -> bool:
    try:
        with _opened(path) as file:
            return file.read(1024).removeprefix(codecs.BOM_UTF8).lstrip()[:1] == b"["
    except (OSError, EOFError, zlib.error) as error:
        raise _unreadable(path, 0, error) from error


def _array(path: Path) -> Iterator[tuple[str, Row]]:
    """The objects of a JSON array that may be larger than memory."""
    number = 0
    try:
        with _opened(path) as file:
            for number, row in enumerate(_elements(file), 1):
                if not isinstance(row, dict):
                    raise BadDataset(f"{path}: row {number} is no JSON object, but {type(row).__name__}")
                yield f"{path}: row {number}", row
    except (OSError, EOFError, ValueError, RecursionError, zlib.error) as error:
        raise _unreadable(path, number, error) from error


class _Window:
    """The part of a file's text that is looked at."""

    def __init__(self, file: BinaryIO) -> None:
        self._reader = codecs.getreader("utf-8-sig")(file)
        self._text, self._at = "", 0

    def next(self) -> str:
        """The next character that isn't blank, "" at the end of the file."""
        while True:
            while self._at < len(self._text) and self._text[self._at] in " \t\r\n":
                self._at += 1
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._grown():
                return ""

    def skip(self) -> None:
        self._at += 1

    def value(self) -> Any:
        """The object that begins here.

        Raises:
            ValueError: There is none, or it isn't whole.
        """
        while True:
            try:
                value, self._at = _decode(self._text, self._at)
                return value
            except json.JSONDecodeError as error:
                if not self._grown():
                    raise ValueError(f"its JSON is cut off or damaged: {error.msg}") from error

    def _grown(self) -> bool:
        """Read more, at least as much as there is, so that a large object isn't tried too often; whether there was more."""
        self._text, self._at = self._text[self._at :], 0
        if len(self._text) > _LARGEST_ROW:
            raise ValueError(f"a row is larger than {_LARGEST_ROW >> 20} MB, or its JSON is damaged")
        piece = self._reader.read(max(_PIECE, len(self._text)))
        self._text += piece
        return bool(piece)


def _elements(file: BinaryIO) -> Iterator[Any]:
    """The elements of an array."""
    window = _Window(file)
    window.next()
    window.skip()  # the bracket, by which the file was known
    if window.next() == "]":
        return
    while True:
        window.next()
        yield window.value()
        between = window.next()
        if between == "]":
            return
        if between != ",":
            raise ValueError(f"{between!r} stands where a comma is expected" if between else "the array is cut off")
        window.skip()


def _parquet(path: Path, columns: Sequence[str]) -> Iterator[tuple[str, Row]]:
    """Rows of a Parquet file: row group by row group, in batches of some megabytes."""
    try:
        import pyarrow
        from pyarrow.parquet import ParquetFile
    except ImportError as error:
        hint = "pip install 'aiperf-core[tables]'"
        raise BadDataset(f"{path.name} is Parquet, which needs the package pyarrow: {error}", hint) from error
    number = 0
    try:
        with ParquetFile(path, memory_map=True) as file:
            present = file.schema_arrow.names
            if missing := [column for column in columns if column not in present]:
                raise BadDataset(f"{path} has no {_named(missing)}", f"its columns: {', '.join(present)}")
            for group in range(file.num_row_groups):
                size = _batch(file.metadata.row_group(group), columns)
                for batch in file.iter_batches(size, row_groups=[group], columns=list(columns)):
                    for row in batch.to_pylist():
                        number += 1
                        yield f"{path}: row {number}", row
    except (OSError, ValueError, NotImplementedError, pyarrow.ArrowException) as error:
        raise _unreadable(path, number, error) from error


def _batch(group: Any, columns: Sequence[str]) -> int:
    """How many rows of the group, with these columns, some megabytes are."""
    parts = (group.column(index) for index in range(group.num_columns))
    size = sum(part.total_uncompressed_size for part in parts if part.path_in_schema.split(".")[0] in columns)
    return max(1, min(_BATCH_ROWS, int(_BATCH_BYTES * group.num_rows / max(1, size))))


def _unreadable(path: Path, number: int, error: Exception) -> BadDataset:
    after = f" after row {number}" if number else ""
    return BadDataset(f"{path} can't be read{after}: {getattr(error, 'strerror', None) or error}")
