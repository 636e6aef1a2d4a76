"""What the command of a site says, in the logs of the plan for which it says it."""

from __future__ import annotations

import contextlib
from pathlib import Path

_LAST_LINES_BYTES = 4096


class SiteLog:
    """What *said*, a file that the command appends to, gets from now on; it is copied to *log*, unless that is the same.

    A command that serves several plans has one file for all, and each plan has a log of its own.
    """

    def __init__(self, said: Path, log: Path) -> None:
        self._said, self._log = said, log
        self._copied = 0 if said == log else self._size()
        self._begin = self._copied
        if said != log:
            with contextlib.suppress(OSError):
                log.touch()

    def follow(self) -> None:
        """Copy what was said since the last call."""
        if self._said == self._log or self._size() == self._copied:
            return
        with contextlib.suppress(OSError), self._said.open("rb") as said:  # a directory was removed, or a disk is full
            said.seek(self._copied)
            text = said.read()
            with self._log.open("ab") as log:
                log.write(text)
            self._copied += len(text)

    def next(self, log: Path) -> SiteLog:
        """What is said from now on, for another plan."""
        self.follow()
        return SiteLog(self._said, log)

    def last_line(self) -> str:
        """What was said last, in parentheses behind a blank; "" for nothing."""
        try:
            with self._said.open("rb") as said:
                said.seek(max(self._begin, self._size() - _LAST_LINES_BYTES))
                lines = said.read().decode(errors="replace").splitlines()
        except OSError:
            return ""
        lines = [line.strip() for line in lines if line.strip()]
        return f" ({lines[-1]})" if lines else ""

    def _size(self) -> int:
        try:
            return self._said.stat().st_size
        except OSError:  # nothing was said yet
            return 0
