"""The {{ cookiecutter.name }} planner: a list of values in their order, until a further one no longer pays."""

from __future__ import annotations

from collections.abc import Sequence

from aiperf.sdk.errors import ConfigError
from aiperf.sdk.planner import PlanEnd, PlannedTrial, Planner, Space
from aiperf.sdk.study import Objective, StudyCell, StudyRun

_GAIN = 1.05
"""What the throughput of a cell must be, as a multiple of that of the cell before, for another one to follow."""
_THROUGHPUT = Objective("request_throughput", "avg", maximize=True)


class {{ cookiecutter.__class }}(Planner):
    """Proposes one cell after the other; the plan is a function of the space and the finished runs, so a study can go on."""

    def __init__(self, space: Space, options: None = None) -> None:
        super().__init__(space, options)
        if len(space.dimensions) != 1 or not space.dimensions[0].values:
            raise ConfigError("--sweep-type {{ cookiecutter.__key }} takes one list", "such as --concurrency 1,2,4")
        (dimension,) = space.dimensions
        self.cells = [
            StudyCell(index, {dimension.key: value}, f"{dimension.key}_{index:02d}", f"{dimension.key}={value}")
            for index, value in enumerate(dimension.values)
        ]

    def next(self, finished: Sequence[StudyRun]) -> Sequence[PlannedTrial] | PlanEnd:
        done = {(run.cell.index, run.trial) for run in finished}
        before = 0.0
        for cell in self.cells:
            left = [trial for trial in range(1, self.space.trials + 1) if (cell.index, trial) not in done]
            if left:
                return [PlannedTrial(cell, trial) for trial in left]
            now = throughput([run for run in finished if run.cell.index == cell.index])
            if now < _GAIN * before:
                return PlanEnd(f"{cell.label} has {now:.1f} requests/s, after {before:.1f}")
            before = now
        return PlanEnd()

    def most(self) -> int:
        return len(self.cells) * self.space.trials


def throughput(runs: Sequence[StudyRun]) -> float:
    """The mean over the runs, in requests/s; 0 where none succeeded."""
    values = [_THROUGHPUT.of(run.summary) or 0.0 for run in runs if run.summary is not None]
    return sum(values) / len(values) if values else 0.0
