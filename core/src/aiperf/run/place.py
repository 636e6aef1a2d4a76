"""The place of a run among those of a study."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from aiperf.run.start import Outcome
    from aiperf.sdk.plan import Plan
    from aiperf.sdk.snapshot import CellProgress
    from aiperf.sdk.summary import Summary


class Place(Protocol):
    """What a run of a study asks of it, and tells it.

    carried_over: requests of the run before that were aborted and may be in the server's queue still.
    study_id: of the study.  said: the warnings that were printed so far; each is printed once.
    """

    said: set[str]
    study_id: str

    @property
    def carried_over(self) -> int: ...

    def progress(self, left_s: float | None) -> CellProgress:
        """For displays.  *left_s*: time left of the phase, None where that isn't known."""

    def closed(self, plan: Plan, journal: Path) -> None:
        """The load is over, nothing cut it short, and all that was observed is in the journal; results follow."""


class Executed(NamedTuple):
    """A run that has ended: its summary and exit code.  fault: why its results don't count, "" where they do; the exit code
    may still be 1, because a file is missing."""

    summary: Summary
    code: int
    fault: str = ""


def tell_closed(place: Place | None, plan: Plan, journal: Path, outcome: Outcome) -> None:
    """Tell the study of a run that nothing cut short."""
    if place is not None and not outcome.cut and outcome.incomplete is None:
        place.closed(plan, journal)
