"""Reading the results of finished runs: this program's directories and the reference's (AIPerf 0.7 to 0.13).

>>> run = open_run("artifacts/my-run")
>>> run.number("request_latency", "p99"), run.column("time_to_first_token")
>>> study = open_study("artifacts/my-sweep")
>>> study.table(["request_throughput_avg", "time_to_first_token_p99"]).csv()

The names are those of a library, and loaded when they are used, as in the door ``aiperf`` itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiperf.doors import door
from aiperf.foreign import RESULTS

__all__ = [
    "CellRuns", "FinishedCell", "FinishedRun", "FinishedStudy", "FinishedTrial", "StudyTable", "Table", "TelemetrySeries",
    "is_study", "metrics_of", "open_cells", "open_run", "open_runs", "open_study",
]  # fmt: skip

__getattr__ = door(__name__, {}, packages=dict.fromkeys(__all__, RESULTS))

if TYPE_CHECKING:
    from aiperf_results import (
        CellRuns,
        FinishedCell,
        FinishedRun,
        FinishedStudy,
        FinishedTrial,
        StudyTable,
        Table,
        TelemetrySeries,
        is_study,
        metrics_of,
        open_cells,
        open_run,
        open_runs,
        open_study,
    )
