"""What a plan leaves in the memory of a process that is kept for another one."""

from __future__ import annotations

import gc


class Leftovers:
    """Collects cycles behind each plan; with the memory that closes files.

    Modules are most of what a process has, and stay.  Behind the first plan they leave the sight of the collector: a collection
    takes some 30 ms of a reducer before, and less than one afterwards.
    """

    def __init__(self) -> None:
        self._first = True

    def collect(self) -> None:
        """A plan is over."""
        gc.collect()
        if self._first:
            self._first = False
            gc.freeze()
