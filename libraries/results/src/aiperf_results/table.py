"""Files with a line per request, as columns: the lines themselves would take ten times the memory."""

from __future__ import annotations

import gzip
import math
import zlib
from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from sys import intern
from typing import TYPE_CHECKING, Any, TypeGuard

import msgspec
from aiperf.sdk.errors import AiperfError
from msgspec import Struct

if TYPE_CHECKING:
    import numpy as np
    from aiperf.sdk.columns import Column, Floats
    from numpy.typing import NDArray


class Table:
    """Columns of equal length, by name.

    A column of numbers is float64, NaN where a row has none; a column of lists is :class:`aiperf.Ragged`, without instants.
    A name that no row has is a column of NaN.  Texts come from :meth:`texts`.
    """

    def __init__(self) -> None:
        self._count = 0
        self._numbers: defaultdict[str, array[float]] = defaultdict(lambda: array("d"))
        self._lists: dict[str, tuple[array[float], array[int]]] = {}
        self._texts: dict[str, list[str | None]] = {}

    @classmethod
    def of(cls, numbers: dict[str, Floats], texts: Mapping[str, Sequence[str | None]], count: int) -> Table:
        """The table of *count* rows with these columns; it takes *numbers* out of the dict, so that none is there twice."""
        made = cls()
        made._count = count
        for name in [*numbers]:
            made._numbers[name].frombytes(numbers.pop(name).data.cast("B") if count else b"")
        made._texts = {name: list(column) for name, column in texts.items()}
        return made

    @classmethod
    def joined(cls, tables: Sequence[Table]) -> Table:
        """The rows of all tables, without lists."""
        import numpy as np

        count = sum(map(len, tables))
        names = dict.fromkeys(name for table in tables for name in table._numbers)
        words = dict.fromkeys(name for table in tables for name in table._texts)
        numbers = {name: np.concatenate([table.numbers(name) for table in tables]) for name in names}
        texts = {name: [text for table in tables for text in table.texts(name)] for name in words}
        return cls.of(numbers, texts, count)

    def __len__(self) -> int:
        return self._count

    def take(self, rows: NDArray[np.intp]) -> Table:
        """The numbers and texts of these rows, without lists."""
        numbers = {name: self.numbers(name)[rows] for name in self._numbers}
        texts = {name: [column[row] for row in rows.tolist()] for name in self._texts for column in (self.texts(name),)}
        return Table.of(numbers, texts, len(rows))

    def names(self) -> list[str]:
        """Names of the columns of numbers and lists, sorted."""
        return sorted(self._numbers.keys() | self._lists.keys())

    def numbers(self, name: str) -> Floats:
        """A column of numbers."""
        import numpy as np

        return np.array(self._padded(name), dtype=np.float64)

    def __getitem__(self, name: str) -> Column:
        if name in self._lists:
            import numpy as np
            from aiperf.sdk.columns import Ragged

            values, ends = self._lists[name]
            ends.extend([len(values)] * (self._count - len(ends)))
            flat = np.array(values, dtype=np.float64)
            return Ragged(flat, np.array([0, *ends], dtype=np.int64), np.full(len(flat), math.nan))
        return self.numbers(name)

    def texts(self, name: str) -> list[str | None]:
        """A column of texts (``outcome``, ``conversation_id``, ``error_type``); None where a row has none."""
        column = self._texts.get(name, [])
        return column + [None] * (self._count - len(column))

    def add(self, cells: Iterable[tuple[str, object]]) -> None:
        """Append a row; cells that are neither a number, a text nor a list of numbers are left out.

        Raises:
            AiperfError: A whole number is larger than those of floats.
        """
        name = ""
        try:
            for name, value in cells:
                if _is_number(value):
                    self._padded(name).append(value)
                elif isinstance(value, str):
                    column = self._texts.setdefault(name, [])
                    column += [None] * (self._count - len(column))
                    column.append(intern(value) if len(value) < _SHORT else value)
                elif isinstance(value, list) and all(map(_is_number, value)):
                    values, ends = self._lists.setdefault(name, (array("d"), array("q")))
                    ends.extend([len(values)] * (self._count - len(ends)))
                    values.extend(value)
                    ends.append(len(values))
        except OverflowError as error:
            raise AiperfError(f"{name} has a value of more than 1.8e308, which no number here can be") from error
        self._count += 1

    def _padded(self, name: str) -> array[float]:
        """The column, NaN where the rows so far had no such number."""
        column = self._numbers[name]
        if len(column) < self._count:
            column.extend([math.nan] * (self._count - len(column)))
        return column


_SHORT = 64
"""Characters of a text from which it is kept once for each row: longer ones seldom come again."""


class RecordLine(Struct):
    """A line of the per-request file, as far as results need it."""

    metadata: dict[str, Any] = {}
    metrics: dict[str, Any] = {}
    error: Any = None


def requests(path: Path, *, failed: bool, lists: bool) -> Table:
    """The profiling requests of a per-request file; *failed* adds failed ones and texts, *lists* metrics that are lists.

    Requests that ended a conversation for want of context (``context_overflow_skip``) are neither, and left out.

    Raises:
        AiperfError: The file cannot be read; names the line.
    """
    table = Table()
    for line in lines(path, RecordLine):
        about, error = line.metadata, line.error
        good = not error and not about.get("was_cancelled")
        skipped = about.get("context_overflow_skip") or about.get("benchmark_phase", "profiling") != "profiling"
        if skipped or not (good or failed):
            continue
        cells = {name: value for name, value in about.items() if failed or not isinstance(value, str)}
        cells |= {name: metric.get("value") for name, metric in line.metrics.items() if isinstance(metric, dict)}
        if failed and isinstance(error, dict):
            cells |= {f"error_{name}": error.get(name) for name in ("type", "message", "code")}
        table.add((name, value) for name, value in cells.items() if lists or not isinstance(value, list))
    return table


def arrivals(path: Path) -> Table:
    """Every planned arrival of the ledger: its instants in ns since 1970, and its ``outcome`` as text.

    Raises:
        AiperfError: The file cannot be read; names the line.
    """
    table = Table()
    for line in lines(path, dict[str, Any]):
        table.add(line.items())
    return table


def lines(path: Path, shape: Any) -> Iterator[Any]:
    """Each line of *path*, decoded as *shape*.

    Raises:
        AiperfError: The file cannot be read; names the line.
    """
    decode = msgspec.json.Decoder(shape).decode
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            for number, line in enumerate(file, 1):
                try:
                    yield decode(line)
                except (msgspec.DecodeError, UnicodeDecodeError) as error:
                    raise AiperfError(f"{path}:{number} can't be read: {error}", remedy(path)) from error
    except (OSError, EOFError, zlib.error) as error:
        raise AiperfError(f"{path} can't be read: {getattr(error, 'strerror', None) or error}", remedy(path)) from error


def remedy(path: Path) -> str:
    """What to do about a file of a run that can't be read."""
    if (path.parent / "journal" / "run.json").exists():
        return f"aiperf report {path.parent} makes it anew"
    return "copy it again from where the run was; there is no journal to make it anew from"


def _is_number(value: object) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)
