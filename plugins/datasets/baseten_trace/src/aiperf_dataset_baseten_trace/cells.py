"""Cells of the table: their rules, and how hashes and sessions are read."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from aiperf import BadDataset
from aiperf_dataset_single_turn.dataset import shown
from aiperf_rows.row_files import MOST_TIME

_DIGITS = re.compile(r"-?[0-9]{1,20}", re.ASCII)
SESSIONS = ("provided_session_id", "poor_man_session_id")
"""Columns with a session; the first that a row has counts."""


class Cells:
    """Reads cells of one file; *path* is for messages."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def wrong(self, number: int, why: str) -> BadDataset:
        return BadDataset(f"{self._path}: row {number}: {why}")

    def number(self, row: Mapping[str, Any], column: str, number: int) -> float:
        """A time in ms, >= 0."""
        value = row[column]
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MOST_TIME:
            raise self.wrong(number, f"{column} is {shown(value)}; it must be a number of milliseconds, 0 or more")
        return float(value)

    def tokens(self, row: Mapping[str, Any], column: str, number: int) -> int:
        """A number of tokens, >= 0."""
        value = row[column]
        if isinstance(value, bool) or not isinstance(value, int | float) or value < 0 or value != value // 1:
            raise self.wrong(number, f"{column} is {shown(value)}; it must be a whole number of tokens")
        return int(value)

    def hashes(self, row: Mapping[str, Any], column: str, number: int) -> list[int]:
        """The hashes of a list, or of its JSON, as numbers."""
        value = row[column]
        try:
            found = msgspec.json.decode(value) if isinstance(value, str) else value
        except msgspec.DecodeError:
            found = None
        if not isinstance(found, list) or not all(
            isinstance(each, int | str) and not isinstance(each, bool) for each in found
        ):
            raise self.wrong(number, f"{column} is {shown(value)}; it must be a list of hashes, or its JSON")
        return [identity(each) for each in found]


def session_of(row: Mapping[str, Any]) -> str | None:
    return next((str(row[key]) for key in SESSIONS if row.get(key) not in (None, "")), None)


def identity(value: int | str) -> int:
    """A hash as a number: that of a text of digits; of any other text 53 bits of its digest, which are exact in every JSON."""
    if isinstance(value, int):
        return value
    if _DIGITS.fullmatch(value):
        return int(value)
    return int.from_bytes(hashlib.blake2b(value.encode(errors="surrogatepass"), digest_size=8).digest(), "big") >> 11
