"""Media of a data set, on disk once: requests and conversations have places in one file where their media stood.

``dataset.media`` has the texts of media (base64), one after the other; ``dataset.splices`` for each one in a body where it
stood in ``dataset.bodies``, and its place and length in ``dataset.media``.  Equal media, of several models, turns or entries,
are stored once.  Both are files of :mod:`aiperf.rundir.store_form`, readable while they grow.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from weakref import finalize

from msgspec.structs import replace

from aiperf.redaction import private
from aiperf.sdk.model import Conversation, Media, Message, Turn

FILE = "dataset.media"
_LEAST = 1024
"""A shorter text stays where it is."""
_HEAD = 64
"""Characters of a ``data:`` URI in which its comma stands."""
_MARK = "\0"
"""First character of a value that stands elsewhere; one that begins with it of itself is put there, too."""
_KNOWN = 1 << 16
"""Media that are recognised when they come again."""
_PROBE, _PROBE_AT, _TRIES = 64, 1024, 8
"""A medium is looked for by so many of its bytes, behind what files of a kind have in common."""

Kept = tuple[bytes, int]
"""The text of a medium, and its place in the file."""


class MediaWriter:
    """Writes the file of media, which it makes with the first one."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / FILE
        self._path.unlink(missing_ok=True)
        self._file: int | None = None
        self.size = 0
        self._known: dict[tuple[int, bytes, bytes], int] = {}

    def __bool__(self) -> bool:
        """Whether anything was written."""
        return self._file is not None

    def kept(self, conversation: Conversation) -> tuple[Conversation, dict[str, Kept]]:
        """The conversation with places for its media, and these by their value."""
        kept: dict[str, Kept] = {}

        def moved(media: Media) -> Media:
            value = media.value
            marked = value.startswith(_MARK)
            if len(value) < _LEAST and not marked:
                return media
            head = "" if marked else value[: value.find(",", 0, _HEAD) + 1]
            if value not in kept:
                data = value[len(head) :].encode()
                kept[value] = data, self._place(data)
            data, place = kept[value]
            return replace(media, value=f"{_MARK}{place} {len(data)} {head}")

        return with_media(conversation, moved), kept

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _place(self, data: bytes) -> int:
        """Where the text stands; it is written where the file doesn't have it."""
        if self._file is None:
            private(self._path)
            self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o666)
        middle = len(data) // 2
        key = len(data), data[middle : middle + _PROBE], data[-_PROBE:]
        place = self._known.get(key)
        if place is not None and os.pread(self._file, len(data), place) == data:
            return place
        if place is not None or len(self._known) < _KNOWN:
            self._known[key] = self.size
        place, rest = self.size, memoryview(data)
        while rest:
            rest = rest[os.write(self._file, rest) :]
        self.size += len(data)
        return place


def of_turn(conversation: Conversation, index: int, kept: dict[str, Kept]) -> list[Kept]:
    """The media of the turn encoded by itself, in their order; without those that are not *kept*."""
    turn = conversation.turns[index]
    opening = conversation.opening if index == 0 or conversation.alone else ()
    media = (media for message in (*opening, *turn.before, *turn.own) for media in message.media)
    return [kept[each.value] for each in media if each.value in kept]


def cut(body: bytes, media: Iterable[Kept], start: int) -> tuple[bytes, list[int]]:
    """The body without these media, and its splices.  start: where the rest will stand in the file of bodies.

    A medium that the endpoint wrote in another form stays, and so does one at the very begin.
    """
    spans: dict[int, Kept] = {}
    behind = 0
    for data, place in media:
        at = _found(body, data, behind)
        if at < 0 < behind:
            at = _found(body, data, 0)
        if at > 0:
            spans[at], behind = (data, place), at + len(data)
    pieces, splices, reached = [], list[int](), 0
    for at in sorted(spans):
        data, place = spans[at]
        if at < reached:  # inside the one before
            continue
        pieces.append(body[reached:at])
        start += at - reached
        splices += (start, place, len(data))
        reached = at + len(data)
    return (b"".join((*pieces, body[reached:])), splices) if splices else (body, splices)


def _found(body: bytes, data: bytes, start: int) -> int:
    """Where *data* begins in *body*, -1 where it doesn't."""
    offset = min(_PROBE_AT, len(data) // 2)
    probe, at = data[offset : offset + _PROBE], start + offset
    for _ in range(_TRIES):
        at = body.find(probe, at)
        if at < 0:
            return -1
        if body.startswith(data, at - offset):
            return at - offset
        at += 1
    return -1


class StoredMedia:
    """Reads the file, not by mapping: mapped pages would count as memory of each process.

    Raises:
        FileNotFoundError: The data set has no media.
    """

    def __init__(self, directory: Path) -> None:
        self._file = os.open(directory / FILE, os.O_RDONLY)
        finalize(self, os.close, self._file)

    def joined(self, body: bytes, start: int, splices: Iterable[int]) -> bytes:
        """The body with its media.  start: where it stands in the file of bodies.  splices: of its turn, for all models."""
        pieces, reached, numbers = list[bytes](), 0, iter(splices)
        for place, at, size in zip(numbers, numbers, numbers, strict=True):
            if 0 < place - start <= len(body):
                pieces += (body[reached : place - start], os.pread(self._file, size, at))
                reached = place - start
        return b"".join((*pieces, body[reached:]))

    def restored(self, conversation: Conversation) -> Conversation:
        """The conversation as it was given to :meth:`MediaWriter.kept`."""
        return with_media(conversation, self._media)

    def _media(self, media: Media) -> Media:
        if not media.value.startswith(_MARK):
            return media
        place, size, head = media.value[1:].split(" ", 2)
        return replace(media, value=head + os.pread(self._file, int(size), int(place)).decode())


def with_media(conversation: Conversation, change: Callable[[Media], Media]) -> Conversation:
    """The conversation with every medium changed; verbatim messages and payloads stay."""

    def message(one: Message) -> Message:
        return replace(one, media=tuple(map(change, one.media))) if one.media else one

    def turn(one: Turn) -> Turn:
        if not (one.media or one.before or one.items):
            return one
        items = None if one.items is None else tuple(map(message, one.items))
        return replace(one, media=tuple(map(change, one.media)), before=tuple(map(message, one.before)), items=items)

    return replace(conversation, turns=tuple(map(turn, conversation.turns)), opening=tuple(map(message, conversation.opening)))


def images_of(conversation: Conversation) -> list[int]:
    """How many pictures the request of each turn has, with those of its history."""
    before = sum(message.images for message in conversation.prelude)
    images, so_far, said = [], 0, list[int]()
    for turn in conversation.turns:
        if turn.reset or conversation.alone or turn.keeps is not None:
            kept = 0 if turn.reset or conversation.alone else turn.keeps
            so_far -= sum(said[kept:])
            del said[kept:]
        new = [message.images for message in (*turn.before, *turn.own)]
        said += new
        so_far += sum(new)
        images.append(before + so_far)
    return images


def audio_ns_of(conversation: Conversation) -> list[int]:
    """Length of the sound of each turn, without its history; -1 where there is none or it isn't known."""
    from aiperf.sdk.media import audio_seconds  # threads and URLs, which workers don't need

    lengths = [audio_seconds([media for message in turn.own for media in message.media]) for turn in conversation.turns]
    return [-1 if seconds is None else round(seconds * 1e9) for seconds in lengths]


def has_media(conversation: Conversation) -> bool:
    """Whether a message of it has media, or may have pictures."""
    if conversation.opening:
        return True
    return any(turn.media or turn.before or turn.items for turn in conversation.turns)
