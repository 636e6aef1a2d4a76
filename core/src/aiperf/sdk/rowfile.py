"""Files with one JSON object per line, plain or gzipped, read lazily."""

from __future__ import annotations

import codecs
import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from aiperf.errors import BadDataset

_decode = msgspec.json.Decoder().decode


def rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Line numbers, from 1, and objects; blank lines are skipped.

    Raises:
        BadDataset: The file can't be read, or a line isn't a JSON object; the message gives path and line.
    """
    number = 0
    try:
        with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as file:
            for number, line in enumerate(file, 1):
                if number == 1:
                    line = line.removeprefix(codecs.BOM_UTF8)  # noqa: PLW2901  # some editors write it
                if line.strip():
                    yield number, _object(path, number, line)
    except (OSError, EOFError, zlib.error) as error:
        where = f"{path} can't be read" + (f" after line {number}" if number else "")
        raise BadDataset(f"{where}: {getattr(error, 'strerror', None) or error}") from error


def _object(path: Path, number: int, line: bytes) -> dict[str, Any]:
    try:
        row = _decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadDataset(f"{path}:{number}: no JSON: {error}", "write one JSON object per line") from error
    if not isinstance(row, dict):
        raise BadDataset(f"{path}:{number}: {type(row).__name__} is no JSON object", "write one JSON object per line")
    return row


def first_row(path: Path) -> dict[str, Any] | None:
    """The file's first row; None where the file has none or isn't of this kind."""
    try:
        return next((row for _, row in rows(path)), None)
    except BadDataset:
        return None


__all__ = ["first_row", "rows"]
