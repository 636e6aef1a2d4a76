"""Reading the results of finished runs: this program's directories and the reference's (AIPerf 0.7 to 0.13).

>>> run = open_run("artifacts/my-run")
>>> run.number("request_latency", "p99"), run.column("time_to_first_token")
"""

from aiperf.sdk.plot import TelemetrySeries

from aiperf_results.cell_runs import CellRuns, left_out, open_cells
from aiperf_results.finished_run import FinishedRun, metrics_of, open_run, open_runs, unfinished
from aiperf_results.finished_study import FinishedCell, FinishedStudy, FinishedTrial, StudyTable, is_study, open_study
from aiperf_results.table import Table

__all__ = [
    "CellRuns", "FinishedCell", "FinishedRun", "FinishedStudy", "FinishedTrial", "StudyTable", "Table", "TelemetrySeries",
    "is_study", "left_out", "metrics_of", "open_cells", "open_run", "open_runs", "open_study", "unfinished",
]  # fmt: skip
