"""Reading the results of finished runs: this program's directories and the reference's (AIPerf 0.7 to 0.13).

>>> run = open_run("artifacts/my-run")
>>> run.number("request_latency", "p99"), run.column("time_to_first_token")

The names are those of a library, and loaded when they are used, as in the door ``aiperf`` itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiperf.doors import door
from aiperf.foreign import RESULTS

__all__ = ["FinishedRun", "Table", "TelemetrySeries", "metrics_of", "open_run", "open_runs"]

__getattr__ = door(__name__, {}, packages=dict.fromkeys(__all__, RESULTS))

if TYPE_CHECKING:
    from aiperf_results import FinishedRun, Table, TelemetrySeries, metrics_of, open_run, open_runs
