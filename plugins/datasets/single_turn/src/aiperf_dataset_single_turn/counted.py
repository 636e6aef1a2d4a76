"""Files of rows whose conversations are counted by a quick scan, and read later."""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice, tee
from operator import attrgetter
from pathlib import Path
from typing import Any

import msgspec
from aiperf.sdk.dataset import Promise
from aiperf_rows.row_files import is_csv, is_table, row_of, stored_rows, tables

from aiperf_dataset_single_turn.lone import LoneRows, lone_rows
from aiperf_dataset_single_turn.row import Rows
from aiperf_dataset_single_turn.scan import csv_rows, numbered, scanned
from aiperf_dataset_single_turn.sessions import Row, typed

_SESSION, _TIME = "session_id", "timestamp"
_AT_ONCE = 1 << 16
"""Places of rows that are kept together."""
_SCALARS = (str, int, float, type(None))


class _Named(msgspec.Struct, gc=False):
    session_id: str | int | None = None


class _Timed(msgspec.Struct, gc=False):
    timestamp: float | None = None


_names = msgspec.json.Decoder(_Named)
_name = attrgetter("session_id")
_timestamps = msgspec.json.Decoder(_Timed)


class CountedRows:
    """The conversations of the rows of *path*: rows with the same session id, and each row without one.

    stored: finds rows by their numbers; None where they can be read in their order alone.  rows: how many there are.
    named: whether rows may have session ids.  place, sizes: by row its conversation, and by conversation its number of rows;
    None where each row is one.  times: of the rows in ms, NaN where one has none; None reads them where they are asked for.
    """

    def __init__(
        self, path: Path, rows: int, stored: LoneRows | None, *, named: bool, place: array[int] | None = None,
        sizes: array[int] | None = None, times: array[float] | None = None,
    ) -> None:  # fmt: skip
        self._path, self._stored, self._named, self._place, self._sizes = path, stored, named, place, sizes
        self.count = rows if sizes is None else len(sizes)
        self._reader, self._times = Rows(path), array("d") if times is None else times
        self._order: tuple[array[int], array[int]] | None = None
        self._scaled: Callable[[float], float] | None = None

    def promise(
        self, *, times: bool, any_order: bool = True, scaled: Callable[[float], float] | None = None
    ) -> Promise:
        """What is known of the conversations, if each of their rows is a turn.

        times: with the rows' ``timestamp``, all of which the first call for one reads.  any_order: whether the data set can
        give them so; else they have the order of the file.  scaled: gives the time of a recorded one, both in ms; None for the
        same.
        """
        self._scaled = scaled
        any_order = any_order and self._stored is not None
        if self._sizes is None:
            return Promise(self.count, timestamp_ms=self._at_ms if times else None, any_order=any_order)
        turn_times = self._turn_at_ms if times else None
        return Promise(self.count, self._sizes.__getitem__, any_order=any_order, turn_timestamp_ms=turn_times)

    def by_row(self) -> Iterable[int]:
        """The conversation of each row."""
        return range(self.count) if self._place is None else self._place

    def conversations(
        self, numbers: Iterable[int] | None = None, note: Callable[[dict[str, Any], int], None] | None = None,
        read: Callable[[], Iterator[Row]] | None = None,
    ) -> Iterator[tuple[int, str | None, list[Row]]]:  # fmt: skip
        """Numbers, session ids (None: it has none), and rows in the order of the file.

        numbers: of those that are given, in this order, each at most once; None are all in their own.  note: gets every row and
        its line number before its conversation comes, in the order of the file where all are given.  read: gives its rows, as
        many with the same session ids, where all are given; None for them as they are.

        Raises:
            BadDataset: The file can't be read, or a row is no object; the message gives path and line.
        """
        if numbers is None:
            rows = typed(self._path) if read is None else read()
            found = in_order(rows if note is None else noted(rows, note), self._place, self._sizes)
        else:
            found = self._some(numbers)
            if note is not None:
                found = ((number, list(noted(session, note))) for number, session in found)
        for number, session in found:
            line, row = session[0]
            identity = self._reader.session(row, line)
            if identity is not None and not self._named:
                raise self._reader.wrong(line, 'the key session_id is written with escapes; write "session_id"')
            yield number, identity, session

    def _some(self, numbers: Iterable[int]) -> Iterator[tuple[int, list[Row]]]:
        assert self._stored is not None  # it promised any order
        if self._sizes is None:
            for number, line, text in self._stored.lines(numbers):
                yield number, [(line, row_of(self._path, line, text))]
            return
        (rows, ends), sizes = self._rows_by_conversation(), self._sizes
        numbers, asked = tee(numbers)
        places = (rows[ends[number] - sizes[number] : ends[number]].tolist() for number in asked)
        found = self._stored.lines(chain.from_iterable(places))
        for number in numbers:
            lines_of = (next(found) for _ in range(sizes[number]))
            yield number, [(line, row_of(self._path, line, text)) for _, line, text in lines_of]

    def _rows_by_conversation(self) -> tuple[array[int], array[int]]:
        """Numbers of the rows, conversation by conversation, and by conversation where its rows end."""
        import numpy as np  # 0.1 s, and files in their order need none

        if self._order is None:
            place, sizes = (np.frombuffer(each or array("q"), np.int64) for each in (self._place, self._sizes))
            rows, ends = np.argsort(place, kind="stable"), np.cumsum(sizes)
            self._order = array("q", rows.tobytes()), array("q", ends.tobytes())  # numpy's numbers are slow one by one
        return self._order

    def _at_ms(self, number: int) -> float | None:
        """When the row was recorded.

        Raises:
            BadDataset: A row is no object, or its time isn't one; the message gives path and line.
        """
        if not self._times:
            self._times.extend(_times(self._path))
        at_ms = self._times[number]
        return None if math.isnan(at_ms) else at_ms if self._scaled is None else self._scaled(at_ms)

    def _turn_at_ms(self, number: int, turn: int) -> float | None:
        rows, ends = self._rows_by_conversation()
        assert self._sizes is not None  # it promised them by turn
        return self._at_ms(rows[ends[number] - self._sizes[number] + turn])


