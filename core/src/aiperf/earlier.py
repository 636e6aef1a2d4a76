"""Results of an earlier run in a run's directory: set aside while this one starts, gone when it begins, back if it doesn't."""

from __future__ import annotations

import contextlib
import json
import logging
import shutil
from pathlib import Path
from typing import BinaryIO

from aiperf.artifacts import MARKER
from aiperf.journal import numbered
from aiperf.rundir import hold

log = logging.getLogger(__name__)

_WRITTEN_AHEAD = "inputs.json"
"""Written before load, while a start-up check may still fail."""
_SIGNS = (MARKER, "profile_export_aiperf.json", "profile_export.jsonl")
"""Of results without a journal: the reference's, or a report's that went elsewhere."""


class Earlier:
    """What *directory* holds of an earlier run.

    Raises:
        BadJournal: That run, or a report of it, is still at work.
        OSError: It can't be moved.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._journal, self._aside = directory / "journal", directory / "journal.earlier"
        self._lock: BinaryIO | None = None
        self.found = any((directory / name).exists() for name in _SIGNS)
        """Whether there are results at all."""
        if self._journal.exists():
            self._lock = hold(self._journal)
        if self._aside.exists():
            self._settle()
        if self._journal.exists():
            self.found = True
            self._journal.rename(self._aside)
            with contextlib.suppress(FileNotFoundError):
                (directory / _WRITTEN_AHEAD).rename(self._aside / _WRITTEN_AHEAD)

    def _settle(self) -> None:
        """A start that was killed: what it had set aside counts, unless it came to observing something."""
        if numbered(self._journal, "shard-*.seg") or numbered(self._journal, "columns-*.*"):
            shutil.rmtree(self._aside)
        else:
            self.restore()

    def restore(self) -> None:
        """Put back what was set aside, in the place of a run that never began."""
        if not self._aside.exists():
            return
        with contextlib.suppress(FileNotFoundError):
            (self._aside / _WRITTEN_AHEAD).rename(self._directory / _WRITTEN_AHEAD)
        shutil.rmtree(self._journal, ignore_errors=True)
        self._aside.rename(self._journal)
        self._release()

    def replace(self) -> None:
        """The run begins: say so, and take away what the earlier one wrote, so that no file of it stands among the new ones."""
        if not self.found:
            return
        log.warning("%s holds results of an earlier run, which this one replaces", self._directory)
        for path in self._written():
            path.unlink(missing_ok=True)
        (self._directory / MARKER).unlink(missing_ok=True)
        shutil.rmtree(self._aside, ignore_errors=True)
        self._release()

    def _written(self) -> list[Path]:
        """Files that the earlier run says it wrote, but for what this one has written already."""
        try:
            names = json.loads((self._directory / MARKER).read_bytes())["files"]
            paths = [self._directory / name for name in names if name != _WRITTEN_AHEAD]
        except (OSError, ValueError, LookupError, TypeError):
            return []
        return [path for path in paths if path.resolve().is_relative_to(self._directory.resolve()) and not path.is_dir()]

    def _release(self) -> None:
        if self._lock is not None:
            self._lock.close()
            self._lock = None
