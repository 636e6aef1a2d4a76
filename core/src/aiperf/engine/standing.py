"""Where each shard stands, in memory that outlives its process: the one that replaces a dead worker goes on from here.

A table of int64 in an unlinked file that the parent makes and every worker maps.  A cell has one writer, so a plain store will
do, at 40 ns.
"""

from __future__ import annotations

import mmap
import os
import tempfile
from collections.abc import MutableSequence
from pathlib import Path

ARRIVALS, SESSIONS, SLOTS, PREFILLS = range(4)
"""Cells of a shard in a phase: arrivals of its own that have passed, sessions of its own that were started, and the session and
prefill slots that it holds of a ceiling shared with others."""
_CELLS = 4


class Standing:
    """The table of a run with *phases* phases and *workers* workers."""

    def __init__(self, fd: int, phases: int, workers: int) -> None:
        self._phases = phases
        self._table = memoryview(mmap.mmap(fd, workers * self._row(phases) * 8)).cast("q")

    @staticmethod
    def _row(phases: int) -> int:
        return 1 + phases * _CELLS

    def requests(self, worker: int) -> MutableSequence[int]:
        """One cell: how many requests the worker has numbered."""
        at = worker * self._row(self._phases)
        return self._table[at : at + 1]  # type: ignore[return-value]  # a memoryview is one, but typeshed has no insert for it

    def of(self, worker: int, phase: int) -> MutableSequence[int]:
        """The worker's cells of a phase: ARRIVALS, SESSIONS, SLOTS and PREFILLS."""
        at = worker * self._row(self._phases) + 1 + phase * _CELLS
        return self._table[at : at + _CELLS]  # type: ignore[return-value]


def make_standing_fd(phases: int, workers: int) -> int:
    """A table of zeros, to be inherited by workers; its file has no name any more."""
    fd, path = tempfile.mkstemp(prefix="aiperf-standing-")
    Path(path).unlink()
    os.ftruncate(fd, workers * (1 + phases * _CELLS) * 8)
    return fd
