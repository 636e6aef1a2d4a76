"""The encoded data set on disk: written streaming, read by mapping, as large as the disk; readable while it grows.

Files in the journal's directory, integers little-endian int64:

``dataset.json``           shapes of requests, number of models, longest conversation, whether there is media
``dataset.entries``        per entry: first turn, offset of its conversation, length of its id and, in the upper bits, of its
                           streams
``dataset.turns``          per turn: shapes, input tokens, max tokens, delay ns, timestamp ns, images with the prefix above,
                       audio ns, splices so far
``dataset.offsets``        per turn and model: where its body ends
``dataset.bodies``         encoded bodies, one after the other, without their media
``dataset.splices``        where these stood, and ``dataset.media`` themselves: :mod:`aiperf.rundir.media`
``dataset.conversations``  per entry: its id, the streams of a tree as msgpack, then the conversation as msgpack, with places
                           for its media
``dataset.ready``          one number: how many entries can be read, and in the upper bits the revision of the files; only while
                       the data set grows, so that the files of a run don't tell how fast its machine was
``dataset.places``         per entry: its place in the other files, -1 before it is made; where they are not made in their order

While a data set grows its files have room behind what is written, and each entry that another one follows can be read.  A new
revision says that files are longer, or ``dataset.json`` another one: readers map them again.

Workers read it with the standard library and msgspec alone.
"""

# Larger than 450 lines: writer and reader stand in one module, so that a change of the form is seen on both sides.

from __future__ import annotations

import errno
import math
import mmap
import os
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from time import monotonic
from types import TracebackType
from typing import TYPE_CHECKING, Any, BinaryIO

import msgspec
from msgspec import Struct

from aiperf.errors import BadJournal
from aiperf.redaction import private, without_secrets
from aiperf.rundir.media import Kept, MediaWriter, StoredMedia, audio_ns_of, cut, has_media, images_of, of_turn
from aiperf.rundir.outline import Outline, decode_outline
from aiperf.rundir.shapes import StoredShape, same_shape, shape_of, with_path
from aiperf.sdk.model import Conversation, HttpRequest
from aiperf.sdk.trees import Stream

if TYPE_CHECKING:
    from aiperf.sdk.columns import Ints

_ENTRY, _TURN, _OLD_TURN = 3, 8, 5
"""Numbers of a row of ``dataset.entries`` and of ``dataset.turns``, and of the latter in files of before."""
_IMAGES, _BLOCKS = 16, 23
"""Bits of the number of images, above them of the prefix's blocks, and of its hits above these."""
_TABLES = ("entries", "turns", "offsets", "splices")
_NAMES = (*_TABLES, "bodies", "conversations")
_FLUSH_BYTES = 1 << 18
_LONG_BYTES, _MOST_VIEWED_BYTES = 1 << 18, 1 << 26
"""A body from which on it is not copied; and what is viewed of such bodies before their pages are given back."""
_PUBLISH_S, _SHAPE_S = 0.02, 1e-5
_ROOM = 1 << 20
"""The least size of a growing file."""
_STREAMS = 32
"""Bits of the length of an id."""
_REVISION = 40
"""Bits of the number of entries."""
_IN_ORDER = range(1 << 62)
"""The places of entries that are made in their order."""
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Conversation).decode
_decode_streams = msgspec.msgpack.Decoder(tuple[Stream, ...]).decode


class _About(Struct, frozen=True):
    shapes: list[StoredShape]
    models: int
    max_turns: int
    media: bool = False
    graded: bool = False
    turn_fields: int = _OLD_TURN
    counts_add_up: bool = False
    repeats: bool = False
    settings: bool = False
    tasked: bool = False
    trees: bool = False


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


