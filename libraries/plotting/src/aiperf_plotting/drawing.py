"""The figures of plots: columns read once, failures collected."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Mapping, Sequence

from aiperf import AiperfError, Figure, Plot, PlotRun
from aiperf.sdk.figures import reduced
from aiperf.sdk.plot import checked

Change = Callable[[Figure, Sequence[PlotRun]], Figure]


class Drawing:
    """Draws figures of *runs*, and collects a sentence on each run and plot that failed.

    asked: plots were named, so that one with nothing to show is a failure.  verbose: tracebacks go to standard error.
    change: applied to each figure before its points are reduced.
    """

    def __init__(
        self, runs: Sequence[PlotRun], *, asked: bool, verbose: bool = False, change: Change | None = None
    ) -> None:  # fmt: skip
        self.failures: list[str] = []
        self._change = change
        self._asked, self._verbose = asked, verbose
        self.runs = [run for run in runs if self._readable(run, ())]

    def figures(self, plots: Sequence[tuple[str, str, Plot]]) -> list[tuple[str, Figure]]:
        """Each plot's figure with its name; a plot comes with its name and its package."""
        fit = [plot for plot in plots if self._fits(*plot)]
        columns = dict.fromkeys(name for _, _, plot in fit for name in plot.columns)
        for run in self.runs:
            run.expect(columns)
        if columns:
            self.runs = [run for run in self.runs if self._readable(run, columns)]
        drawn = ((name, self._drawn(name, package, plot)) for name, package, plot in fit if len(self.runs) >= plot.runs)
        return [(name, figure) for name, figure in drawn if figure is not None]

    def _readable(self, run: PlotRun, columns: Sequence[str] | dict[str, None]) -> bool:
        """Whether the summary, and the columns, of a run can be read."""
        try:
            checked_summary(run)
            for name in list(columns)[:1]:  # all are read with the first
                run.column(name)
        except AiperfError as error:
            self.failures.append(f"the run {run.label} is left out: {_told(error)}")
            return False
        return True

    def _fits(self, name: str, package: str, plot: Plot) -> bool:
        count = len(self.runs)
        if count < plot.runs:
            lack = f"needs {plot.runs} runs; {counted(self.runs)} given: name further directories"
        elif plot.most_runs is not None and count > plot.most_runs:
            most = "one run" if plot.most_runs == 1 else f"at most {plot.most_runs} runs"
            lack = f"shows {most}; {counted(self.runs)} given: name fewer directories"
        else:
            return True
        if self._asked:
            self.failures.append(f"the plot {name} {lack}")
        return False

    def _drawn(self, name: str, package: str, plot: Plot) -> Figure | None:
        try:
            figure = plot.draw(self.runs)
            if figure is not None:
                figure = checked(figure)
                return reduced(figure if self._change is None else checked(self._change(figure, self.runs)))
        except AiperfError as error:
            self.failures.append(f"the plot {name}: {_told(error)}")
            return None
        except Exception as error:  # noqa: BLE001  # strangers' code
            if self._verbose:
                traceback.print_exc(file=sys.stderr)
            self.failures.append(f"the plot {name} of {package} failed: {type(error).__name__}: {error}")
            return None
        if self._asked:
            of = counted(self.runs)
            self.failures.append(f"the plot {name} finds nothing to show in {of}: the numbers it reads are not there")
        return None


def checked_summary(run: PlotRun) -> None:
    """Look at the form of a run's summary.

    Raises:
        AiperfError: A section is not as readers count on.
    """
    if (section := _misshapen(run)) is not None:
        raise AiperfError(f"{section} in its summary is not in the form that this program and the reference write")


def _misshapen(run: PlotRun) -> str | None:
    """The first section of the summary that readers count on and that has another form."""
    summary = run.summary
    for name in ("input_config", "measurement", "telemetry_data"):
        if not isinstance(summary.get(name, {}), Mapping):
            return name
    phases = summary.get("input_config", {}).get("phases", [])
    return None if isinstance(phases, list) and all(isinstance(each, Mapping) for each in phases) else "input_config.phases"


def _told(error: AiperfError) -> str:
    return "; ".join((error.message, *error.hints))


def counted(runs: Sequence[PlotRun]) -> str:
    return "one run" if len(runs) == 1 else f"{len(runs)} runs"
