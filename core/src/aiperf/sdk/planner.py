"""The contract of planners: a space and finished runs in, the next runs out.

A planner lists the cells of a sweep, or searches among them.  It is asked in the parent process, between loads: when the runs
that it proposed have ended, it proposes further ones or says why there are none.  The same space, seed and finished runs give
the same answer: a study that was broken off asks again from its beginning, and runs only what is missing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from aiperf.sdk.options import OptionsT, WithOptions
from aiperf.sdk.study import Dimension, Objective, Scenario, Setting, SlaFilter, StudyCell, StudyRun


class Space(Struct, frozen=True):
    """What a planner plans in.

    dimensions: lists of values, ranges and choices, in the order given.  scenarios: named cells.
    trials: runs that each cell may have, at least 1.  order: ``repeated`` or ``independent``, see
    :class:`aiperf.sdk.study.Study`.
    seed: of the planner's draws (:mod:`aiperf.sdk.draws`).  objectives, sla_filters: of the user.
    confidence_level: of intervals over trials.  export_level: of the runs, one of :data:`aiperf.sdk.exporter.LEVELS`; at
    ``summary`` a run has no file of its requests.
    settings: keys of the file's ``sweep`` section that belong to the planner (``samples``, ``scramble``), in snake_case.
    """

    dimensions: tuple[Dimension, ...] = ()
    scenarios: tuple[Scenario, ...] = ()
    trials: int = 1
    order: str = "repeated"
    seed: int = 0
    objectives: tuple[Objective, ...] = ()
    confidence_level: float = 0.95
    export_level: str = "records"
    settings: Mapping[str, Any] = {}
    sla_filters: tuple[SlaFilter, ...] = ()


class PlannedTrial(Struct, frozen=True):
    """A run to make: the trial of a cell, from 1."""

    cell: StudyCell
    trial: int = 1


class PlanEnd(Struct, frozen=True):
    """The end of a plan; reason: why it ended before the most runs it could have had, "" where it didn't."""

    reason: str = ""


class Planner(WithOptions[OptionsT]):
    """Plans the runs of a study.  options: the planner's own (None where it declares none).

    The manifest's capability ``settings`` lists the keys of a file's ``sweep`` section that it takes (``[samples, scramble]``).

    Raises:
        ConfigError: The space is not one that it can plan in; the message names the options or keys.
    """

    space: Space
    reads_files: bool = False
    """Whether :meth:`next` reads files of finished runs: these are written before it is asked, and else when there is time."""

    def __init__(self, space: Space, options: OptionsT = None) -> None:  # type: ignore[assignment]  # None where it declares none
        super().__init__(options)
        self.space = space

    def next(self, finished: Sequence[StudyRun]) -> Sequence[PlannedTrial] | PlanEnd:
        """The next runs, at least one, in their order; or the end.

        *finished*: all runs so far in the order in which they ended, failed ones too.  A cell keeps its index, name and
        parameters from proposal to proposal.
        """
        raise NotImplementedError(f"{type(self).__name__} must define next(finished)")

    def most(self) -> int | None:
        """The most runs that the plan can have, for displays and for ``--max-cells``; None where that isn't known."""
        raise NotImplementedError(f"{type(self).__name__} must define most()")

    def design(self) -> dict[str, Setting] | None:
        """What was drawn, for :attr:`aiperf.sdk.study.Study.design`; None where nothing was."""
        return None


__all__ = ["PlanEnd", "PlannedTrial", "Planner", "Space"]
