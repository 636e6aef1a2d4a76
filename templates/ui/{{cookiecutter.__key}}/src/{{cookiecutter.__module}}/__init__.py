"""The {{ cookiecutter.name }} display: a line whenever another tenth of a phase is done."""

from __future__ import annotations

import sys
from typing import Any

from aiperf import Snapshot, Ui


class {{ cookiecutter.__class }}(Ui):
    """It has a process to itself: one that is slow, hangs or dies costs the run nothing."""

    def __init__(self, options: Any = None) -> None:
        super().__init__(options)
        self._shown: tuple[str, int] | None = None

    def show(self, snapshot: Snapshot) -> None:
        """Called a few times a second."""
        if snapshot.share is None:  # nothing says when the phase is over
            return
        reached = (snapshot.phase, int(snapshot.share * 10))
        if reached != self._shown:
            self._shown = reached
            print(f"{snapshot.phase}: {reached[1]}0 %, {snapshot.completed} done", file=sys.stderr, flush=True)
