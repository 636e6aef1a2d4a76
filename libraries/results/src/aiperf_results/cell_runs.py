"""The runs that somebody names: alone, or as the cells of a study, whose repeats are one."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aiperf.sdk.errors import AiperfError
from aiperf.sdk.plot import PlotRun, TelemetrySeries

from aiperf_results.finished_run import FinishedRun, open_runs, unfinished
from aiperf_results.finished_study import FinishedCell, is_study, open_study
from aiperf_results.table import Table

if TYPE_CHECKING:
    from aiperf.sdk.columns import Floats, RecordBatch

_LOADS = ("concurrency", "request_rate", "rate", "num_users", "user_centric_rate", "users", "prefill_concurrency")
"""Parameters of a cell that are its load; the others are its group."""


class CellRuns(PlotRun):
    """The good repeats of a cell of a study as one run: statistics are means over them, requests are those of all.

    group: the cell's parameters beside the load.  Slices and series of telemetry are those of the first repeat.
    """

    def __init__(self, label: str, runs: Sequence[FinishedRun], group: str = "") -> None:
        super().__init__(label, {})
        self._runs, self.group = list(runs), group

    @property
    def summary(self) -> Mapping[str, Any]:
        return self._runs[0].summary

    def parts(self) -> Sequence[PlotRun]:
        return self._runs

    def number(self, tag: str, statistic: str = "avg") -> float | None:
        """The mean of a metric's statistic over the repeats that have it; None where none has."""
        import math

        values = [value for run in self._runs if (value := run.number(tag, statistic)) is not None]
        return math.fsum(values) / len(values) if values else None

    def expect(self, names: Iterable[str]) -> None:
        wanted = list(names)
        for run in self._runs:
            run.expect(wanted)

    def column(self, name: str) -> Floats:
        import numpy as np

        return np.concatenate([run.column(name) for run in self._runs])

    def requests(self, names: Collection[str] | None = None, *, failed: bool = False, lists: bool = False) -> Table:
        return Table.joined([run.requests(names, failed=failed, lists=lists) for run in self._runs])

    def arrivals(self) -> Table:
        return Table.joined([run.arrivals() for run in self._runs])

    def slices(self) -> list[dict[str, Any]]:
        return self._runs[0].slices()

    def telemetry(self) -> list[TelemetrySeries]:
        return self._runs[0].telemetry()

    def batches(self) -> Iterator[RecordBatch]:
        for run in self._runs:
            yield from run.batches()


def open_cells(paths: Sequence[Path]) -> list[PlotRun]:
    """The runs in these directories; the directory of a study is its cells, in their order, each named by its values.

    Raises:
        AiperfError: A path holds no results, or can't be looked into.
    """
    alone = [path for path in paths if not (path.is_dir() and is_study(path))]
    runs: dict[Path, PlotRun] = {run.directory.resolve(): run for run in (open_runs(alone) if alone else ())}
    studies = [path for path in paths if path not in alone]
    found = list(runs.values())
    for path in studies:
        study = open_study(path)
        cells = [cell for cell in study.cells if any(not run.failed for run in cell.runs)]
        if not cells:
            raise AiperfError(f"{path} has no cell with a run that succeeded", "aiperf studies says what became of each")
        before = f"{path.name}: " if len(paths) > 1 else ""
        found += [_cell(cell, before, path) for cell in cells]
    return found


def left_out(paths: Sequence[Path]) -> list[str]:
    """A sentence on each run in *paths* that :func:`open_cells` leaves out: it has no summary, or failed as part of a study."""
    studies = [path for path in paths if path.is_dir() and is_study(path)]
    found = unfinished([path for path in paths if path not in studies])
    for path in studies:
        found += [f"{run.directory} is left out: {run.failed}" for run in open_study(path).runs if run.failed]
    return found


def _cell(cell: FinishedCell, before: str, path: Path) -> CellRuns:
    runs = [run.run for run in cell.runs if not run.failed and run.run is not None]
    others = {name: value for name, value in cell.parameters.items() if name.rpartition(".")[2] not in _LOADS}
    group = ", ".join(f"{name} {value}" for name, value in others.items())
    return CellRuns(f"{before}{cell.name or path.name}", runs, group)
