"""What is known of trees before they are made: ``dataset.ahead``, from which drivers plan while the data set grows.

An int64 per entry says where its record ends, and one before them how many there are; then come the records, as msgpack.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path

from msgspec import Struct
from msgspec.msgpack import Decoder, Encoder

from aiperf.redaction import private
from aiperf.sdk.trees import Stream, TreeOutline

NAME = "dataset.ahead"
_KEPT = 1024
"""Records that are kept: drivers ask turn by turn."""
_WORD = 8
"""Bytes of a number."""


class AheadTree(Struct, frozen=True):
    """id: of the conversation.  By turn: delays_ns, the think time before it, 0 for none; recorded_ns, None where unknown."""

    id: str
    streams: tuple[Stream, ...]
    delays_ns: Sequence[int]
    recorded_ns: Sequence[tuple[int, int] | None]


_encode = Encoder().encode
_decode = Decoder(AheadTree).decode


class Ahead:
    """Reads the records by entry.  The file stays open: it is removed once the data set is whole.  count: of the records."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("rb")
        (self.count,) = array("q", self._file.read(_WORD))
        self.of = lru_cache(_KEPT)(self._read)

    def _read(self, entry: int) -> AheadTree:
        self._file.seek(_WORD * entry)
        start, end = array("q", self._file.read(2 * _WORD))
        start = start if entry else 0  # the first word is the number of records
        self._file.seek(_WORD * (self.count + 1) + start)
        return _decode(self._file.read(end - start))


def write_ahead(directory: Path, count: int, outline: Callable[[int], TreeOutline], ratio: float) -> None:
    """Write the records of *count* entries; delays are multiplied by *ratio*."""
    ends, records = array("q", [count]), list[bytes]()
    end = 0
    for entry in range(count):
        tree = outline(entry)
        records.append(_encode(AheadTree(
            tree.id, tree.streams, [0 if delay_ms is None else round(delay_ms * ratio * 1e6) for delay_ms in tree.delays_ms],
            [None if at is None else (round(at[0] * 1e6), round(at[1] * 1e6)) for at in tree.recorded_ms],
        )))  # fmt: skip
        end += len(records[-1])
        ends.append(end)
    with private(directory / NAME).open("wb") as file:
        file.write(ends.tobytes())
        file.writelines(records)


def ahead_in(directory: Path) -> Ahead | None:
    """The records of a directory; None where it has none."""
    try:
        return Ahead(directory / NAME)
    except FileNotFoundError:
        return None
