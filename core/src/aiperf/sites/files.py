"""Files that cross between a run and its sites, piece by piece.  Whoever wants one asks, so a broken connection loses none."""

from __future__ import annotations

import hashlib
import os
import re
import time
from collections.abc import Collection, Iterator
from pathlib import Path

from aiperf.redaction import private
from aiperf.rundir.journal import columns_path, frames, numbered
from aiperf.sdk.plan import Plan, TlsPlan
from aiperf.sites.messages import FilePiece, FileWanted, SentFile

DOWN_BYTES, UP_BYTES = 1 << 20, 256 << 10
"""Of a piece for a site, and of one that it sends beside its load."""
_AGAIN_S = 2.0
"""A piece that did not come in this time is asked for again."""
_OF_TOKENIZER = "tokenizer."
_TLS_FIELDS = {"ca_file": "tls-authorities.pem", "client_cert": "tls-client.pem", "client_key": "tls-client-key.pem"}
TLS_NAMES = frozenset(_TLS_FIELDS.values())
"""Names of certificates and keys at a site."""


def tls_files(tls: TlsPlan) -> dict[str, str]:
    """The files of certificates and keys that a site needs: the field of *tls*, and its name there."""
    return {field: name for field, name in _TLS_FIELDS.items() if getattr(tls, field) is not None}


def tokenizer_file(name: str) -> str:
    """What a file of the tokenizer is called among those that a site is sent."""
    return f"{_OF_TOKENIZER}{name}"


def inputs(plan: Plan, journal: Path) -> Iterator[tuple[str, Path]]:
    """The files that a site needs, by their names there: the data set, the times of each phase, certificates and keys,
    the tokenizer.

    *journal*: of the run.
    """
    yield from ((path.name, path) for path in sorted(journal.glob("dataset.*")))
    for phase in plan.load.phases:
        files = phase.due_file, phase.sessions_file, phase.limits_file, phase.prefill_limits_file
        yield from ((Path(path).name, Path(path)) for path in files if path is not None)
    tls = plan.target.tls
    yield from ((name, Path(getattr(tls, field))) for field, name in tls_files(tls).items())
    yield from ((tokenizer_file(name), Path(path)) for name, path in plan.data.tokenizer_files.items())


def is_columns(name: str, site: int, sites: int) -> bool:
    """Whether a file has the name of columns of a reducer of that *site*, of so many *sites*."""
    return _is_of(r"columns-([0-9]{1,6})\.[0-9]{1,9}", name, site, sites)


def is_segment(name: str, site: int, sites: int) -> bool:
    """Whether a file has the name of a segment of a worker of that *site*, of so many *sites*."""
    return _is_of(r"shard-([0-9]{1,6})\.[0-9]{1,9}\.seg", name, site, sites)


def _is_of(pattern: str, name: str, site: int, sites: int) -> bool:
    found = re.fullmatch(pattern, name)
    return found is not None and int(found[1]) % sites == site


def files_of(journal: Path, reducer: int) -> int:
    """How many files of columns of the reducer there are."""
    count = 0
    while columns_path(journal, reducer, count).exists():
        count += 1
    return count


def cut_to_frames(journal: Path, site: int, sites: int) -> None:
    """End the columns of a site that was lost with whole frames: of the last ones a part alone may have come."""
    for path in numbered(journal, "columns-*.*"):
        if is_columns(path.name, site, sites):
            os.truncate(path, max((frame.end for frame in frames(path)), default=0))


def sent_file(path: Path, name: str | None = None) -> SentFile:
    """What a site is told of a file.  *name*: there, None for its own."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(DOWN_BYTES):
            digest.update(piece)
        return SentFile(name or path.name, file.tell(), digest.hexdigest())


def part(path: Path, wanted: FileWanted) -> FilePiece:
    """The piece of the file that is wanted; an empty one where it has no more.

    Raises:
        OSError: It can't be read.
    """
    with path.open("rb") as file:
        file.seek(wanted.offset)
        return FilePiece(wanted.name, wanted.offset, file.read(min(wanted.most, DOWN_BYTES)))


class FileCopy:
    """Files of the other side that are copied to *directory*, each as far as its size is known.

    *piece_bytes*: of a piece.  Pieces are asked for one after the other, the next one when the one before has come.
    """

    def __init__(self, directory: Path, piece_bytes: int) -> None:
        self._directory, self._piece_bytes = directory, piece_bytes
        self._sizes: dict[str, int] = {}
        self._have: dict[str, int] = {}
        self._asked: tuple[str, int] | None = None
        self._asked_s = 0.0

    def grow(self, name: str, size: int) -> None:
        """The file has *size* bytes there."""
        name = Path(name).name
        if name not in self._have:
            self._have[name] = 0
            private(self._directory / name).write_bytes(b"")
        self._sizes[name] = size

    def drop(self, name: str) -> None:
        """Copy the file from its beginning again: it was written anew there."""
        if name in self._have:
            self._have[name] = 0
            os.truncate(self._directory / name, 0)

    def keep_only(self, names: Collection[str]) -> None:
        """Others than these are there no more, and not needed."""
        for name in self._have.keys() - set(names):
            del self._have[name], self._sizes[name]
            (self._directory / name).unlink(missing_ok=True)

    @property
    def names(self) -> list[str]:
        return list(self._have)

    @property
    def total_bytes(self) -> int:
        return sum(self._sizes.values())

    @property
    def missing_bytes(self) -> int:
        return sum(max(0, size - self._have[name]) for name, size in self._sizes.items())

    def wanted(self) -> Iterator[FileWanted]:
        """What to ask for now: nothing while a piece is under way."""
        name = next((name for name, size in self._sizes.items() if size > self._have[name]), None)
        if name is None:
            return
        next_piece = name, self._have[name]
        now_s = time.monotonic()
        if self._asked != next_piece or now_s - self._asked_s >= _AGAIN_S:
            self._asked, self._asked_s = next_piece, now_s
            yield FileWanted(name, self._have[name], min(self._piece_bytes, self._sizes[name] - self._have[name]))

    def take(self, piece: FilePiece) -> None:
        """Append a piece; one that is there already, or does not follow, is left.

        Raises:
            OSError: The disk is full.
        """
        if piece.data and self._have.get(piece.name) == piece.offset:
            with (self._directory / piece.name).open("ab") as file:
                file.write(piece.data)
            self._have[piece.name] += len(piece.data)
