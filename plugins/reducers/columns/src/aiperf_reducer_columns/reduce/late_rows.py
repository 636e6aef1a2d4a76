"""Rows of per-request files that are written behind the summary."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

from aiperf.parts.segments import Position
from aiperf.sdk.columns import RecordBatch

from aiperf_reducer_columns.reduce.aside import Aside, ReaderDiedError, Turns, Written
from aiperf_reducer_columns.reduce.batches import StoredBatch, batches_behind
from aiperf_reducer_columns.reduce.outlets import Outlets

log = logging.getLogger("aiperf.reducer")


class LateRows:
    """The rows of the batches of reducer *index* behind a position; *scored* gives a batch with its metrics."""

    def __init__(self, outlets: Outlets, journal: Path, index: int, scored: Callable[[StoredBatch], RecordBatch]) -> None:
        self._outlets, self._journal, self._index, self._scored = outlets, journal, index, scored
        self._behind: Position | None = None

    def put_off(self, position: Position) -> None:
        """From now on rows wait: those of batches behind *position*."""
        if self._outlets.put_off():
            self._behind = position

    @property
    def wait(self) -> bool:
        return self._behind is not None

    def write(self, turns: Turns) -> None:
        """Write those that *turns* gives to this process.

        Raises:
            OSError: The disk is full.
        """
        assert self._behind is not None
        for number, stored in enumerate(batches_behind(self._journal, self._index, self._behind)):
            if turns.takes(number):
                rows = self._outlets.rows(self._scored(stored))
                turns.wait(number)
                self._outlets.write(rows)
                turns.end(number)

    def write_shared(self, aside: Aside | None) -> Written:
        """Write all, by turns with the process *aside* if there is one; what that one reports.

        Raises:
            OSError: The disk is full.
        """
        try:
            written = None if aside is None else aside.share(self.write)
        except ReaderDiedError as error:
            log.warning("%s; its part is done again", error)
            self._outlets.rewind()
            written = None
        if written is None:
            self.write(Turns())
            written = Written({}, {}, [])
        self._outlets.close()
        self._behind = None
        return written
