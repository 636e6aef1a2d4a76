"""Reducers behind the load: a person waits for them, so they work at the ordinary priority.

Beside the load a reducer may have chosen a lower one, which a user without privileges can't take back, on Linux: not for the
process itself, and not for another.  Where others keep the cores busy such a process gets some percent of one.  It is replaced
then: another one goes on from its columns.
"""

from __future__ import annotations

import contextlib
import logging
from pathlib import Path

from aiperf.processes.local import LocalProcess
from aiperf.run.children import Child, Children

log = logging.getLogger(__name__)

_NS = 1_000_000_000
_WAITED_NS = 300_000_000
_COLUMNS_PER_S = 20_000_000
"""Bytes of columns that a reducer reads again and scores in a second."""


class Haste:
    """Looks after the reducers of a plan once its load has ended."""

    def __init__(self, children: Children, journal: Path) -> None:
        self._children, self._journal = children, journal
        self._seen: dict[int, tuple[int, int]] = {}
        self._settled: set[int] = set()

    def check(self) -> None:
        """Raise the priority of each reducer, or replace it where that is not allowed and it waits for a core."""
        for child in list(self._children.reducers):
            process = child.process
            if isinstance(process, LocalProcess) and process.poll() is None and process.pid not in self._settled:
                if not child.busy or process.raise_priority():
                    self._settled.add(process.pid)
                elif self._starves(process.pid):
                    self._replace(child, process)

    def _starves(self, pid: int) -> bool:
        """Whether it has waited for a core for longer than it ran on one, and for as long as doing its work again takes."""
        with contextlib.suppress(OSError, ValueError):
            ran, waited, _ = map(int, Path(f"/proc/{pid}/schedstat").read_bytes().split())
            ran_before, waited_before = self._seen.setdefault(pid, (ran, waited))
            columns = sum(path.stat().st_size for path in self._journal.glob("columns-*"))
            worth = _WAITED_NS + columns * _NS // _COLUMNS_PER_S
            return waited - waited_before > max(worth, ran - ran_before)
        return False

    def _replace(self, child: Child, process: LocalProcess) -> None:
        log.info("%s waits for a core at a low priority; another one goes on at the ordinary one", child.identity)
        process.end_soon()
        self._children.restart(child)  # it imports while the other one ends
        process.kill()
