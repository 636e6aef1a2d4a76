"""Reads the encoded data set, of the form in :mod:`aiperf.rundir.store_form`, with the standard library and msgspec alone."""

from __future__ import annotations

import errno
import math
import mmap
import os
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from aiperf.errors import BadJournal
from aiperf.redaction import without_secrets
from aiperf.rundir.ahead import AheadTree, ahead_in
from aiperf.rundir.media import StoredMedia, images_of
from aiperf.rundir.outline import Outline, decode_outline
from aiperf.rundir.shapes import StoredShape, with_path
from aiperf.rundir.store_form import (
    BLOCKS_BITS,
    ENTRIES_BITS,
    ENTRY,
    ID_BITS,
    IMAGES_BITS,
    NAMES,
    OLD_TURN,
    UNRECORDED,
    About,
    mask,
)
from aiperf.sdk.model import Conversation
from aiperf.sdk.trees import Stream

if TYPE_CHECKING:
    from aiperf.sdk.columns import Ints

_LONG_BYTES, _MOST_VIEWED_BYTES = 1 << 18, 1 << 26
"""A body from which on it is not copied; and what is viewed of such bodies before their pages are given back."""
_IN_ORDER = range(1 << 62)
"""The places of entries that are made in their order."""
_KEPT_SPANS = 1024
"""Trees whose spans are kept: readers ask for those of each request."""
_decode = msgspec.msgpack.Decoder(Conversation).decode
_decode_streams = msgspec.msgpack.Decoder(tuple[Stream, ...]).decode


class Expectation(Struct, frozen=True):
    """The fields of a turn that results are told apart by."""

    expected: str | None = None
    task: str | None = None
    repeat: int | None = None
    settings: dict[str, Any] = {}
    extra: dict[str, Any] = {}


class _Expectations(Struct, frozen=True):
    """A stored conversation, read for these fields alone."""

    turns: tuple[Expectation, ...]


_decode_expectations = msgspec.msgpack.Decoder(_Expectations).decode


class _Origin(Struct, frozen=True):
    source: dict[str, str | int] | None = None


class _Origins(Struct, frozen=True):
    turns: tuple[_Origin, ...]


_decode_origins = msgspec.msgpack.Decoder(_Origins).decode


