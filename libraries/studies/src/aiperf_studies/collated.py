"""The requests of all runs of a cell together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from aiperf.sdk.study import Study

from aiperf_studies.cells import CellNumbers
from aiperf_studies.documents import _counts

if TYPE_CHECKING:
    from numpy.typing import NDArray

SCHEMA_VERSION = "1.0.0"
_PERCENTILES = (50, 90, 95, 99)
DESCRIPTION = (
    "Values of single requests, of all runs together: statistics of one large sample, where "
    "profile_export_aiperf_aggregate.json has statistics over the runs' own."
)

Columns = Mapping[str, "NDArray[np.float64]"]
"""Of a run's good requests, by metric; NaN where a request has none."""


def collated_document(study: Study, cell: CellNumbers, columns: Sequence[Columns]) -> dict[str, Any]:
    """``profile_export_aiperf_collated.json``; *columns*: of each of the cell's successful runs."""
    metrics = {}
    for tag in sorted({tag for run in columns for tag in run}):
        values = [_finite(run.get(tag)) for run in columns]
        pooled = np.concatenate(values)
        if len(pooled):
            labelled = [(run.label, each) for run, each in zip(cell.good, values, strict=True) if len(each)]
            alone = [{"label": label, "mean": float(np.mean(each)), "count": len(each)} for label, each in labelled]
            metrics[tag] = {"combined": _combined(pooled), "per_run": alone}
    return {
        "schema_version": SCHEMA_VERSION, "aiperf_version": study.version, "description": DESCRIPTION,
        "metadata": {**_counts("detailed", cell.runs), "run_labels": [run.label for run in cell.good]}, "metrics": metrics,
    }  # fmt: skip


def _finite(column: NDArray[np.float64] | None) -> NDArray[np.float64]:
    return np.empty(0) if column is None else column[np.isfinite(column)]


def _combined(values: NDArray[np.float64]) -> dict[str, Any]:
    percentiles = dict(zip((f"p{each}" for each in _PERCENTILES), np.percentile(values, _PERCENTILES).tolist(), strict=True))
    spread = float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
    return {"mean": float(np.mean(values)), "std": spread, **percentiles, "count": len(values)}
