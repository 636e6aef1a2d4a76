"""The reducer of aiperf: journals to columns, columns to statistics, statistics to a summary.

The package's rooms, ground first: ``statistics`` (values to numbers), ``reduce`` (journal to columns), ``report`` (columns to a
summary) and ``results`` (finished runs, for tools).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aiperf import AiperfError, Plan
from aiperf.sdk.reducer import Reducer, ReducerJob, RunningReduction

from aiperf_reducer_columns.imported import imported

if TYPE_CHECKING:
    from aiperf import Endpoint, Summary
    from aiperf.parts.journal import RunClock


class Columns(Reducer[None]):
    """Reduces requests to columns of numbers, batch by batch, and folds them into statistics."""

    def check(self, plan: Plan, endpoint: Endpoint[Any]) -> None:
        """Refuses metrics whose options contradict each other."""
        from aiperf_reducer_columns.statistics.catalogue import catalogue

        catalogue(plan, endpoint)

    def preload(self, plan: Plan) -> None:
        """Import modules and read the tokenizer's table."""
        from aiperf.parts.tokenizers import open_tokenizer

        from aiperf_reducer_columns import running as _imported  # noqa: F401

        imported(plan.plugins.endpoint, *plan.plugins.metrics, *plan.plugins.exporters)
        with contextlib.suppress(AiperfError):  # the builder of the data set reports it
            open_tokenizer(plan)

    def begin(self, job: ReducerJob) -> RunningReduction:
        from aiperf_reducer_columns.running import ColumnsReduction

        return ColumnsReduction(job)

    def report(self, directory: Path, change: Callable[[Plan], Plan] | None = None) -> tuple[Summary, Plan, RunClock]:
        from aiperf_reducer_columns.report.report import report

        return report(directory, change)
