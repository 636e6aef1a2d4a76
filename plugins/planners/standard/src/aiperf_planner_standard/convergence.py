"""Whether the runs of a cell agree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from aiperf.sdk.study import Objective, StudyRun
from aiperf_studies.confidence import confidence

from aiperf_planner_standard.options import ConvergenceMode, ConvergenceOptions

if TYPE_CHECKING:
    from aiperf.sdk.columns import Floats

NO_PROOF = "a p value above the threshold doesn't prove that runs are equal: few or noisy requests agree with anything"


class Convergence:
    """The early end of a cell's repeats; *level* is of the confidence interval."""

    def __init__(self, options: ConvergenceOptions, level: float) -> None:
        self._options, self._level = options, level
        self._columns: dict[str, Floats] = {}

    def reached(self, runs: Sequence[StudyRun]) -> str | None:
        """What is reached after these runs of a cell, by trial: ``cv of … is …``; None where they don't agree yet.

        Failed runs count for nothing.
        """
        metric, limit = self._options.metric or "", self._options.limit
        good = [run for run in runs if run.summary is not None]
        if len(good) < self._options.min_runs:
            return None
        if self._options.mode is ConvergenceMode.DISTRIBUTION:
            return self._alike(good, metric, limit)
        values = self.values(good)
        if len(values) < self._options.min_runs:
            return None
        row = confidence(values, self._level)
        wide = self._options.mode is ConvergenceMode.CI_WIDTH
        size, what = (row.width, "the interval of") if wide else (row.cv, "the coefficient of variation of")
        named = f"{what} {metric} {self._options.stat}"
        return f"{named} is {size:.3g}{' of its mean' if wide else ''}, below {limit:g}" if size < limit and row.mean else None

    def values(self, runs: Sequence[StudyRun]) -> list[float]:
        """The statistic of each run that has it."""
        statistic = Objective(self._options.metric or "", self._options.stat, maximize=False)
        found = (statistic.of(run.summary) for run in runs if run.summary is not None)
        return [value for value in found if value is not None]

    def _alike(self, good: Sequence[StudyRun], metric: str, limit: float) -> str | None:
        import numpy as np
        from aiperf_studies.kolmogorov import ks_p_value

        last, before = self._column(good[-1], metric), [self._column(run, metric) for run in good[:-1]]
        pooled = np.concatenate(before)
        if not len(last) or not len(pooled):
            return None
        p = ks_p_value(last, pooled)
        if p <= limit:
            return None
        return f"the last run's {metric} and those of the runs before differ with p = {p:.3g}, above {limit:g}; {NO_PROOF}"

    def _column(self, run: StudyRun, metric: str) -> Floats:
        """The metric's finite values of a run's good requests, read once."""
        key = str(run.directory)
        if key not in self._columns:
            import numpy as np
            from aiperf_results import open_run

            column = open_run(run.directory).column(metric)
            self._columns[key] = column[np.isfinite(column)]
        return self._columns[key]