def noted(rows: Iterable[Row], note: Callable[[dict[str, Any], int], None]) -> Iterator[Row]:
    """The rows, each behind a call of *note* with it and its line number."""
    for line, row in rows:
        note(row, line)
        yield line, row


def in_order(rows: Iterable[Row], place: array[int] | None, sizes: array[int] | None) -> Iterator[tuple[int, list[Row]]]:
    """Conversations by their numbers, each when its rows are there: memory holds those between its first and its last one.

    place, sizes: by row its conversation, numbered by their first rows, and by conversation its number of rows; None where each
    row is one.
    """
    if place is None or sizes is None:
        yield from ((number, [row]) for number, row in enumerate(rows))
        return
    waiting: dict[int, list[Row]] = {}
    following = 0
    for number, row in zip(place, rows, strict=False):
        waiting.setdefault(number, []).append(row)
        while following < len(sizes) and len(waiting.get(following, ())) == sizes[following]:
            yield following, waiting.pop(following)
            following += 1


def counted_rows(path: Path) -> CountedRows | None:
    """The conversations of a file: one scan, which finds the session of each row; None of a directory.

    Raises:
        BadDataset: The file can't be read, or a row has no session id that is one; the message gives path and line.
    """
    if not path.is_file():
        return None
    if is_table(path):
        return _counted_table(path)
    lone = lone_rows(path)
    if lone is not None:
        return CountedRows(path, lone.count, lone if lone.any_order else None, named=False)
    stored = LoneRows(path, 0)
    return _counted(path, _names_of_lines(path), stored if stored.any_order else None)


def counted_made(path: Path, rows: Iterable[Row]) -> CountedRows:
    """The conversations of *rows* that are made from those of the file; they are read once, and have one order.

    Raises:
        BadDataset: Of *rows*; or a row has no session id or time that is one: path and line.
    """
    reader, times, names = Rows(path), array("d"), list[str | None]()
    for line, row in rows:
        at_ms = reader.number(row, _TIME, line)
        times.append(math.nan if at_ms is None else at_ms)
        names.append(reader.session(row, line))
    return _counted(path, [names], None, times)


