"""How far a load is in a data set that is made shortly before its use: ``dataset.used``, which the builder reads.

Two int64 for each worker: how many entries were made up to the latest one that it used, in the order of their making, and how
many of its requests wait for entries.
"""

from __future__ import annotations

from collections.abc import MutableSequence
from pathlib import Path

from aiperf.redaction import private
from aiperf.rundir.store_form import shared

NAME = "dataset.used"
_CELLS = 2
"""Numbers of a worker."""
_REACHED, _WAITING = 0, 1
"""The places of the two."""


class Uses:
    """What the builder reads.  The file is made anew, with zeros for so many *workers*."""

    def __init__(self, directory: Path, workers: int) -> None:
        private(directory / NAME).write_bytes(bytes(8 * _CELLS * workers))
        self._cells = shared(directory / NAME)

    @property
    def reached(self) -> int:
        """How many entries were made up to the latest one that a request was sent of."""
        return max(self._cells[_REACHED::_CELLS])

    @property
    def waited_for(self) -> bool:
        """Whether a request waits for an entry that is not made."""
        return any(self._cells[_WAITING::_CELLS])


class OwnUses:
    """What a worker writes.  *cells*: its own."""

    def __init__(self, cells: MutableSequence[int]) -> None:
        self._cells = cells
        cells[_WAITING] = 0  # what a process before waited for

    def note(self, place: int) -> None:
        """A request is sent of the entry that was made behind *place* others."""
        if place >= self._cells[_REACHED]:
            self._cells[_REACHED] = place + 1

    def wait(self, requests: int) -> None:
        """The number of requests that wait is *requests*."""
        self._cells[_WAITING] = requests


def uses_of(directory: Path, worker: int) -> OwnUses | None:
    """The cells of a worker; None where the data set is made as a whole."""
    try:
        cells = shared(directory / NAME)
    except FileNotFoundError:
        return None
    return OwnUses(cells[_CELLS * worker : _CELLS * (worker + 1)])  # type: ignore[arg-type]  # typeshed has no insert for it
