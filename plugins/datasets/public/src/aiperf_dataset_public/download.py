"""Files of a repository, downloaded into the hub's cache: resumed where they broke off, and checked.

The hub's own client begins an interrupted file anew, waits silently where the hub asks to, and checks a size alone; the layout
of its cache is documented, so files that are put there this way are found by every other program.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

from aiperf import BadDataset
from huggingface_hub import constants, get_hf_file_metadata, get_session
from huggingface_hub.utils import (  # type: ignore[attr-defined]  # they are documented there
    WeakFileLock,
    build_hf_headers,
    hf_raise_for_status,
)
from msgspec import Struct

from aiperf_dataset_public.hub import HubFile, Listing, cannot_write, folder_of, offline, plain, refused, snapshot, ways_out
from aiperf_dataset_public.waiting import Patience, log

_PIECE = 1 << 20
"""Bytes that are read together."""
_METADATA_S, _TRANSFER_S = 10.0, 30.0
_SPARE_BYTES = 64 << 20
_ATTEMPTS = 5
"""Attempts in a row that bring nothing, after which a download fails."""
_SHA256, _SHA1 = re.compile(r"[0-9a-f]{64}"), re.compile(r"[0-9a-f]{40}")


class Progress(Struct, frozen=True):
    """How far a file is, in bytes.  total: None where the hub doesn't say."""

    name: str
    done: int
    total: int | None


Tell = Callable[[Progress], object]


def cached(listing: Listing, file: HubFile) -> Path | None:
    """The file in the hub's cache; None where it isn't there."""
    path = snapshot(listing.repository, listing.commit) / file.name
    return path if path.exists() else None


class Downloads:
    """Downloads files of the set called *name*.  *tell* hears the progress; *patience* waits where the hub asks to."""

    def __init__(self, name: str, listing: Listing, tell: Tell, patience: Patience) -> None:
        self._name, self._listing, self._tell, self._patience = name, listing, tell, patience

    def file(self, file: HubFile) -> Path:
        """The file's path in the cache; it is downloaded where the cache lacks it.

        Raises:
            BadDataset: The hub refuses it or can't be reached, its content is not what the hub promised, or the disk is full.
        """
        if (path := cached(self._listing, file)) is not None:
            return path
        listing = self._listing
        if forbidden := offline():
            why = f"{file.name} is not in the cache {constants.HF_HUB_CACHE}, and {forbidden} forbids the network"
            raise BadDataset(why, *ways_out(self._name))
        pointer = snapshot(listing.repository, listing.commit) / file.name
        folder, name = folder_of(listing.repository), _digest_of(file)
        try:
            etag, size = (name, file.size) if name and file.size is not None else self._metadata(file)
            lock = Path(constants.HF_HUB_CACHE) / ".locks" / folder.name / f"{etag}.lock"
            blob = folder / "blobs" / etag
            for path in (lock, blob, pointer):
                path.parent.mkdir(parents=True, exist_ok=True)
            with WeakFileLock(lock):
                if not blob.exists():
                    self._fetch(file, blob, size)
            _link(blob, pointer)
        except OSError as error:
            raise cannot_write(error) from error
        return pointer

    def verify(self, file: HubFile) -> None:
        """Check the content of a file that the cache has; a wrong one is removed.

        Raises:
            BadDataset: It is not what the hub promised.
        """
        pointer = cached(self._listing, file)
        if pointer is not None:
            blob = pointer.resolve()
            _check(blob, _digest_of(file) or blob.name, file.name, also_remove=pointer)

    def _metadata(self, file: HubFile) -> tuple[str, int | None]:
        """Name of the content, which is its digest, and its size."""
        try:
            found = get_hf_file_metadata(self._url(file), timeout=_METADATA_S)
        except Exception as error:  # the hub's client and its HTTP library document no exceptions
            status = getattr(getattr(error, "response", None), "status_code", 0)
            headers = getattr(getattr(error, "response", None), "headers", {})
            if self._patience.told_to_wait(status, headers):
                return self._metadata(file)
            raise refused(self._name, self._listing.repository, self._listing.commit, error) from error
        if not found.etag:
            raise BadDataset(f"{constants.ENDPOINT} gives no checksum of {file.name}", "a proxy may change answers")
        if not plain(found.etag):
            wrong = f"{constants.ENDPOINT} gives {found.etag!r} for the checksum of {file.name}"
            raise BadDataset(wrong, "a proxy may change answers")
        return found.etag, found.size

    def _url(self, file: HubFile) -> str:
        repository, commit = self._listing.repository, self._listing.commit
        return f"{constants.ENDPOINT}/datasets/{repository}/resolve/{commit}/{quote(file.name)}"

    def _fetch(self, file: HubFile, blob: Path, size: int | None) -> None:
        part = blob.with_name(f"{blob.name}.aiperf.incomplete")
        resumed = part.stat().st_size if part.exists() else 0
        if size is not None:
            check_space(part.parent, size - resumed)
        if resumed:
            log.info("%s goes on at %s", file.name, megabytes(resumed))
        self._transfer(file, part, size)
        try:
            _check(part, _digest_of(file) or blob.name, file.name)
        except BadDataset:
            if not resumed:
                raise
            log.warning("%s was resumed, and is not whole: it is fetched again from its start", file.name)
            self._transfer(file, part, size)
            _check(part, _digest_of(file) or blob.name, file.name)
        part.replace(blob)

    def _transfer(self, file: HubFile, part: Path, size: int | None) -> None:
        """Append to *part* until it has the whole file; a broken connection is tried again, where it broke off."""
        left = _ATTEMPTS
        while True:
            have = part.stat().st_size if part.exists() else 0
            if size is not None and have >= size:
                if have == size:
                    return
                part.unlink()
                continue
            try:
                if self._piece(file, part, have, size):
                    return
            except BadDataset:
                raise
            except Exception as error:  # the hub's client and its HTTP library document no exceptions
                if getattr(error, "response", None) is not None:
                    raise refused(self._name, self._listing.repository, self._listing.commit, error) from error
                if isinstance(error, OSError):  # of the disk: the library has errors of its own for the network
                    raise
                now = part.stat().st_size if part.exists() else 0
                left = _ATTEMPTS if now > have else left - 1
                if left == 0 and now == 0:
                    raise refused(self._name, self._listing.repository, self._listing.commit, error) from error
                if left == 0:
                    raise _broken_off(self._name, file, now, size, error) from error
                log.warning("%s broke off at %s: %s; trying again", file.name, megabytes(now), type(error).__name__)
                self._patience.sleep(_ATTEMPTS - left + 1)

    def _piece(self, file: HubFile, part: Path, have: int, size: int | None) -> bool:
        """One answer of the hub, appended to *part*; whether the file is whole."""
        # Without compression, so that bytes can be counted; the client leaves the login out where it is sent to another host.
        headers = {**build_hf_headers(), "Accept-Encoding": "identity"}
        if have:
            headers["Range"] = f"bytes={have}-"
        with get_session().stream("GET", self._url(file), headers=headers, timeout=_TRANSFER_S) as answer:
            if self._patience.told_to_wait(answer.status_code, answer.headers):
                return False
            if answer.status_code == 416:  # the part is longer than the file
                part.unlink(missing_ok=True)
                return False
            hf_raise_for_status(answer)
            goes_on = answer.status_code == 206 and answer.headers.get("Content-Range", "").startswith(f"bytes {have}-")
            done = have if goes_on else 0
            with part.open("ab" if goes_on else "wb") as out:
                for piece in answer.iter_bytes():
                    out.write(piece)
                    done += len(piece)
                    self._tell(Progress(file.name, done, size))
        return size is None or done >= size


