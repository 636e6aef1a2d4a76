"""Writes the encoded data set, of the form in :mod:`aiperf.rundir.store_form`."""

from __future__ import annotations

import os
from array import array
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from time import monotonic
from types import TracebackType
from typing import BinaryIO

import msgspec

from aiperf.redaction import private, without_secrets
from aiperf.rundir.media import Kept, MediaWriter, audio_ns_of, cut, has_media, images_of, of_turn
from aiperf.rundir.shapes import StoredShape, same_shape, shape_of, with_path
from aiperf.rundir.store_form import (
    BLOCKS_BITS,
    ENTRIES_BITS,
    ID_BITS,
    IMAGES_BITS,
    NAMES,
    TABLES,
    TURN,
    UNRECORDED,
    About,
    shared,
)
from aiperf.sdk.model import Conversation, HttpRequest, Turn

_FLUSH_BYTES = 1 << 18
_PUBLISH_S, _SHAPE_S = 0.02, 1e-5
_ROOM_BYTES = 1 << 20
"""The least size of a growing file."""
_encode = msgspec.msgpack.Encoder().encode


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
        self._sizes = dict.fromkeys(NAMES, 0)
        self._places: memoryview | None = None
        for name in ("ready", "places", "ahead", "used"):
            (directory / f"dataset.{name}").unlink(missing_ok=True)
        self._files: dict[str, BinaryIO] = {name: private(directory / f"dataset.{name}").open("wb") for name in NAMES}
        self._tables: list[list[int]] = [[] for _ in TABLES]
        self._bodies: list[bytes] = []
        self._conversations: list[bytes] = []
        self._shapes: list[StoredShape] = []
        self._known: dict[bytes, int] = {}
        self._latest: tuple[Sequence[HttpRequest], int] = (), 0
        self._turns = self._body_end = self._conversation_end = self._flushed_bytes = self._splices_end = 0
        self._media = self._recorded = False
        self._pool = MediaWriter(directory)
        self.graded = self.repeats = self.settings = self.tasked = self.trees = self.sourced = False
        """Whether any turn has an expected answer; a number of its repeat; settings; a task; whether any entry has streams;
        whether any turn has a source."""
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
        self._places = shared(path)

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
        _, turns, offsets, splices, _ = self._tables
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
            self.sourced |= turn.source is not None
            tokens = input_tokens[index] if index < len(input_tokens) else turn.input_tokens
            row = (
                self._shapes_of(requests[index]),
                -1 if tokens is None else tokens,
                -1 if turn.max_tokens is None else turn.max_tokens,
                round(turn.delay_ms * 1e6) if turn.delay_ms else 0,
                -1 if turn.timestamp_ms is None else round(turn.timestamp_ms * 1e6),
                (turn.prefix_hits << BLOCKS_BITS | turn.prefix_blocks) << IMAGES_BITS | (images[index] if images else 0),
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
        self._record(conversation.turns)
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
        self._record(conversation.turns)
        self._turns += 1
        self._end_entry(number)

    def _record(self, turns: Sequence[Turn]) -> None:
        """Keep the recorded times of further turns, once any turn has some."""
        if not self._recorded:
            if all(turn.recorded_ms is None for turn in turns):
                return
            self._recorded = True
            self._tables[4] += (UNRECORDED, UNRECORDED) * self._turns
        for turn in turns:
            times_ms = turn.recorded_ms
            missing = (UNRECORDED, UNRECORDED)
            self._tables[4] += missing if times_ms is None else (round(times_ms[0] * 1e6), round(times_ms[1] * 1e6))

    def _append(self, conversation: Conversation) -> None:
        identity, packed = conversation.id.encode(), _encode(conversation)
        streams = b""
        if conversation.streams:
            streams, self.trees = _encode(conversation.streams), True
        self._tables[0] += (self._turns, self._conversation_end, len(identity) | len(streams) << ID_BITS)
        self._conversations += (identity, streams, packed)
        self._conversation_end += len(identity) + len(streams) + len(packed)

    def _end_entry(self, number: int) -> None:
        if self._places is not None:
            self._places[number] = self.entries
        self.entries += 1
        if self._ready is not None and monotonic() > self._publish_at_s:
            self.publish()
        elif self.written_bytes - self._flushed_bytes > _FLUSH_BYTES:
            self.flush()

    def flush(self) -> None:
        """Write what was added."""
        for name, numbers in zip(TABLES, self._tables, strict=True):
            self._files[name].write(array("q", numbers).tobytes())
            numbers.clear()
        for name, pieces in (("bodies", self._bodies), ("conversations", self._conversations)):
            self._files[name].write(b"".join(pieces))
            pieces.clear()
        self._files["entries"].flush()  # its size is the progress that others see
        self._flushed_bytes = self.written_bytes

    @property
    def written_bytes(self) -> int:
        """Bytes of bodies, conversations and media so far."""
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
            self._ready = shared(path)
        for name, file in self._files.items():
            if file.tell() > self._sizes[name]:
                self._sizes[name], changed = max(_ROOM_BYTES, 2 * file.tell()), True
                os.ftruncate(file.fileno(), self._sizes[name])
        self._revision += changed
        self._ready[0] = self._revision << ENTRIES_BITS | readable
        # Each shape costs every reader time.
        self._publish_at_s = monotonic() + _PUBLISH_S + _SHAPE_S * len(self._shapes)

    def close(self, *, whole: bool = True) -> None:
        """Write ``dataset.json``, close the files and remove ``dataset.ready``, which earlier readers have mapped; once.

        *whole*: nothing stays of what was told ahead.
        """
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
            self._ready[0] = self._revision + 1 << ENTRIES_BITS | self.entries
            for name in ("ready", "used", *(["ahead"] if whole else [])):  # others have them open
                (self._directory / f"dataset.{name}").unlink(missing_ok=True)

    def _write_about(self) -> bool:
        """Write ``dataset.json``, and say whether it changed."""
        about_turns = self.graded, self.repeats, self.settings, self.tasked, self.trees, self.sourced
        known = len(self._shapes), self.max_turns, self._media, bool(self._pool), *about_turns
        if known == self._about:
            return False
        self._about, draft = known, self._directory / ".dataset.json.draft"
        shapes = with_path(self._shapes, self._path, without_secrets(self._path or ""))
        about = About(
            shapes, self._models, self.max_turns, self._media, self.graded, TURN, self.counts_add_up, self.repeats,
            self.settings, self.tasked, self.trees, self.sourced,
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


__all__ = ["StoreWriter"]