class Store:
    """Reads the files of a ``StoreWriter``.  *path*: of ``--endpoint``, for a process that sends requests.

    looks: that process asks for each entry whether it is there while the data set grows: ``entries`` is 0 until it is whole.

    Raises:
        BadJournal: The directory holds no data set.
    """

    # More than 20 attributes: each table is a map of its own, and a request reads it without a look-up between.
    # Larger than 250 lines: a body, its length and its view are found in the same tables.

    def __init__(self, directory: Path, path: str | None = None, *, looks: bool = False) -> None:
        self._directory, self._path, self._looks, self._revision = directory, path, looks, -1
        self._ready: memoryview | None = None
        self._places: range | memoryview = _IN_ORDER
        self._images: dict[tuple[int, int], int] = {}
        self._pool: StoredMedia | None = None
        self._ahead = ahead_in(directory)
        self._maps: list[object] = []
        self._made = 0
        self.shapes: list[StoredShape] = []
        self._viewed = 0
        self._spans = lru_cache(_KEPT_SPANS)(self._read_spans)
        self.on_shapes: Callable[[], None] = lambda: None
        """Called when *shapes* may have new ones."""
        self.entries = 0
        """Every entry below this number can be read; more after :meth:`grow`."""
        try:
            with suppress(FileNotFoundError), (directory / "dataset.ready").open("rb") as file:
                self._ready = memoryview(mmap.mmap(file.fileno(), 8, access=mmap.ACCESS_READ)).cast("q")
            if not self.grow():
                self._map()
        except (OSError, ValueError, msgspec.MsgspecError) as error:
            raise BadJournal(f"the data set of {os.fspath(directory)} can't be read: {error}") from error

    def grow(self) -> bool:
        """Look for new entries; whether there are any.  While the process has no open file left, there are none."""
        if self._ready is None:
            return False
        revision, made = divmod(self._ready[0], 1 << ENTRIES_BITS)
        if made == self._made and revision == self._revision:
            return False
        if revision != self._revision:
            try:
                self._map()
            except OSError as error:
                if error.errno in (errno.EMFILE, errno.ENFILE) and self._revision >= 0:
                    return False
                raise
        self._revision, grown = revision, made > self._made
        self._see(made)
        return grown

    def _see(self, made: int) -> None:
        """*made* entries were made by now."""
        self._made, places = made, self._places
        whole = made == len(places) if places is not _IN_ORDER else made == self._rows or not self._looks
        self.entries = made if whole else 0

    def has(self, entry: int) -> bool:
        """Whether the entry could be read at the last look."""
        return 0 <= self._places[entry] < self._made

    def place(self, entry: int) -> int:
        """How many entries were made before this one, which can be read."""
        return self._places[entry]

    def known(self, entry: int) -> bool:
        """Whether the streams and times of an entry are known: it can be read, or is a tree that was told ahead."""
        if self._ahead is not None:
            return 0 <= entry < self._ahead.count
        return 0 <= entry < (self._made if self._places is _IN_ORDER else len(self._places)) and self.has(entry)

    def readable(self) -> Iterator[int]:
        """The entries that can be read, in their order."""
        return filter(self.has, range(self._made if self._places is _IN_ORDER else len(self._places)))

    def _map(self) -> None:
        about = msgspec.json.decode((self._directory / "dataset.json").read_bytes(), type=About)
        *tables, bodies, conversations = (_mapped(self._directory / f"dataset.{name}") for name in NAMES)
        places = None
        with suppress(FileNotFoundError):
            places = memoryview(_mapped(self._directory / "dataset.places")).cast("q")
        if self._pool is None:
            with suppress(FileNotFoundError):
                self._pool = StoredMedia(self._directory)
        self._bodies, self._conversations = bodies, conversations
        # Unmapping would take milliseconds of a measuring loop; files double in size, so there are few maps.
        self._maps.append((tables, self._bodies, self._conversations))
        self._entries, self._turns, self._offsets, self._splices, self._recorded = (
            memoryview(table).cast("q") for table in tables
        )
        self.shapes += with_path(about.shapes[len(self.shapes) :], without_secrets(self._path or ""), self._path)
        self.max_turns, self._models, self._media, self.graded = about.max_turns, about.models, about.media, about.graded
        self._width, self.counts_add_up = about.turn_fields, about.counts_add_up
        self.repeats, self.settings, self.tasked, self.trees = about.repeats, about.settings, about.tasked, about.trees
        self.sourced = about.sourced
        self._rows = len(self._entries) // ENTRY
        self._places = self._places if places is None else places
        if self._ready is None:
            self._see(self._rows)
        self.on_shapes()

    def _to_come(self, entry: int) -> AheadTree | None:
        """What is known of an entry that is still to come; None of others."""
        if self._ahead is None or entry < self.entries:
            return None
        self.grow()
        return None if self.has(entry) else self._ahead.of(entry)

    def turns(self, entry: int) -> int:
        """Number of turns of the entry's conversation; 0 where that is still to come and not known."""
        if entry >= self.entries:
            self.grow()
            if not self.has(entry):
                return 0 if self._ahead is None else len(self._ahead.of(entry).delays_ns)
        row = self._places[entry]
        after = self._entries[(row + 1) * ENTRY] if row + 1 < self._rows else len(self._turns) // self._width
        return after - self._entries[row * ENTRY]

    def body(self, entry: int, turn: int, model: int = 0) -> bytes:
        """The encoded body of the turn by itself, without earlier turns."""
        if entry >= self.entries:
            self.grow()
        number = self._entries[self._places[entry] * ENTRY] + turn
        at = number * self._models + model
        start = self._offsets[at - 1] if at else 0
        body = self._bodies[start : self._offsets[at]]
        if self._pool is None:
            return body
        row = number * self._width
        first, last = self._turns[row - 1] if row else 0, self._turns[row + self._width - 1]
        return self._pool.joined(body, start, self._splices[first:last]) if first < last else body

    def view(self, entry: int, turn: int, model: int = 0) -> bytes | memoryview:
        """The encoded body, a long one as a view of the file: neither copied nor kept in this process's memory."""
        if entry >= self.entries:
            self.grow()
        number = self._entries[self._places[entry] * ENTRY] + turn
        at = number * self._models + model
        start, end = self._offsets[at - 1] if at else 0, self._offsets[at]
        bodies, row = self._bodies, number * self._width
        spliced = self._pool is not None and (self._turns[row - 1] if row else 0) < self._turns[row + self._width - 1]
        if spliced or end - start < _LONG_BYTES or isinstance(bodies, bytes):
            return self.body(entry, turn, model)
        self._viewed += end - start
        if self._viewed > _MOST_VIEWED_BYTES and hasattr(mmap, "MADV_DONTNEED"):
            # Pages that were read count as this process's until somebody needs memory: they come back when they are read again.
            self._viewed = 0
            bodies.madvise(mmap.MADV_DONTNEED)
        return memoryview(bodies)[start:end]

    def body_bytes(self, entry: int, turn: int) -> int:
        """The length of :meth:`body` for the first model, of an entry that can be read."""
        number = self._entries[self._places[entry] * ENTRY] + turn
        at = number * self._models
        start, end = self._offsets[at - 1] if at else 0, self._offsets[at]
        if self._pool is None:
            return end - start
        row = number * self._width
        first, last = self._turns[row - 1] if row else 0, self._turns[row + self._width - 1]
        cuts = self._splices[first:last]
        return end - start + sum(cuts[i + 2] for i in range(0, len(cuts), 3) if start < cuts[i] <= end)

    @property
    def complete(self) -> bool:
        """Whether the data set was whole, or its making had ended, when this store was opened."""
        return self._ready is None

    def shape(self, entry: int, turn: int, model: int = 0) -> int:
        """Index into *shapes*."""
        return self._turn(entry, turn, 0) * self._models + model

    def input_tokens(self, entry: int, turn: int) -> int:
        """Length of the request's texts in the run's tokenizer, -1 where unknown."""
        return self._turn(entry, turn, 1)

    def max_tokens(self, entry: int, turn: int) -> int:
        """The requested output length, -1 where the data set requests none."""
        return self._turn(entry, turn, 2)

    def numbers(self, entries: Ints, turns: Ints) -> tuple[Ints, Ints, Ints, Ints, Ints, Ints]:
        """Input tokens, max tokens, images, ns of audio, and the prefix's blocks and hits of many turns."""
        import numpy as np  # workers never come here

        if int(entries.max()) >= self.entries:
            self.grow()
        places = entries if self._places is _IN_ORDER else np.asarray(self._places)[entries]
        rows, table = (np.asarray(self._entries)[places * ENTRY] + turns) * self._width, np.asarray(self._turns)
        nothing = np.zeros(len(entries), dtype=np.int64)
        if self._width > OLD_TURN:
            images = table[rows + 5]
            blocks, hits = images >> IMAGES_BITS & mask(BLOCKS_BITS), images >> IMAGES_BITS + BLOCKS_BITS
            return table[rows + 1], table[rows + 2], images & mask(IMAGES_BITS), table[rows + 6], blocks, hits
        each = zip(entries.tolist(), turns.tolist(), strict=True) if self._media else ()
        images = np.array([self.images(*one) for one in each]) if self._media else nothing
        return table[rows + 1], table[rows + 2], images, np.full(len(entries), -1), nothing, nothing

    def delay_ns(self, entry: int, turn: int) -> int:
        """Think time before the turn, 0 where there is none."""
        if (tree := self._to_come(entry)) is not None:
            return tree.delays_ns[turn]
        return self._turn(entry, turn, 3)

    def timestamp_ns(self, entry: int, turn: int) -> int:
        """The send time in a recorded trace, -1 outside traces."""
        return self._turn(entry, turn, 4)

    def recorded_ns(self, entry: int, turn: int) -> tuple[int, int] | None:
        """Start and end of the turn's request on the clock of its trace; None where they aren't recorded."""
        if (tree := self._to_come(entry)) is not None:
            return tree.recorded_ns[turn]
        at = 2 * (self._entries[self._row(entry) * ENTRY] + turn)
        if at >= len(self._recorded) or self._recorded[at] == UNRECORDED:
            return None
        return self._recorded[at], self._recorded[at + 1]

    def id(self, entry: int) -> str:
        """The conversation's id."""
        if (tree := self._to_come(entry)) is not None:
            return tree.id
        row = self._row(entry)
        _, at, lengths = self._entries[row * ENTRY : row * ENTRY + ENTRY]
        return self._conversations[at : at + (lengths & mask(ID_BITS))].decode()

    def ids(self, entries: Ints) -> list[str]:
        """The conversation's id of each entry."""
        import numpy as np  # workers never come here

        several, places = np.unique(entries, return_inverse=True)
        found = list(map(self.id, several.tolist()))
        return list(map(found.__getitem__, places.tolist()))

    def streams(self, entry: int) -> tuple[Stream, ...]:
        """The streams of the entry's tree; () for a conversation that starts no others."""
        if not self.trees:
            return ()
        if (tree := self._to_come(entry)) is not None:
            return tree.streams
        row = self._row(entry)
        _, at, lengths = self._entries[row * ENTRY : row * ENTRY + ENTRY]
        if not lengths >> ID_BITS:
            return ()
        at += lengths & mask(ID_BITS)
        return _decode_streams(memoryview(self._conversations)[at : at + (lengths >> ID_BITS)])

    def span(self, entry: int, turn: int) -> range:
        """The turns of the stream that has this one; all turns of a conversation that starts no others."""
        if not self.trees or not (spans := self._spans(entry)):
            return range(self.turns(entry))
        firsts, ends = spans
        number = bisect_right(firsts, turn) - 1
        return range(firsts[number], ends[number])

    def _read_spans(self, entry: int) -> tuple[list[int], list[int]] | None:
        """The first turn of each stream of a tree that has any, and the place behind its last; None without streams."""
        streams = [stream for stream in self.streams(entry) if stream.turns]
        return ([stream.first for stream in streams], [stream.end for stream in streams]) if streams else None

    def conversation(self, entry: int) -> Conversation:
        """The entry as the data set gave it."""
        conversation = _decode(self._packed(entry))
        return conversation if self._pool is None else self._pool.restored(conversation)

    def outline(self, entry: int) -> Outline:
        """The entry's conversation, its turns still packed, with places for its media."""
        return decode_outline(self._packed(entry))

    def part(self, outline: Outline, index: int) -> Conversation:
        """The conversation with one turn alone."""
        conversation = outline.part(index)
        return conversation if self._pool is None else self._pool.restored(conversation)

    def expectation(self, entry: int, turn: int) -> Expectation | None:
        """The expectation of the turn's answer; None where no turn of the data set has one."""
        return self.told(entry, turn) if self.graded else None

    def told(self, entry: int, turn: int) -> Expectation:
        """What results tell of the turn."""
        return _decode_expectations(self._packed(entry)).turns[turn]

    def tasks(self, entries: Iterable[int], turns: Iterable[int]) -> list[str | None]:
        """The task of each of these turns; None where it has none."""
        if not self.tasked:
            return [None for _ in entries]
        read, known = self._packed, dict[int, tuple[Expectation, ...]]()
        return [
            (known.get(entry) or known.setdefault(entry, _decode_expectations(read(entry)).turns))[turn].task
            for entry, turn in zip(entries, turns, strict=True)
        ]

    def sources(self, entries: Iterable[int], turns: Iterable[int]) -> list[dict[str, str | int] | None]:
        """Where the record of each of these turns came from, see ``Turn.source``; None where that isn't told."""
        if not self.sourced:
            return [None for _ in entries]
        read, known = self._packed, dict[int, tuple[_Origin, ...]]()
        return [
            (known.get(entry) or known.setdefault(entry, _decode_origins(read(entry)).turns))[turn].source
            for entry, turn in zip(entries, turns, strict=True)
        ]

    def images(self, entry: int, turn: int) -> int:
        """Number of pictures in the turn's request, with those of its history."""
        if self._width > OLD_TURN:
            return self._turn(entry, turn, 5) & mask(IMAGES_BITS)
        if not self._media:
            return 0
        if (entry, turn) not in self._images:
            self._images[entry, turn] = images_of(self.conversation(entry))[turn]
        return self._images[entry, turn]

    def audio_s(self, entry: int, turn: int) -> float:
        """Length of the sound in the turn, without its history; NaN where there is none or it isn't known."""
        length_ns = self._turn(entry, turn, 6) if self._width > OLD_TURN else -1
        return length_ns / 1e9 if length_ns > 0 else math.nan

    def prefix(self, entry: int, turn: int) -> tuple[float, float]:
        """Blocks of the turn's recorded prompt, and hits among them; NaN where none are recorded."""
        both = self._turn(entry, turn, 5) >> IMAGES_BITS if self._width > OLD_TURN else 0
        hits, blocks = divmod(both, 1 << BLOCKS_BITS)
        return (float(blocks), float(hits)) if blocks else (math.nan, math.nan)

    def _packed(self, entry: int) -> memoryview:
        """The entry's conversation as msgpack."""
        row = self._row(entry)
        _, at, lengths = self._entries[row * ENTRY : row * ENTRY + ENTRY]
        after = self._entries[(row + 1) * ENTRY + 1] if row + 1 < self._rows else len(self._conversations)
        return memoryview(self._conversations)[at + (lengths & mask(ID_BITS)) + (lengths >> ID_BITS) : after]

    def _row(self, entry: int) -> int:
        """The place of the entry, which may have been added since the last look."""
        if entry >= self.entries:  # body and _turn say the same without a call: every request asks them
            self.grow()
        return self._places[entry]

    def _turn(self, entry: int, turn: int, field: int) -> int:
        if entry >= self.entries:
            self.grow()
        return self._turns[(self._entries[self._places[entry] * ENTRY] + turn) * self._width + field]


def _mapped(path: Path) -> bytes | mmap.mmap:
    """A file's bytes, mapped where it has any; none of a table that earlier versions didn't write."""
    if path.name in ("dataset.splices", "dataset.recorded") and not path.exists():
        return b""
    with path.open("rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if os.fstat(file.fileno()).st_size else b""


__all__ = ["Expectation", "Store"]
