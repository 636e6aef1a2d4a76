"""The compact index of a corpus: plans of its traces, kept in the cache directory.

A corpus is read once.  Its index is called by the digest of its content and of all on which plans depend, so that a changed
file has another one; a file that looks as it did is not even read for its digest.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import tempfile
import time
import zlib
from collections.abc import Callable, Sequence
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Any, BinaryIO, cast

import msgspec
from aiperf import BadDataset
from aiperf.sdk.environment import cache_directory
from aiperf.sdk.exporter import atomic
from aiperf_traces.plans import SessionPlan
from msgspec import Struct

from aiperf_dataset_weka_trace.files import digest_of

log = logging.getLogger("aiperf.datasets.weka_trace")
_MAGIC = b"aiperf traces 2\n"
"""The first bytes of an index; another form has another number."""
_FOOTER = 8
"""Bytes of the length of the table at the end."""
_MOST_KEPT = 24
"""Indexes that are kept; the ones that were used last."""
_SETTLED_S = 2.0
"""A file that was changed in so short a time may be changed again without looking so."""


class TraceEntry(Struct, frozen=True, array_like=True):
    """A trace of the index: where its plan stands, and what is known without it.

    longest: the largest sum of a prompt and its answer, in tokens.  turns, agents: requests and agents of its plan.
    """

    id: str
    offset: int
    size: int
    crc: int
    longest: int
    turns: int
    agents: int


class _Table(Struct, frozen=True):
    entries: list[TraceEntry]
    facts: dict[str, Any]
    remarks: list[str]


_Stamp = tuple[str, int, int, int, int]
"""A file's name, device, inode, size and time of change."""


class _Stamps(Struct, frozen=True):
    """The *digest* of the content of files that look so."""

    files: list[_Stamp]
    digest: str


_encode = msgspec.msgpack.Encoder().encode
_decode_table = msgspec.msgpack.Decoder(_Table).decode
_decode_plan = msgspec.msgpack.Decoder(SessionPlan).decode
_decode_stamps = msgspec.json.Decoder(_Stamps).decode


class TraceIndex:
    """An opened index.  facts: what results tell of the corpus, by name.  remarks: sentences on it.

    Raises:
        ValueError: It is none, or damaged.
    """

    def __init__(self, file: BinaryIO, name: str) -> None:
        self._name = name
        self._map = mmap(file.fileno(), 0, access=ACCESS_READ)
        end = len(self._map) - _FOOTER
        begin = end - int.from_bytes(self._map[max(0, end) :], "little")
        if end < len(_MAGIC) or self._map[: len(_MAGIC)] != _MAGIC or not len(_MAGIC) <= begin <= end:
            raise ValueError("it is no index")
        table = _decode_table(self._map[begin:end])
        self.entries, self.facts, self.remarks = table.entries, table.facts, table.remarks

    def plan(self, entry: TraceEntry) -> SessionPlan:
        """The plan of a trace.

        Raises:
            BadDataset: The index was damaged.
        """
        text = self._map[entry.offset : entry.offset + entry.size]
        if zlib.crc32(text) != entry.crc:
            raise BadDataset(f"the index of traces is damaged: {self._name}", "remove it; it is made again")
        return _decode_plan(text)


class IndexWriter:
    """Writes an index to *file*: plans with :meth:`add`, then :meth:`finish`."""

    def __init__(self, file: BinaryIO) -> None:
        self._file, self._end, self._entries = file, len(_MAGIC), list[TraceEntry]()
        file.truncate(0)
        file.seek(0)
        file.write(_MAGIC)

    def add(self, plan: SessionPlan, longest: int) -> None:
        text = _encode(plan)
        self._file.write(text)
        self._entries.append(TraceEntry(plan.id, self._end, len(text), zlib.crc32(text), longest, plan.turns, len(plan.agents)))
        self._end += len(text)

    def finish(self, *, facts: dict[str, Any], remarks: list[str]) -> None:
        table = _encode(_Table(self._entries, facts, remarks))
        self._file.write(table + len(table).to_bytes(_FOOTER, "little"))
        self._file.flush()


def opened_index(files: Sequence[Path], depends: Sequence[object], write: Callable[[BinaryIO], None]) -> TraceIndex:
    """The index of the files, made by *write* where the cache has none.  depends: on what plans depend besides the files.

    Raises:
        BadDataset: A file can't be read, changed meanwhile, or *write* refuses it.
    """
    folder, stamps = cache_directory() / "traces", [_stamp(path) for path in files]
    key = hashlib.sha256(msgspec.json.encode([_digest(files, stamps, folder), _MAGIC.decode(), *depends])).hexdigest()
    path = folder / f"{key[:40]}.index"
    with contextlib.suppress(OSError, ValueError, msgspec.DecodeError), path.open("rb") as file:
        index = TraceIndex(file, str(path))
        os.utime(path)
        return index

    def made(file: BinaryIO) -> TraceIndex:
        write(file)
        _check_unchanged(files, stamps)
        return TraceIndex(file, str(path))

    try:
        with atomic(path) as draft, draft.open("w+b") as new:
            index = made(new)
        _tidy(folder)
        return index
    except OSError as error:
        why = error.strerror or error
        log.warning("the index of this corpus can't be kept in %s: %s; it is made again in each run", folder, why)
    try:
        with tempfile.TemporaryFile() as unnamed:
            return made(cast("BinaryIO", unnamed))
    except OSError as error:
        where = f"{tempfile.gettempdir()}: {error.strerror or error}"
        raise BadDataset(f"there is no place for the index of this corpus in {where}", "make room, or set TMPDIR") from error


def _check_unchanged(files: Sequence[Path], stamps: Sequence[_Stamp]) -> None:
    """
    Raises:
        BadDataset: A file looks otherwise than by its stamp, so that the index is not that of its digest.
    """
    for path, stamp in zip(files, stamps, strict=True):
        if _stamp(path) != stamp:
            raise BadDataset(f"{path} changed while it was read", "start the run again when the file is complete")


def _tidy(folder: Path) -> None:
    with contextlib.suppress(OSError):
        old = sorted(folder.glob("*.index"), key=lambda one: one.stat().st_mtime_ns, reverse=True)
        for path in old[_MOST_KEPT:]:
            path.unlink()


def _digest(files: Sequence[Path], stamps: list[_Stamp], folder: Path) -> str:
    """The digest of the files; of those that look as they did the one that is known."""
    names = "\0".join(str(path.absolute()) for path in files)
    known = folder / f"{hashlib.sha256(names.encode()).hexdigest()[:40]}.seen"
    with contextlib.suppress(OSError, msgspec.DecodeError):
        seen = _decode_stamps(known.read_bytes())
        if seen.files == stamps:
            return seen.digest
    digest = digest_of(files)
    _check_unchanged(files, stamps)
    changed_ns = max(stamp[-1] for stamp in stamps)
    if time.time_ns() - changed_ns > _SETTLED_S * 1e9:
        with contextlib.suppress(OSError), atomic(known) as draft:
            draft.write_bytes(msgspec.json.encode(_Stamps(stamps, digest)))
    return digest


def _stamp(path: Path) -> _Stamp:
    try:
        about = path.stat()
    except OSError as error:
        raise BadDataset(f"{path} can't be read: {error.strerror or error}") from error
    return path.name, about.st_dev, about.st_ino, about.st_size, about.st_mtime_ns


__all__ = ["IndexWriter", "TraceEntry", "TraceIndex", "opened_index"]
