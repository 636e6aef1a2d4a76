"""A study: several runs that one command makes, as repeats of one load or cells of a sweep.

A *cell* is one combination of values; each run of it is a *trial*.  Values are plain JSON values.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec import Struct

from aiperf.sdk.statistics import percentile
from aiperf.sdk.summary import Summary

if TYPE_CHECKING:
    Setting: TypeAlias = "bool | int | float | str | list[Setting] | dict[str, Setting] | None"
    """A value of a dimension."""
else:
    Setting = Any  # msgspec, which reads manifests, knows no type that is made of itself


class StudyCell(Struct, frozen=True):
    """One combination of values.

    index: from 0, in the order in which the cells were planned.  parameters: by :attr:`Dimension.key`, or by path for what a
    scenario changes.  name: its directory, unique in the study and safe as a path (``concurrency_10__rate_5``); "" for the one
    cell of a study without dimensions.  label: for people.
    """

    index: int
    parameters: dict[str, Setting]
    name: str = ""
    label: str = ""


class StudyRun(Struct, frozen=True):
    """One run of a cell that has ended.

    trial: from 1.  directory: its run directory.  seed: of its draws.
    summary: None where the run failed; *failed* says why.  carried_over: requests of the run before that were aborted and may
    have been in the server's queue when it began.  resumed: it was measured by an earlier command.
    begin_ns, end_ns: wall clock of its load; 0 where it had none.
    """

    cell: StudyCell
    trial: int
    directory: Path
    seed: int
    summary: Summary | None = None
    failed: str = ""
    carried_over: int = 0
    resumed: bool = False
    begin_ns: int = 0
    end_ns: int = 0

    @property
    def label(self) -> str:
        """``run_0001``, ``concurrency_10`` or ``concurrency_10/trial_0001``."""
        trial = f"{'trial' if self.cell.name else 'run'}_{self.trial:04d}"
        return f"{self.cell.name}/{trial}" if self.cell.name else trial


class Dimension(Struct, frozen=True):
    """A quantity that differs between cells.

    path: its place in a configuration file below ``benchmark`` (``dataset.prompts.isl.mean``, ``variables.x``), or that of its
    option.  key: its name in parameters and directories, the last segment of *path*, or the whole where two share that.
    values: in the order given; () for a range or a draw among *choices*.
    low, high: inclusive bounds of a range.  scale: ``linear`` or ``log``.  kind: ``real`` or ``int``.
    """

    path: str
    key: str
    values: tuple[Setting, ...] = ()
    low: float | None = None
    high: float | None = None
    scale: str = "linear"
    kind: str = "real"
    choices: tuple[Setting, ...] = ()


class Scenario(Struct, frozen=True):
    """A named cell of a sweep; parameters: by path, see :attr:`Dimension.path`."""

    name: str
    parameters: dict[str, Setting]


class Objective(Struct, frozen=True):
    """What a better cell has more or less of: a statistic of a metric's results."""

    tag: str
    stat: str
    maximize: bool

    def of(self, summary: Summary) -> float | None:
        """The value in the metric's display unit; None where the run lacks it."""
        result = summary.results.get(self.tag)
        return None if result is None else result.stats.get(self.stat)

    @classmethod
    def parsed(cls, text: str) -> Objective:
        """The objective of ``TAG:STAT:max`` or ``TAG:STAT:min``.

        Raises:
            ValueError: The text has another form; the message completes a sentence that begins with the option.
        """
        tag, _, rest = text.partition(":")
        stat, _, way = rest.partition(":")
        if not tag or way not in ("max", "min") or not _is_statistic(stat):
            raise ValueError("must be TAG:STAT:max or TAG:STAT:min, for example time_to_first_token:p99:min")
        return cls(tag, stat, way == "max")


