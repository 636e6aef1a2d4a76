"""The book of a service: its runs and their states, on disk before anybody is told of them."""

from __future__ import annotations

import fcntl
import os
import re
import secrets
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
from aiperf import ConfigError
from msgspec import Struct

QUEUED, PREPARING, RUNNING = "queued", "preparing", "running"
DONE, FAILED, CANCELLED, INTERRUPTED = "done", "failed", "cancelled", "interrupted"
UNDER_WAY, ENDED = frozenset((PREPARING, RUNNING)), frozenset((DONE, FAILED, CANCELLED, INTERRUPTED))
ID = re.compile(r"[0-9a-z][0-9a-z-]{3,60}")
_STATE, _FILE, _RESULTS, _LOG, _LOCK = "state.json", "run.yaml", "results", "run.log", "service.lock"


class Entry(Struct, omit_defaults=True):
    """A run of the service.

    number: order in which runs came.  Instants in s since 1970; None where it has not come to that.  code: exit code of the
    run's program.  reason: why it ended as it did, where the code alone does not say.  secrets: how many texts of the file are
    kept in memory alone.  key, digest: the ``Idempotency-Key`` it came with, and the hash of its file.  pid, born: of its
    program, and when that began, in ticks since the machine did.
    """

    id: str
    number: int
    label: str
    command: list[str]
    state: str = QUEUED
    posted_s: float = 0.0
    started_s: float | None = None
    ended_s: float | None = None
    code: int | None = None
    reason: str = ""
    verdict: str = ""
    numbers: dict[str, float] = {}
    kept: bool = False
    secrets: int = 0
    key: str = ""
    digest: str = ""
    asked: int = 0
    pid: int | None = None
    born: str = ""
    form: str = "yaml"


class Book:
    """The entries below *directory*, by id, in the order in which they came.

    Raises:
        ConfigError: The directory belongs to another service that runs, to something else, or can't be written.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory.resolve()
        self._runs = self.directory / "runs"
        try:
            if self.directory.exists() and not (self.directory / _LOCK).exists() and any(self.directory.iterdir()):
                raise ConfigError(
                    f"--directory {directory}: there is something else in it", "name an empty directory, or a new one"
                )
            self._runs.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._lock = os.open(self.directory / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            hint = "give each service a directory of its own"
            raise ConfigError(f"--directory {directory}: another service uses it", hint) from error
        except OSError as error:
            raise ConfigError(
                f"--directory {directory} can't be used: {error.strerror or error}", "name another one"
            ) from error
        self.entries: dict[str, Entry] = {}
        self._read()

    def _read(self) -> None:
        found = []
        for path in self._runs.glob(f"*/{_STATE}"):
            try:
                entry = msgspec.json.decode(path.read_bytes(), type=Entry)
            except (OSError, msgspec.MsgspecError):  # nobody was told of it
                continue
            if entry.id == path.parent.name:
                found.append(entry)
        for entry in sorted(found, key=lambda each: each.number):
            self.entries[entry.id] = entry
        for path in self._runs.iterdir():
            if path.name not in self.entries:
                shutil.rmtree(path, ignore_errors=True)  # a run that was never answered

    def folder(self, entry: Entry) -> Path:
        return self._runs / entry.id

    def file(self, entry: Entry) -> Path:
        """The file that was posted, without its secrets."""
        return self.folder(entry) / Path(_FILE).with_suffix(f".{entry.form}")

    def results(self, entry: Entry) -> Path:
        return self.folder(entry) / _RESULTS

    def log(self, entry: Entry) -> Path:
        return self.folder(entry) / _LOG

    def add(self, entry: Entry, file: bytes) -> None:
        """Take a run; it is on disk, whole, when this returns.

        Raises:
            OSError: It could not be written, and is not there.
        """
        folder = self.folder(entry)
        try:
            folder.mkdir(mode=0o700)
            self.file(entry).write_bytes(file)
            self.save(entry)
        except OSError:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        self.entries[entry.id] = entry

    def save(self, entry: Entry) -> None:
        """Write a changed entry: the old one or the new one is there at any instant."""
        path = self.folder(entry) / _STATE
        draft = path.with_suffix(".draft")
        with draft.open("wb") as file:
            file.write(msgspec.json.encode(entry))
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)

    def remove(self, entry: Entry) -> None:
        """Forget a run and its files."""
        (self.folder(entry) / _STATE).unlink(missing_ok=True)
        shutil.rmtree(self.folder(entry), ignore_errors=True)
        self.entries.pop(entry.id, None)

    def waiting(self) -> list[Entry]:
        """The queue, the next run first."""
        return [entry for entry in self.entries.values() if entry.state == QUEUED]

    def under_way(self) -> Entry | None:
        return next((entry for entry in self.entries.values() if entry.state in UNDER_WAY), None)

    def by_key(self, key: str) -> Entry | None:
        """The run that came with this ``Idempotency-Key``."""
        return next((entry for entry in self.entries.values() if key and entry.key == key), None)

    def outdated(self, keep: int) -> list[Entry]:
        """Ended runs beyond *keep*, the oldest first, but for those that are kept."""
        ended = [entry for entry in self.entries.values() if entry.state in ENDED]
        free = sorted((entry for entry in ended if not entry.kept), key=lambda entry: entry.ended_s or 0.0)
        return free[: max(0, len(ended) - keep)]

    def new_id(self) -> str:
        """An id that no run has had."""
        return f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-{secrets.token_hex(4)}"

    def next_number(self) -> int:
        return max((entry.number for entry in self.entries.values()), default=0) + 1

    def bytes(self) -> int:
        """Bytes of all files of all runs."""
        return sum(path.stat(follow_symlinks=False).st_size for path in _files(self._runs))


def _files(folder: Path) -> Iterator[Path]:
    for where, _, names in os.walk(folder):
        for name in names:
            path = Path(where, name)
            if path.is_file() or path.is_symlink():
                yield path


__all__ = [
    "CANCELLED", "DONE", "ENDED", "FAILED", "ID", "INTERRUPTED", "PREPARING", "QUEUED", "RUNNING", "UNDER_WAY", "Book", "Entry",
]  # fmt: skip