def places(names: Iterable[str | int | None]) -> tuple[array[int], array[int]]:
    """By row its conversation, and by conversation its number of rows.  names: of the rows' sessions, None for none."""
    remaining = iter(names)
    return _places(iter(lambda: list(islice(remaining, _AT_ONCE)), []))


def _places(blocks: Iterable[Sequence[str | int | None]]) -> tuple[array[int], array[int]]:
    """The places, see :func:`places`, of names in blocks."""
    known: dict[str | int, int] = {}
    place, lone = array("q"), 0
    for names in blocks:
        if None not in names:
            place.extend([known.setdefault(name, len(known) + lone) for name in names])  # type: ignore[arg-type]
            continue
        for name in names:
            new = len(known) + lone
            place.append(new if name is None else known.setdefault(name, new))
            lone += name is None
    return place, _sizes(place, len(known) + lone)


def _sizes(place: array[int], count: int) -> array[int]:
    """How often each number below *count* stands in *place*."""
    if len(place) < _AT_ONCE:
        sizes = array("q", bytes(place.itemsize * count))
        for number in place:
            sizes[number] += 1
        return sizes
    import numpy as np  # 0.1 s, and small files need none

    return array("q", np.bincount(np.frombuffer(place, np.int64), minlength=count).astype(np.int64).tobytes())


def _counted(
    path: Path, names: Iterable[Sequence[str | int | None]], stored: LoneRows | None, times: array[float] | None = None
) -> CountedRows:
    place, sizes = _places(names)
    if len(sizes) == len(place):
        return CountedRows(path, len(place), stored, named=True, times=times)
    return CountedRows(path, len(place), stored, named=True, place=place, sizes=sizes, times=times)


def _names_of_lines(path: Path) -> Iterator[list[str | int | None]]:
    reader = Rows(path)
    for first, block, rows in scanned(path, _names):
        if rows is None:
            yield [reader.session(row_of(path, number, line), number) for number, line in numbered(first, block)]
            continue
        names = list(map(_name, rows))
        yield [str(name) if isinstance(name, int) else name for name in names] if int in set(map(type, names)) else names


def _counted_table(path: Path) -> CountedRows:
    _, first = next(tables(path), (0, None))
    if first is None:
        return CountedRows(path, 0, None, named=True)
    if _SESSION in first:
        return _counted(path, [list(_names_of_table(path))], None)
    rows = csv_rows(path) if is_csv(path) else stored_rows(path)
    if rows is None:  # any column will do: one that is not nested
        column = next((name for name, value in first.items() if isinstance(value, _SCALARS)), next(iter(first)))
        rows = sum(1 for _ in tables(path, (column,)))
    return CountedRows(path, rows, None, named=True)


def _names_of_table(path: Path) -> Iterator[str | None]:
    reader, empty = Rows(path), "" if is_csv(path) else None
    for number, row in tables(path, (_SESSION,)):
        name = row[_SESSION]
        yield None if name == empty else name if isinstance(name, str) else reader.session(row, number)


def _times(path: Path) -> Iterator[float]:
    """The rows' times in ms, NaN where a row has none."""
    reader = Rows(path)
    if is_table(path):
        for number, row in typed(path):
            at_ms = reader.number(row, _TIME, number)
            yield math.nan if at_ms is None else at_ms
        return
    for first, block, rows in scanned(path, _timestamps):
        times = [row.timestamp for row in rows or ()]
        known = [at_ms for at_ms in times if at_ms is not None]
        if rows is None or (known and not 0 <= min(known) <= max(known) < math.inf):
            times = [reader.number(row_of(path, number, line), _TIME, number) for number, line in numbered(first, block)]
        yield from (math.nan if at_ms is None else at_ms for at_ms in times)


__all__ = ["CountedRows", "counted_made", "counted_rows", "in_order", "noted", "places"]
