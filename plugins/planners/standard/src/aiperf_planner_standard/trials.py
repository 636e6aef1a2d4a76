"""The order of trials, and which of them are left out."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cached_property

from aiperf.sdk.errors import ConfigError
from aiperf.sdk.planner import PlanEnd, PlannedTrial, Planner, Space
from aiperf.sdk.study import StudyCell, StudyRun

from aiperf_planner_standard.convergence import Convergence
from aiperf_planner_standard.options import ConvergenceMode, ConvergenceOptions

_Done = dict[int, list[StudyRun]]
"""The finished runs of each cell, by trial."""


class ListedPlanner(Planner[ConvergenceOptions]):
    """Makes all cells of a list, each as often as the space says, or until its runs agree.

    In the order ``repeated`` come all cells, then all again; in the order ``independent`` all trials of a cell, then the next.
    """

    def __init__(self, space: Space, options: ConvergenceOptions | None = None) -> None:
        super().__init__(space, options or ConvergenceOptions())
        self._count = self.count()
        self._convergence: Convergence | None = None
        if self.options.metric is not None:
            self._convergence = Convergence(self.options, space.confidence_level)
            self._check(space)
        self.reads_files = self._convergence is not None and self.options.mode is ConvergenceMode.DISTRIBUTION

    def _check(self, space: Space) -> None:
        if space.trials < 2:
            why = "--convergence-metric needs several runs of a load, and --num-profile-runs is 1"
            raise ConfigError(why, "add --num-profile-runs with the most runs of a load, or drop --convergence-metric")
        if self.options.mode is ConvergenceMode.DISTRIBUTION and space.export_level == "summary":
            why = "--convergence-mode distribution compares the requests of runs, and --export-level summary writes none"
            raise ConfigError(why, "choose --export-level records, or --convergence-mode ci_width")
        if self.options.min_runs > space.trials:
            why = f"no load ends before {self.options.min_runs} runs, and --num-profile-runs is {space.trials}"
            raise ConfigError(why, "raise --num-profile-runs, lower --convergence-min-runs, or drop --convergence-metric")

    def count(self) -> int:
        """The number of cells, which aren't made for it.

        Raises:
            ConfigError: They can't be made of the space.
        """
        raise NotImplementedError(f"{type(self).__name__} must define count()")

    def listed(self) -> Sequence[StudyCell]:
        """All cells, in their order."""
        raise NotImplementedError(f"{type(self).__name__} must define listed()")

    @cached_property
    def cells(self) -> Sequence[StudyCell]:
        """All cells, made when they are first asked for."""
        return self.listed()

    def most(self) -> int:
        return self._count * self.space.trials

    def next(self, finished: Sequence[StudyRun]) -> Sequence[PlannedTrial] | PlanEnd:
        done: _Done = defaultdict(list)
        for run in finished:
            done[run.cell.index].append(run)
        for runs in done.values():
            runs.sort(key=lambda run: run.trial)
        for block in self._blocks(done):
            left = [each for each in block if each.trial not in {run.trial for run in done[each.cell.index]}]
            if left:
                return left
        return PlanEnd(self._reason(done))

    def _blocks(self, done: _Done) -> Iterator[list[PlannedTrial]]:
        """Runs that may be proposed together; of a later block, only when those before have ended."""
        trials = self.space.trials
        at_once = trials if self._convergence is None else min(self.options.min_runs, trials)
        independent = self.space.order == "independent"
        for cells in [[cell] for cell in self.cells] if independent else [list(self.cells)]:
            yield [PlannedTrial(cell, trial) for trial in range(1, at_once + 1) for cell in cells]
            for trial in range(at_once + 1, trials + 1):
                yield [PlannedTrial(cell, trial) for cell in cells if self._agreement(done[cell.index], trial) is None]

    def _agreement(self, runs: Sequence[StudyRun], trial: int) -> str | None:
        """What the runs of a cell before this trial have reached, after whichever of them; None where they don't agree."""
        if self._convergence is None:
            return None
        counts = range(self.options.min_runs, trial)
        reached = (self._convergence.reached([run for run in runs if run.trial <= count]) for count in counts)
        return next((each for each in reached if each is not None), None)

    def _reason(self, done: _Done) -> str:
        if self._convergence is None:
            return ""
        trials, metric = self.space.trials, f"{self.options.metric} {self.options.stat}"
        runs = [run for cell in self.cells for run in done[cell.index]]
        if self.options.mode is not ConvergenceMode.DISTRIBUTION and runs and not self._convergence.values(runs):
            return f"no run has {metric}, so that none of the loads could end early"
        early = {
            cell.index: reached
            for cell in self.cells
            if len(done[cell.index]) < trials and (reached := self._agreement(done[cell.index], trials)) is not None
        }
        if len(self.cells) == 1:
            (cell,) = self.cells
            return f"after {len(done[cell.index])} of {trials} runs {early[cell.index]}" if early else ""
        return f"{len(early)} of {len(self.cells)} cells ended early: {next(iter(early.values()))}" if early else ""