class StoreWriter:
    """Appends conversations; use as a context manager.

    ``dataset.json`` is written last, by :meth:`close`: without it there is no data set, so half of one is never read.  From
    :meth:`publish` on, readers see what was added.  path: of ``--endpoint``; its query is not written.
    """

    # More than 20 attributes: a row goes to several files, and the ends of all of them are counted between two flushes.

    def __init__(self, directory: Path, models: int = 1, path: str | None = None) -> None:
        self._directory, self._models, self._path = directory, models, path
        self._ready: memoryview | None = None
        self._revision, self._publish_at_s = 0, 0.0
        self._about: tuple[int, ...] = ()
        self._sizes = dict.fromkeys(_NAMES, 0)
        self._places: memoryview | None = None
        for name in ("ready", "places"):
            (directory / f"dataset.{name}").unlink(missing_ok=True)
        self._files: dict[str, BinaryIO] = {name: private(directory / f"dataset.{name}").open("wb") for name in _NAMES}
        self._tables: list[list[int]] = [[] for _ in _TABLES]
        self._bodies: list[bytes] = []
        self._conversations: list[bytes] = []
        self._shapes: list[StoredShape] = []
        self._known: dict[bytes, int] = {}
        self._latest: tuple[Sequence[HttpRequest], int] = (), 0
        self._turns = self._body_end = self._conversation_end = self._flushed_bytes = self._splices_end = 0
        self._media = False
        self._pool = MediaWriter(directory)
        self.graded = self.repeats = self.settings = self.tasked = self.trees = False
        """Whether any turn has an expected answer; a number of its repeat; settings; a task; whether any entry has streams."""
        self.counts_add_up = False
        """Whether the run's tokenizer promises so."""
        self.entries = 0
        self.max_turns = 0
        """Turns of the longest conversation; more where the data set promises one."""

    def __enter__(self) -> StoreWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if kind is None:
            self.close()
        for file in self._files.values():
            with suppress(OSError):  # the exception under way says more
                file.close()
        self._pool.close()

    def out_of_order(self, entries: int) -> None:
        """*entries* will be added, each with its number."""
        path = self._directory / "dataset.places"
        private(path).write_bytes(b"\xff" * 8 * entries)
        self._places = _shared(path)

    def add(
        self, conversation: Conversation, requests: Sequence[Sequence[HttpRequest]], input_tokens: Sequence[int | None] = (),
        number: int = 0,
    ) -> tuple[int, ...]:  # fmt: skip
        """Append an entry.

        *requests*: per turn, per model, the turn encoded by itself.  *input_tokens*: per turn, None where unknown;
        turns beyond its end keep the data set's number.  *number*: of the entry, only :meth:`out_of_order`.

        Returns:
            For :meth:`add_like`; () where the entry has several turns or media.
        """
        _, turns, offsets, splices = self._tables
        stored, kept, images, sound_ns = conversation, dict[str, Kept](), list[int](), list[int]()
        if has_media(conversation):
            stored, kept = self._pool.kept(conversation)
            images, sound_ns, self._media = images_of(conversation), audio_ns_of(conversation), True
        self._append(stored)
        row: tuple[int, ...] = ()
        for index, turn in enumerate(conversation.turns):
            self.graded |= turn.expected is not None
            self.repeats |= turn.repeat is not None
            self.settings |= bool(turn.settings)
            self.tasked |= turn.task is not None
            tokens = input_tokens[index] if index < len(input_tokens) else turn.input_tokens
            row = (
                self._shapes_of(requests[index]),
                -1 if tokens is None else tokens,
                -1 if turn.max_tokens is None else turn.max_tokens,
                round(turn.delay_ms * 1e6) if turn.delay_ms else 0,
                -1 if turn.timestamp_ms is None else round(turn.timestamp_ms * 1e6),
                (turn.prefix_hits << _BLOCKS | turn.prefix_blocks) << _IMAGES | (images[index] if images else 0),
                sound_ns[index] if sound_ns else -1,
            )
            turns += row
            media = of_turn(conversation, index, kept) if kept else None
            for request in requests[index]:
                body = request.body
                if media:
                    body, cuts = cut(body, media, self._body_end)
                    splices += cuts
                    self._splices_end += len(cuts)
                self._bodies.append(body)
                self._body_end += len(body)
                offsets.append(self._body_end)
            turns.append(self._splices_end)
        self._turns += len(conversation.turns)
        self.max_turns = max(self.max_turns, len(conversation.turns))
        self._end_entry(number)
        return row if len(conversation.turns) == 1 and not images else ()

    def add_like(
        self, row: tuple[int, ...], conversation: Conversation, bodies: Sequence[bytes], input_tokens: int | None, number: int
    ) -> None:  # fmt: skip
        """Append an entry that differs in its id, text and tokens from the one whose :meth:`add` gave *row*."""
        self._append(conversation)
        for body in bodies:
            self._body_end += len(body)
            self._tables[2].append(self._body_end)
        self._bodies += bodies
        self._tables[1] += (row[0], -1 if input_tokens is None else input_tokens, *row[2:], self._splices_end)
        self._turns += 1
        self._end_entry(number)

    def _append(self, conversation: Conversation) -> None:
        identity, packed = conversation.id.encode(), _encode(conversation)
        streams = b""
        if conversation.streams:
            streams, self.trees = _encode(conversation.streams), True
        self._tables[0] += (self._turns, self._conversation_end, len(identity) | len(streams) << _STREAMS)
        self._conversations += (identity, streams, packed)
        self._conversation_end += len(identity) + len(streams) + len(packed)

    def _end_entry(self, number: int) -> None:
        if self._places is not None:
            self._places[number] = self.entries
        self.entries += 1
        if self._ready is not None and monotonic() > self._publish_at_s:
            self.publish()
        elif self._written_bytes() - self._flushed_bytes > _FLUSH_BYTES:
            self.flush()

    def flush(self) -> None:
        """Write what was added."""
        for name, numbers in zip(_TABLES, self._tables, strict=True):
            self._files[name].write(array("q", numbers).tobytes())
            numbers.clear()
        for name, pieces in (("bodies", self._bodies), ("conversations", self._conversations)):
            self._files[name].write(b"".join(pieces))
            pieces.clear()
        self._files["entries"].flush()  # its size is the progress that others see
        self._flushed_bytes = self._written_bytes()

    def _written_bytes(self) -> int:
        return self._body_end + self._conversation_end + self._pool.size

    def publish(self) -> None:
        """Let readers see every entry but the last."""
        self.flush()
        changed = self._write_about()
        readable = max(0, self.entries - 1)
        for file in self._files.values():
            file.flush()
        if self._ready is None:
            path = self._directory / "dataset.ready"
            private(path).write_bytes(readable.to_bytes(8, "little"))
            self._ready = _shared(path)
        for name, file in self._files.items():
            if file.tell() > self._sizes[name]:
                self._sizes[name], changed = max(_ROOM, 2 * file.tell()), True
                os.ftruncate(file.fileno(), self._sizes[name])
        self._revision += changed
        self._ready[0] = self._revision << _REVISION | readable
        # Each shape costs every reader time.
        self._publish_at_s = monotonic() + _PUBLISH_S + _SHAPE_S * len(self._shapes)

    def close(self) -> None:
        """Write ``dataset.json``, close the files and remove ``dataset.ready``, which earlier readers have mapped; once."""
        if self._files["bodies"].closed:
            return
        self.flush()
        for file in self._files.values():
            if self._ready is not None:
                file.truncate()
            file.close()
        self._write_about()
        self._pool.close()
        if self._ready is not None:
            self._ready[0] = self._revision + 1 << _REVISION | self.entries
            (self._directory / "dataset.ready").unlink(missing_ok=True)

    def _write_about(self) -> bool:
        """Write ``dataset.json``, and say whether it changed."""
        about_turns = self.graded, self.repeats, self.settings, self.tasked, self.trees
        known = len(self._shapes), self.max_turns, self._media, bool(self._pool), *about_turns
        if known == self._about:
            return False
        self._about, draft = known, self._directory / ".dataset.json.draft"
        shapes = with_path(self._shapes, self._path, without_secrets(self._path or ""))
        about = _About(
            shapes, self._models, self.max_turns, self._media, self.graded, _TURN, self.counts_add_up, self.repeats,
            self.settings, self.tasked, self.trees,
        )  # fmt: skip
        private(draft).write_bytes(msgspec.json.encode(about))
        draft.replace(self._directory / "dataset.json")
        return True

    def _shapes_of(self, requests: Sequence[HttpRequest]) -> int:
        """The number of a row of shapes, by model; rows stand one after the other in *_shapes*."""
        latest, number = self._latest
        if len(latest) == len(requests) and all(map(same_shape, latest, requests)):
            return number
        shapes = [shape_of(request) for request in requests]
        number = self._known.setdefault(_encode(shapes), len(self._known))
        if number * self._models == len(self._shapes):
            self._shapes += shapes
        self._latest = requests, number
        return number


