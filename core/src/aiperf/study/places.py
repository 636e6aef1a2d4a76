"""A run's place in its study: what displays show of it, and the manifest when its journal is closed."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from aiperf.sdk.plan import Plan
from aiperf.sdk.snapshot import CellProgress


class TimeLeft:
    """How long a study will take, from the runs that it has had.  of: the most runs it may have; None is unknown."""

    def __init__(self, of: int | None) -> None:
        self.of, self.done = of, 0
        self._took_s: list[float] = []

    def ended(self, took_s: float | None) -> None:
        """A run has ended; None: it was measured before."""
        self.done += 1
        if took_s is not None:
            self._took_s.append(took_s)

    def left_s(self, begun_s: float, phase_left_s: float | None) -> float | None:
        """*begun_s*: monotonic, when the run under way began."""
        if self.of is None:
            return None
        so_far_s = time.monotonic() - begun_s
        if self._took_s:
            each_s = sum(self._took_s) / len(self._took_s)
            own_s = max(0.0, each_s - so_far_s) if phase_left_s is None else phase_left_s
        elif phase_left_s is not None:
            each_s, own_s = so_far_s + phase_left_s, phase_left_s
        else:
            return None
        return own_s + each_s * max(0, self.of - self.done - 1)


class RunPlace:
    """The place of a run that begins now, see :class:`aiperf.run.place.Place`.  *write*: makes the manifest of its journal."""

    def __init__(
        self, study_id: str, number: int, label: str, left: TimeLeft, carried_over: int, said: set[str],
        write: Callable[[Plan, Path], None],
    ) -> None:  # fmt: skip
        self.study_id, self.carried_over, self.said = study_id, carried_over, said
        self._number, self._label, self._left, self._write = number, label, left, write
        self._begun_s = time.monotonic()

    def progress(self, left_s: float | None) -> CellProgress:
        return CellProgress(self._number, self._left.of, self._label, self._left.left_s(self._begun_s, left_s))

    def closed(self, plan: Plan, journal: Path) -> None:
        self._write(plan, journal)
