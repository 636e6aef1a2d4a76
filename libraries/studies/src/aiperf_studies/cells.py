"""What the runs of each cell say together: a row for each statistic of each metric."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from aiperf.sdk.statistics import percentile
from aiperf.sdk.study import Study, StudyCell, StudyRun
from aiperf.sdk.summary import STATISTICS, Result
from msgspec import Struct

from aiperf_studies.confidence import Confidence, confidence
from aiperf_studies.student import student_quantile

if TYPE_CHECKING:
    from numpy.typing import NDArray

_STATISTICS = frozenset(STATISTICS)
_FEW = 8
"""Rows up to which they are made one by one."""


class CellNumbers(Struct, frozen=True):
    """A cell's runs, by trial, and what the successful ones say.

    rows: by ``<tag>_<stat>``, sorted; empty where no run succeeded.
    """

    cell: StudyCell
    runs: tuple[StudyRun, ...]
    rows: dict[str, Confidence]

    @property
    def good(self) -> tuple[StudyRun, ...]:
        """The successful runs."""
        return tuple(run for run in self.runs if run.summary is not None)

    @property
    def suspect(self) -> tuple[StudyRun, ...]:
        """Successful runs whose numbers may be wrong: the verdict is ``suspect``, or requests of the run before may have been
        in the server's queue."""
        return tuple(
            run for run in self.runs
            if run.summary is not None and (run.summary.measurement.verdict == "suspect" or run.carried_over)
        )  # fmt: skip

    def mean(self, key: str) -> float | None:
        """The mean of ``<tag>_<stat>``; None where no run has it."""
        row = self.rows.get(key)
        return None if row is None else row.mean


def numbers_of(study: Study) -> tuple[CellNumbers, ...]:
    """The numbers of each cell with runs, by index."""
    by_cell: dict[int, list[StudyRun]] = {}
    for run in study.runs:
        by_cell.setdefault(run.cell.index, []).append(run)
    found = []
    for index in sorted(by_cell):
        runs = tuple(sorted(by_cell[index], key=lambda run: run.trial))
        results = [run.summary.results for run in runs if run.summary is not None]
        found.append(CellNumbers(runs[0].cell, runs, rows_of(results, study.confidence_level)))
    return tuple(found)


def rows_of(runs: Sequence[Mapping[str, Result]], level: float) -> dict[str, Confidence]:
    """The rows of successful runs, each its results by tag; a statistic counts the runs that have it."""
    tables = [dict(_values(results)) for results in runs]
    units = {tag: result.unit for results in reversed(runs) for tag, result in results.items()}
    keys = sorted({key for table in tables for key in table}, key=lambda key: f"{key[0]}_{key[1]}")
    whole = keys if len(tables) == 1 else [key for key in keys if all(key in table for table in tables)]
    values, whole_units = [[table[key] for key in whole] for table in tables], [units[tag] for tag, _ in whole]
    made = dict(zip(whole, _rows(values, whole_units, level), strict=True)) if whole else {}
    for tag, stat in keys:
        if (tag, stat) not in made:
            made[tag, stat] = confidence([table[tag, stat] for table in tables if (tag, stat) in table], level, units[tag])
    return {f"{tag}_{stat}": made[tag, stat] for tag, stat in keys}


def _values(results: Mapping[str, Result]) -> Iterator[tuple[tuple[str, str], float]]:
    for tag, result in results.items():
        for stat, value in result.stats.items():
            if math.isfinite(value) and (stat in _STATISTICS or (stat[0] == "p" and percentile(stat) is not None)):
                yield (tag, stat), value


def _rows(values: list[list[float]], units: list[str], level: float) -> list[Confidence]:
    """The rows of statistics that all runs have: *values* by run and statistic, *units* by statistic."""
    count = len(values)
    if count == 1:
        alone = zip(values[0], units, strict=True)
        return [Confidence(value, 0.0, value, value, 0.0, 0.0, value, value, None, unit) for value, unit in alone]
    if len(values[0]) <= _FEW:
        return [confidence(each, level, unit) for *each, unit in zip(*values, units, strict=True)]
    import numpy as np

    table = np.sort(np.array(values), axis=0)  # sorted, so that the order of the runs changes no number
    least, most = table[0], table[-1]
    mean = np.clip(table.sum(axis=0) / count, least, most)
    std = np.sqrt(((table - mean) ** 2).sum(axis=0) / (count - 1))
    se, t = std / math.sqrt(count), student_quantile((1 + level) / 2, count - 1)
    columns = (mean, std, least, most, _shares(std, mean), se, mean - t * se, mean + t * se, np.full(len(mean), t))
    return [Confidence(*numbers) for numbers in zip(*(column.tolist() for column in columns), units, strict=True)]


def _shares(std: NDArray, mean: NDArray) -> NDArray:  # type: ignore[type-arg]
    import numpy as np

    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(mean == 0, math.inf, std / np.abs(mean))
