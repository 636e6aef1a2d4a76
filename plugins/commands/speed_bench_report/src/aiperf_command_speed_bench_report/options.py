"""Options of ``aiperf speed-bench-report``."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from aiperf import Options, option


class SpeedBenchReportOptions(Options):
    paths: list[Path] = option(
        "--paths", default=[], metavar="DIR", help="Directories of runs, or that hold some; the flag itself may be left out."
    )
    output: Path = option("--output", default=Path("speed_bench_report.csv"), metavar="FILE", help="CSV file to write.")
    format: Literal["csv", "table", "both"] = option(
        "--format", default="both", metavar="WORD", help="Write the CSV file, print a table, or both."
    )
    metric: Literal["accept_length", "accept_rate", "throughput"] = option(
        "--metric", default="accept_length", metavar="WORD", help="Number of a cell."
    )
