"""What the hub's cache has of a data set, and how it gets there."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TextIO

from aiperf import BadDataset
from aiperf_dataset_public.download import Downloads, Progress, cached, check_space, megabytes
from aiperf_dataset_public.files import Parts
from aiperf_dataset_public.hub import HubFile, Listing, offline, snapshot
from aiperf_dataset_public.sets import Source
from aiperf_dataset_public.single_file import fetched, place
from aiperf_dataset_public.waiting import Patience
from msgspec import Struct

_EVERY_S, _BAR = 0.2, 30
"""Seconds between two looks at the progress; columns of the terminal for the bar."""
_LINES_S = 5.0


class CachedFile(Struct, frozen=True):
    """A file of a set.  path: None where the cache lacks it.  bytes: None where neither the cache nor the hub tells."""

    name: str
    path: str | None
    bytes: int | None


class CachedSet(Struct, frozen=True):
    """A set, as the cache has it.  commit: None where it is not known.  files: those that a run may read, in their order."""

    name: str
    repository: str
    revision: str
    commit: str | None
    licence: str
    gate: str
    folder: str | None
    files: tuple[CachedFile, ...]

    @property
    def whole(self) -> bool:
        return bool(self.files) and all(file.path is not None for file in self.files)

    @property
    def bytes(self) -> int:
        """The size of the files that are there."""
        return sum(file.bytes or 0 for file in self.files if file.path is not None)


def found(name: str, source: Source, revision: str | None = None, subset: str | None = None) -> CachedSet:
    """What the cache has; the hub isn't asked.

    Raises:
        BadDataset: A revision or subset is given of a set that has none.
    """
    if not source.repository:
        _refuse_parts(name, revision, subset)
        return _single(name, source)
    here = Parts(name, source, subset).of_cache(revision)
    if here is None:
        return CachedSet(name, source.repository, revision or source.revision, None, source.licence, source.gate, None, ())
    return _of_listing(name, source, revision, *here)


def fetch(name: str, source: Source, revision: str | None, subset: str | None, count: int | None, out: TextIO) -> CachedSet:
    """Fetch the set's files, the first *count* or all (None), and compare those that were there; progress goes to *out*.

    Raises:
        BadDataset: It can't be fetched, or a file isn't what the hub promised.
    """
    patience = Patience()
    if not source.repository:
        _refuse_parts(name, revision, subset)
        fetched(name, source, patience)
        return _single(name, source)
    listing, files = Parts(name, source, subset).of_hub(revision, patience, fresh=offline() is None)
    files = files[:count]
    missing = [file for file in files if cached(listing, file) is None]
    check_space(snapshot(listing.repository, listing.commit).parent, sum(file.size or 0 for file in missing))
    bar = Bar(out, sum(file.size or 0 for file in missing))
    downloads = Downloads(name, listing, bar, patience)
    try:
        for file in files:
            if file in missing:
                downloads.file(file)
                bar.over(file)
            else:
                downloads.verify(file)
    finally:
        bar.close()
    return _of_listing(name, source, revision, listing, files)


def _refuse_parts(name: str, revision: str | None, subset: str | None) -> None:
    if revision is not None or subset is not None:
        raise BadDataset(f"{name} is one file, and has no revisions and no subsets", "drop --hf-revision and --hf-subset")


def _of_listing(name: str, source: Source, revision: str | None, listing: Listing, files: tuple[HubFile, ...]) -> CachedSet:
    rows = []
    for file in files:
        path = cached(listing, file)
        size = file.size if path is None else path.stat().st_size
        rows.append(CachedFile(file.name, None if path is None else str(path), size))
    return CachedSet(
        name, listing.repository, revision or source.revision, listing.commit, source.licence or listing.licence, listing.gate,
        str(snapshot(listing.repository, listing.commit)), tuple(rows),
    )  # fmt: skip


def _single(name: str, source: Source) -> CachedSet:
    path: Path = place(name, source)
    there = path.exists()
    file = CachedFile(path.name, str(path) if there else None, path.stat().st_size if there else None)
    return CachedSet(name, source.url, "", None, source.licence, source.gate, str(path.parent), (file,))


class Bar:
    """Progress of all files together: a bar in a terminal, else a line every five seconds."""

    def __init__(self, out: TextIO, total: int) -> None:
        self._out, self._total, self._done = out, total, 0
        self._draws = out.isatty()
        self._every_s = _EVERY_S if self._draws else _LINES_S
        self._due_s = time.monotonic() + (0.0 if self._draws else 1.0)
        self._drawn = False

    def __call__(self, progress: Progress) -> None:
        now_s = time.monotonic()
        if now_s < self._due_s:
            return
        self._due_s = now_s + self._every_s
        done = self._done + progress.done
        share = min(1.0, done / self._total) if self._total else 0.0
        far = f"{megabytes(done)} of {megabytes(self._total)}"
        if self._draws:
            filled = round(share * _BAR)
            self._out.write(f"\r[{'#' * filled}{'.' * (_BAR - filled)}] {share:4.0%} {far}  {progress.name[-40:]}\x1b[K")
            self._drawn = True
        else:
            self._out.write(f"{progress.name}: {far}\n")
        self._out.flush()

    def over(self, file: HubFile) -> None:
        self._done += file.size or 0

    def close(self) -> None:
        """Remove the bar."""
        if self._drawn:
            self._out.write("\r\x1b[K")
            self._out.flush()


