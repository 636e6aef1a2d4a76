"""The form of the encoded data set on disk: written streaming, read by mapping, as large as the disk; readable while it grows.

Files in the journal's directory, integers little-endian int64:

``dataset.json``           shapes of requests, number of models, longest conversation, whether there is media
``dataset.entries``        per entry: first turn, offset of its conversation, length of its id and, in the upper bits, of its
                           streams
``dataset.turns``          per turn: shapes, input tokens, max tokens, delay ns, timestamp ns, images with the prefix above,
                       audio ns, splices so far
``dataset.offsets``        per turn and model: where its body ends
``dataset.recorded``       per turn: recorded start and end ns; empty where no turn has any
``dataset.bodies``         encoded bodies, one after the other, without their media
``dataset.splices``        where these stood, and ``dataset.media`` themselves: :mod:`aiperf.rundir.media`
``dataset.conversations``  per entry: its id, the streams of a tree as msgpack, then the conversation as msgpack, with places
                           for its media
``dataset.ready``          one number: how many entries can be read, and in the upper bits the revision of the files; only while
                       the data set grows, so that the files of a run don't tell how fast its machine was
``dataset.ahead``          what is known of trees before they are made: :mod:`aiperf.rundir.ahead`; it stays where some were
                           never made
``dataset.used``           of a data set that is made shortly before its use, how far the load is, while it grows:
                           :mod:`aiperf.rundir.uses`
``dataset.places``         per entry: its place in the other files, -1 before it is made; where they are not made in their order

While a data set grows its files have room behind what is written, and each entry that another one follows can be read.  A new
revision says that files are longer, or ``dataset.json`` another one: readers map them again.

Written by :mod:`aiperf.rundir.store_writer`, read by :mod:`aiperf.rundir.store`.
"""

from __future__ import annotations

import mmap
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from aiperf.rundir.shapes import StoredShape

ENTRY, TURN, OLD_TURN = 3, 8, 5
"""Numbers of a row of ``dataset.entries`` and of ``dataset.turns``, and of the latter in files of before."""
IMAGES_BITS, BLOCKS_BITS = 16, 23
"""Bits of the number of images, above them of the prefix's blocks, and of its hits above these."""
TABLES = ("entries", "turns", "offsets", "splices", "recorded")
NAMES = (*TABLES, "bodies", "conversations")
ID_BITS = 32
"""Bits of the length of an id; that of the streams stands above them."""
UNRECORDED = -(1 << 63)
"""In place of a recorded time."""
ENTRIES_BITS = 40
"""Bits of the number of entries; the revision stands above them."""


class About(Struct, frozen=True):
    """``dataset.json``."""

    shapes: list[StoredShape]
    models: int
    max_turns: int
    media: bool = False
    graded: bool = False
    turn_fields: int = OLD_TURN
    counts_add_up: bool = False
    repeats: bool = False
    settings: bool = False
    tasked: bool = False
    trees: bool = False
    sourced: bool = False


def mask(bits: int) -> int:
    return (1 << bits) - 1


def made(directory: Path) -> int:
    """How many entries of a data set that is being made are on the disk."""
    with suppress(FileNotFoundError):  # of one that grows, whose files have room behind what is written: all but the last
        return (int.from_bytes((directory / "dataset.ready").read_bytes(), "little") & mask(ENTRIES_BITS)) + 1
    with suppress(FileNotFoundError):
        return (directory / "dataset.entries").stat().st_size // (8 * ENTRY)
    return 0


def shared(path: Path) -> memoryview:
    """The integers of a file, which others see as soon as they are written."""
    with path.open("r+b") as file:
        return memoryview(mmap.mmap(file.fileno(), 0)).cast("q")


__all__ = [
    "BLOCKS_BITS",
    "ENTRIES_BITS",
    "ENTRY",
    "ID_BITS",
    "IMAGES_BITS",
    "NAMES",
    "OLD_TURN",
    "TABLES",
    "TURN",
    "UNRECORDED",
    "About",
    "made",
    "mask",
    "shared",
]  # fmt: skip