class SlaFilter(Struct, frozen=True):
    """What a cell must hold to count among the best: the mean of a statistic over its runs, in the display unit.

    op: ``lt``, ``le``, ``gt`` or ``ge``: the mean is less than the threshold, at most it, more than it, or at least it.
    """

    tag: str
    stat: str
    op: str
    threshold: float

    def holds(self, mean: float) -> bool:
        """Whether a cell with this mean does."""
        below, same = mean < self.threshold, mean == self.threshold
        return {"lt": below, "le": below or same, "gt": not below and not same, "ge": not below}[self.op]

    def __str__(self) -> str:
        return f"{self.tag}:{self.stat}:{self.op}:{self.threshold:g}"

    @classmethod
    def parsed(cls, text: str) -> SlaFilter:
        """The filter of ``TAG:STAT:lt|le|gt|ge:NUMBER``.

        Raises:
            ValueError: The text has another form; the message completes a sentence that begins with the option.
        """
        tag, stat, op, number, *more = [*text.split(":"), "", "", ""]
        try:
            threshold = float(number)
        except ValueError:
            threshold = math.nan
        good = bool(tag) and _is_statistic(stat) and op in ("lt", "le", "gt", "ge") and math.isfinite(threshold)
        if not good or any(more):
            raise ValueError("must be TAG:STAT:OP:NUMBER with lt, le, gt or ge, for example time_to_first_token:p95:lt:200")
        return cls(tag, stat, op, threshold)


def _is_statistic(name: str) -> bool:
    return name in ("avg", "min", "max", "sum", "std", "count") or percentile(name) is not None


class Study(Struct, frozen=True):
    """All runs of a study.

    directory: of the study, with those of its runs below.  runs: in the order in which they ended; resumed ones count.
    planner: what planned it (``grid``).  dimensions, scenarios: its space.  trials: most runs of a cell.
    order: with several trials of several cells, ``repeated`` (all cells, then all again) or ``independent`` (all trials of a
    cell, then the next cell).
    objectives: of the user; () where none were named.  complete: whether all that was planned has run; *reason* says why not,
    or why the planner ended early.  command: as typed, secrets redacted.  config: options that all runs share, by section.
    design: what the planner drew (:meth:`aiperf.sdk.planner.Planner.design`), None where nothing was.
    sla_filters: of the user; all of them must hold.
    """

    study_id: str
    version: str
    directory: Path
    runs: tuple[StudyRun, ...]
    planner: str = ""
    dimensions: tuple[Dimension, ...] = ()
    scenarios: tuple[Scenario, ...] = ()
    trials: int = 1
    order: str = "repeated"
    confidence_level: float = 0.95
    cooldown_s: float = 0.0
    objectives: tuple[Objective, ...] = ()
    complete: bool = True
    reason: str = ""
    command: str = ""
    config: dict[str, Setting] = {}
    design: dict[str, Setting] | None = None
    sla_filters: tuple[SlaFilter, ...] = ()

    @property
    def sweeps(self) -> bool:
        """Whether it has cells, and not repeats of one load alone."""
        return bool(self.dimensions or self.scenarios)

    @property
    def cells(self) -> tuple[StudyCell, ...]:
        """The cells with runs, by index."""
        return tuple(sorted({run.cell.index: run.cell for run in self.runs}.values(), key=lambda cell: cell.index))

    def runs_of(self, cell: StudyCell) -> tuple[StudyRun, ...]:
        """The runs of a cell, by trial."""
        return tuple(sorted((run for run in self.runs if run.cell.index == cell.index), key=lambda run: run.trial))

    def aggregate_of(self, cell: StudyCell) -> Path:
        """The directory of what the trials of a cell have in common."""
        if self.trials > 1 and self.order == "independent" and cell.name:
            return self.directory / cell.name / "aggregate"
        return self.directory / "aggregate" / cell.name

    @property
    def aggregate_of_cells(self) -> Path:
        """The directory of what the cells have in common."""
        repeated = self.trials > 1 and self.order == "repeated"
        return self.directory / "aggregate" / "sweep_aggregate" if repeated else self.directory / "sweep_aggregate"


__all__ = ["Dimension", "Objective", "Scenario", "Setting", "SlaFilter", "Study", "StudyCell", "StudyRun"]
