"""Directories for temporary files: locked while they are in use; the next run removes those of killed processes."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from aiperf.errors import BadJournal
from aiperf.rundir.journal import hold

_LOCKED, _UNLOCKED = "run", "new"
_UNBORN_S = 60.0
_LONGEST_BASE_BYTES = 107 - len("/aiperf-site-12345678/control")
_RANDOM = re.compile(r"^aiperf-(?:.*-)?.{8}$")
"""Names of ``tempfile``: eight characters at the end."""


def lock(directory: Path) -> BinaryIO:
    """Lock a directory named ``aiperf-…`` until the file is closed, or this process ends: :func:`sweep` leaves it alone."""
    new = directory / _UNLOCKED
    new.mkdir()
    file = hold(new)
    new.rename(directory / _LOCKED)  # it counts as left behind only with its lock
    return file


def socket_base() -> Path:
    """The system's directory for temporary files; ``/tmp`` where that is too deep for a socket (unix(7): 107 bytes)."""
    base = tempfile.gettempdir()
    return Path(base if len(os.fsencode(base)) <= _LONGEST_BASE_BYTES else "/tmp")


@contextlib.contextmanager
def private_directory(base: Path | None = None, what: str = "") -> Iterator[Path]:
    """``aiperf-WHAT-…`` below *base*, locked for the block and then removed.

    base: None is the system's directory for temporary files.
    """
    prefix = f"aiperf-{what}-" if what else "aiperf-"
    with tempfile.TemporaryDirectory(prefix=prefix, dir=base) as name, contextlib.closing(lock(Path(name))):
        yield Path(name)


@contextlib.contextmanager
def temporary_directory(what: str) -> Iterator[Path]:
    """An empty directory for the block.  *what*: a word of its name, for a user who finds it."""
    with private_directory(what=what) as directory:
        empty = directory / "files"
        empty.mkdir()
        yield empty


def sweep(base: Path) -> None:
    """Remove the directories below *base* that killed processes of this user left.

    One pass over the names: a directory for temporary files may have thousands of others.
    """
    with contextlib.suppress(OSError), os.scandir(base) as entries:
        names = [entry.name for entry in entries if entry.name.startswith("aiperf-")]
        for left in [base / name for name in names]:
            if _exists(left / _LOCKED / "lock"):
                _remove_unheld(left)
            elif _RANDOM.search(left.name) and _is_unborn(left):
                with contextlib.suppress(OSError):
                    shutil.rmtree(left)


def _exists(path: Path) -> bool:
    """Whether it is there; not where another user forbids to look."""
    try:
        return path.exists()
    except OSError:
        return False


def _remove_unheld(left: Path) -> None:
    with contextlib.suppress(OSError, BadJournal):  # it is in use, or has just gone
        if left.lstat().st_uid == os.geteuid() and not left.is_symlink():
            with hold(left / _LOCKED):
                shutil.rmtree(left)


def _is_unborn(left: Path) -> bool:
    """Whether it is what a process of this user left that was killed before its directory had a lock: nothing, for a minute."""
    try:
        about = left.lstat()
        old = time.time() - about.st_mtime > _UNBORN_S
        if about.st_uid != os.geteuid() or not stat.S_ISDIR(about.st_mode) or not old:
            return False
        held = [path.name for path in left.iterdir()]
        return not held or (held == [_UNLOCKED] and {path.name for path in (left / _UNLOCKED).iterdir()} <= {"lock"})
    except OSError:  # it has just gone
        return False
