"""Results of an earlier run in a run's directory: set aside while this one starts, gone when it begins, back if it doesn't."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import shutil
from pathlib import Path
from typing import BinaryIO

from aiperf.artifacts import MARKER
from aiperf.journal import numbered
from aiperf.rundir import hold

log = logging.getLogger(__name__)

_ASIDE = "journal.earlier"
_WRITTEN_AHEAD = "inputs.json"
"""Written before load, while a start-up check may still fail."""
_SIGNS = (MARKER, "profile_export_aiperf.json", "profile_export.jsonl")
"""Of results without a journal: the reference's, or a report's that went elsewhere."""


def recover(directory: Path) -> bool:
    """Put back what a start set aside that was killed before it began; whether there was anything.

    Raises:
        BadJournal: It isn't killed, but at work.
        OSError: It can't be moved.
    """
    if not set_aside(directory):
        return False
    Earlier(directory).restore()
    return True


def set_aside(directory: Path) -> bool:
    """Whether results lie aside, of a start that is going on or was killed."""
    return (directory / _ASIDE).exists()


class Earlier:
    """What *directory* holds of an earlier run.

    Raises:
        BadJournal: That run, or a report of it, is still at work.
        OSError: It can't be moved.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._journal, self._aside = directory / "journal", directory / _ASIDE
        self._new = not directory.exists()
        self._locks: list[BinaryIO] = []
        if (self._aside / "lock").exists():
            self._locks.append(hold(self._aside))
        if self._journal.exists():
            self._locks.append(hold(self._journal))
        if self._aside.exists():
            self._settle()
        self.found = self._observed() or any((directory / name).exists() for name in _SIGNS)
        """Whether there are results at all."""
        self._set_aside()

    def _observed(self) -> bool:
        """Whether the journal has more in it than a plan."""
        return bool(numbered(self._journal, "shard-*.seg") or numbered(self._journal, "columns-*.*"))

    def _settle(self) -> None:
        """A start that was killed: what it had set aside counts, unless it came to observing something."""
        if self._observed():
            shutil.rmtree(self._aside)
        else:
            self._put_back()

    def _set_aside(self) -> None:
        ahead = self._directory / _WRITTEN_AHEAD
        if self._journal.exists():
            self._journal.rename(self._aside)
        elif ahead.exists():
            self._aside.mkdir()
        if ahead.exists():
            # The file stays for now: it may be this run's input.  Whoever writes it anew writes beside it and renames.
            _link(ahead, self._aside / _WRITTEN_AHEAD)

    def _put_back(self) -> None:
        shutil.rmtree(self._journal, ignore_errors=True)
        (self._directory / _WRITTEN_AHEAD).unlink(missing_ok=True)
        if not self._aside.exists():
            return
        with contextlib.suppress(FileNotFoundError):
            (self._aside / _WRITTEN_AHEAD).rename(self._directory / _WRITTEN_AHEAD)
        if any(self._aside.iterdir()):
            self._aside.rename(self._journal)
        else:  # there was no journal
            self._aside.rmdir()

    def restore(self) -> None:
        """In the place of a run that never began, what was there before; of the run, a log that says something stays."""
        self._put_back()
        log_file = self._directory / "logs" / "aiperf.log"
        with contextlib.suppress(OSError):  # it has lines, or somebody else has files there
            if not log_file.stat().st_size:
                log_file.unlink()
            log_file.parent.rmdir()
        if self._new:
            with contextlib.suppress(OSError):
                self._directory.rmdir()
        self._release()

    def replace(self, keep: Path | None = None) -> None:
        """The run begins: say so, and take away what the earlier one wrote, so that no file of it stands among the new ones.

        *keep*: a file that stays, for it is this run's input.
        """
        if self.found:
            log.warning("%s holds results of an earlier run, which this one replaces", self._directory)
            for path in self._written():
                if keep is None or not path.exists() or not path.samefile(keep):
                    path.unlink(missing_ok=True)
            (self._directory / MARKER).unlink(missing_ok=True)
        shutil.rmtree(self._aside, ignore_errors=True)
        self._release()

    def _written(self) -> list[Path]:
        """Files that the earlier run says it wrote, but for what this one has written anew."""
        try:
            names = json.loads((self._directory / MARKER).read_bytes())["files"]
            paths = [self._directory / name for name in names if name != _WRITTEN_AHEAD]
        except (OSError, ValueError, LookupError, TypeError):
            paths = []
        ahead, before = self._directory / _WRITTEN_AHEAD, self._aside / _WRITTEN_AHEAD
        if (self._aside / "lock").exists() and ahead.exists() and before.exists() and ahead.samefile(before):
            paths.append(ahead)
        return [path for path in paths if path.resolve().is_relative_to(self._directory.resolve()) and not path.is_dir()]

    def _release(self) -> None:
        for lock in self._locks:
            lock.close()
        self._locks.clear()


def _link(path: Path, other: Path) -> None:
    try:
        os.link(path, other)
    except OSError:  # a file system without links
        shutil.copy2(path, other)