def check_space(folder: Path, needed: int) -> None:
    """
    Raises:
        BadDataset: The disk of *folder* has less than *needed* bytes, and some to spare.
    """
    folder.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(folder).free
    if needed + _SPARE_BYTES > free:
        raise BadDataset(
            f"the data set needs {megabytes(needed)} more, and the disk of {folder} has {megabytes(free)} free",
            "set HF_HOME to a directory on another disk, or remove what you don't need: hf cache ls",
        )


def megabytes(count: int) -> str:
    """``1.2 GB``, ``340 MB``, ``12 kB``."""
    for unit, bytes_ in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= bytes_:
            return f"{count / bytes_:.3g} {unit}" if count < 1000 * bytes_ else f"{count / bytes_:,.0f} {unit}"
    return f"{count} bytes"


def _digest_of(file: HubFile) -> str:
    return file.sha256 if file.sha256 and _SHA256.fullmatch(file.sha256) else ""


def _check(path: Path, digest: str, name: str, also_remove: Path | None = None) -> None:
    """Compare a file with the digest that names it: SHA-256, or of a small file git's SHA-1; other names say nothing.

    Raises:
        BadDataset: They differ; the file is removed.
    """
    if _SHA256.fullmatch(digest):
        found = hashlib.sha256()
    elif _SHA1.fullmatch(digest):
        found = hashlib.sha1(f"blob {path.stat().st_size}\0".encode(), usedforsecurity=False)
    else:
        return
    with path.open("rb") as file:
        while piece := file.read(_PIECE):
            found.update(piece)
    if found.hexdigest() != digest:
        path.unlink()
        if also_remove is not None:
            also_remove.unlink(missing_ok=True)
        raise BadDataset(
            f"{name} has the checksum {found.hexdigest()[:12]}…, and the hub promised {digest[:12]}…: it was damaged or"
            " changed on its way, and is removed",
            "fetch it again; a proxy or mirror (HF_ENDPOINT) may have changed it",
        )


def _link(blob: Path, pointer: Path) -> None:
    """Make the name of the content in the commit's folder: a link, or a copy where the disk has no links."""
    try:
        pointer.symlink_to(os.path.relpath(blob, pointer.parent))
    except FileExistsError:
        pass
    except OSError:
        shutil.copyfile(blob, pointer)


def _broken_off(name: str, file: HubFile, have: int, size: int | None, error: Exception) -> BadDataset:
    of = "" if size is None else f" of {megabytes(size)}"
    return BadDataset(
        f"the download of {file.name} broke off at {megabytes(have)}{of}: {str(error) or type(error).__name__}",
        "the next run goes on there",
        ways_out(name)[1],
    )
