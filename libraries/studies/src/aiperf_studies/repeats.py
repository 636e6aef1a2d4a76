"""What repeats of one load say of the way they were made."""

from __future__ import annotations

import math
from collections.abc import Sequence

from aiperf.sdk.study import Objective
from aiperf.sdk.verdict import LIKELY, Finding, FindingLevel

from aiperf_studies.cells import CellNumbers
from aiperf_studies.student import student_quantile

_LEVEL = 0.95
"""The share of equal runs whose first one lies below the bound."""
_LEAST_SHARE = 0.05
"""A first run that is slower by less is not worth a word."""
_STATISTICS = (Objective("time_to_first_token", "p50", maximize=False), Objective("request_latency", "p50", maximize=False))


def warm_repeats(cells: Sequence[CellNumbers]) -> Finding | None:
    """A finding where later repeats are faster than the first by more than their own spread allows.

    Of a cell whose runs have one seed, and so the same prompts, the first run's median time to the first token (latency where
    answers came whole) lies above the 95 % prediction bound of the later ones, and at least 5 % above their mean.  It takes
    three successful runs; the cell with the largest difference is named.
    """
    found = [(share, cell, first, later) for cell in cells for share, first, later in _warm(cell)]
    if not found:
        return None
    _, cell, first, later = max(found, key=lambda each: (each[0], -each[1].cell.index))
    where = f"{cell.cell.name}: " if cell.cell.name else ""
    more = f", and in {len(found) - 1} more cells" if len(found) > 1 else ""
    what = "time to first token" if _stat(cell) is _STATISTICS[0] else "latency"
    return Finding(
        kind="warm_repeats",
        level=FindingLevel.ADVICE,
        sentence=(
            f"{where}the first run's median {what} is {first:.4g} ms, and {later:.4g} ms on average in later ones{more}: all "
            "runs send the same prompts, and later ones may find them in the server's prefix cache; "
            "--vary-seed-per-trial gives each run other prompts, --cache-bust marks each request"
        ),
        confidence=LIKELY,
        numbers={"first_ms": first, "later_ms": later, "cells": len(found)},
    )


def _stat(cell: CellNumbers) -> Objective:
    good = [run.summary for run in cell.good if run.summary is not None]
    return _STATISTICS[0] if all(_STATISTICS[0].of(summary) is not None for summary in good) else _STATISTICS[1]


def _warm(cell: CellNumbers) -> list[tuple[float, float, float]]:
    """Share, first value and mean of the later ones, where the first run is slower than later ones; else nothing."""
    good = cell.good
    if len(good) < 3 or good[0].trial != 1 or len({run.seed for run in good}) > 1:
        return []
    statistic = _stat(cell)
    values = [value for run in good if run.summary is not None and (value := statistic.of(run.summary)) is not None]
    if len(values) < len(good):
        return []
    first, *later = values
    count = len(later)
    mean = math.fsum(later) / count
    std = math.sqrt(math.fsum((value - mean) ** 2 for value in later) / (count - 1))
    bound = mean + student_quantile(_LEVEL, count - 1) * std * math.sqrt(1 + 1 / count)
    share = first / mean - 1 if mean > 0 else 0.0
    return [(share, first, mean)] if first > bound and share >= _LEAST_SHARE else []