class Store:
    """Reads the files of :class:`StoreWriter`.  *path*: of ``--endpoint``, for a process that sends requests.

    Raises:
        BadJournal: The directory holds no data set.
    """

    # More than 20 attributes: each table is a map of its own, and a request reads it without a look-up between.
    # Larger than 250 lines: a body, its length and its view are found in the same tables.

    def __init__(self, directory: Path, path: str | None = None) -> None:
        self._directory, self._path, self._revision = directory, path, -1
        self._ready: memoryview | None = None
        self._places: range | memoryview = _IN_ORDER
        self._images: dict[tuple[int, int], int] = {}
        self._pool: StoredMedia | None = None
        self._maps: list[object] = []
        self._made = 0
        self.shapes: list[StoredShape] = []
        self._viewed = 0
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
        revision, made = divmod(self._ready[0], 1 << _REVISION)
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
        self.entries = made if places is _IN_ORDER or made == len(places) else 0

    def has(self, entry: int) -> bool:
        """Whether the entry could be read at the last look."""
        return 0 <= self._places[entry] < self._made

    def readable(self) -> Iterator[int]:
        """The entries that can be read, in their order."""
        return filter(self.has, range(self._made if self._places is _IN_ORDER else len(self._places)))

    def _map(self) -> None:
        about = msgspec.json.decode((self._directory / "dataset.json").read_bytes(), type=_About)
        *tables, bodies, conversations = (_mapped(self._directory / f"dataset.{name}") for name in _NAMES)
        places = None
        with suppress(FileNotFoundError):
            places = memoryview(_mapped(self._directory / "dataset.places")).cast("q")
        if self._pool is None:
            with suppress(FileNotFoundError):
                self._pool = StoredMedia(self._directory)
        self._bodies, self._conversations = bodies, conversations
        # Unmapping would take milliseconds of a measuring loop; files double in size, so there are few maps.
        self._maps.append((tables, self._bodies, self._conversations))
        self._entries, self._turns, self._offsets, self._splices = (memoryview(table).cast("q") for table in tables)
        self.shapes += with_path(about.shapes[len(self.shapes) :], without_secrets(self._path or ""), self._path)
        self.max_turns, self._models, self._media, self.graded = about.max_turns, about.models, about.media, about.graded
        self._width, self.counts_add_up = about.turn_fields, about.counts_add_up
        self.repeats, self.settings, self.tasked, self.trees = about.repeats, about.settings, about.tasked, about.trees
        self._rows = len(self._entries) // _ENTRY
        self._places = self._places if places is None else places
        if self._ready is None:
            self._see(self._rows)
        self.on_shapes()

    def turns(self, entry: int) -> int:
        """Number of turns of the entry's conversation; 0 where that is still to come."""
        if entry >= self.entries:
            self.grow()
            if not self.has(entry):
                return 0
        row = self._places[entry]
        after = self._entries[(row + 1) * _ENTRY] if row + 1 < self._rows else len(self._turns) // self._width
        return after - self._entries[row * _ENTRY]

    def body(self, entry: int, turn: int, model: int = 0) -> bytes:
        """The encoded body of the turn by itself, without earlier turns."""
        if entry >= self.entries:
            self.grow()
        number = self._entries[self._places[entry] * _ENTRY] + turn
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
        number = self._entries[self._places[entry] * _ENTRY] + turn
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
        number = self._entries[self._places[entry] * _ENTRY] + turn
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
        rows, table = (np.asarray(self._entries)[places * _ENTRY] + turns) * self._width, np.asarray(self._turns)
        nothing = np.zeros(len(entries), dtype=np.int64)
        if self._width > _OLD_TURN:
            images = table[rows + 5]
            blocks, hits = images >> _IMAGES & _mask(_BLOCKS), images >> _IMAGES + _BLOCKS
            return table[rows + 1], table[rows + 2], images & _mask(_IMAGES), table[rows + 6], blocks, hits
        each = zip(entries.tolist(), turns.tolist(), strict=True) if self._media else ()
        images = np.array([self.images(*one) for one in each]) if self._media else nothing
        return table[rows + 1], table[rows + 2], images, np.full(len(entries), -1), nothing, nothing

    def delay_ns(self, entry: int, turn: int) -> int:
        """Think time before the turn, 0 where there is none."""
        return self._turn(entry, turn, 3)

    def timestamp_ns(self, entry: int, turn: int) -> int:
        """The send time in a recorded trace, -1 outside traces."""
        return self._turn(entry, turn, 4)

    def id(self, entry: int) -> str:
        """The conversation's id."""
        row = self._row(entry)
        _, at, lengths = self._entries[row * _ENTRY : row * _ENTRY + _ENTRY]
        return self._conversations[at : at + (lengths & _mask(_STREAMS))].decode()

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
        row = self._row(entry)
        _, at, lengths = self._entries[row * _ENTRY : row * _ENTRY + _ENTRY]
        if not lengths >> _STREAMS:
            return ()
        at += lengths & _mask(_STREAMS)
        return _decode_streams(memoryview(self._conversations)[at : at + (lengths >> _STREAMS)])

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

    def images(self, entry: int, turn: int) -> int:
        """Number of pictures in the turn's request, with those of its history."""
        if self._width > _OLD_TURN:
            return self._turn(entry, turn, 5) & _mask(_IMAGES)
        if not self._media:
            return 0
        if (entry, turn) not in self._images:
            self._images[entry, turn] = images_of(self.conversation(entry))[turn]
        return self._images[entry, turn]

    def audio_s(self, entry: int, turn: int) -> float:
        """Length of the sound in the turn, without its history; NaN where there is none or it isn't known."""
        length_ns = self._turn(entry, turn, 6) if self._width > _OLD_TURN else -1
        return length_ns / 1e9 if length_ns > 0 else math.nan

    def prefix(self, entry: int, turn: int) -> tuple[float, float]:
        """Blocks of the turn's recorded prompt, and hits among them; NaN where none are recorded."""
        both = self._turn(entry, turn, 5) >> _IMAGES if self._width > _OLD_TURN else 0
        hits, blocks = divmod(both, 1 << _BLOCKS)
        return (float(blocks), float(hits)) if blocks else (math.nan, math.nan)

    def _packed(self, entry: int) -> memoryview:
        """The entry's conversation as msgpack."""
        row = self._row(entry)
        _, at, lengths = self._entries[row * _ENTRY : row * _ENTRY + _ENTRY]
        after = self._entries[(row + 1) * _ENTRY + 1] if row + 1 < self._rows else len(self._conversations)
        return memoryview(self._conversations)[at + (lengths & _mask(_STREAMS)) + (lengths >> _STREAMS) : after]

    def _row(self, entry: int) -> int:
        """The place of the entry, which may have been added since the last look."""
        if entry >= self.entries:  # body and _turn say the same without a call: every request asks them
            self.grow()
        return self._places[entry]

    def _turn(self, entry: int, turn: int, field: int) -> int:
        if entry >= self.entries:
            self.grow()
        return self._turns[(self._entries[self._places[entry] * _ENTRY] + turn) * self._width + field]


def _mask(bits: int) -> int:
    return (1 << bits) - 1


def made(directory: Path) -> int:
    """How many entries of a data set that is being made are on the disk."""
    with suppress(FileNotFoundError):  # of one that grows, whose files have room behind what is written: all but the last
        return (int.from_bytes((directory / "dataset.ready").read_bytes(), "little") & _mask(_REVISION)) + 1
    with suppress(FileNotFoundError):
        return (directory / "dataset.entries").stat().st_size // (8 * _ENTRY)
    return 0


def _shared(path: Path) -> memoryview:
    """The integers of a file, which others see as soon as they are written."""
    with path.open("r+b") as file:
        return memoryview(mmap.mmap(file.fileno(), 0)).cast("q")


def _mapped(path: Path) -> bytes | mmap.mmap:
    """A file's bytes, mapped where it has any; none of a table that earlier versions didn't write."""
    if path.name == "dataset.splices" and not path.exists():
        return b""
    with path.open("rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if os.fstat(file.fileno()).st_size else b""
