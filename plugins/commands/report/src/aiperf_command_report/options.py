"""Options of ``aiperf report``."""

from __future__ import annotations

from pathlib import Path

from aiperf.sdk.options import Finite, Options, option
from aiperf.sdk.plan import ExportLevel
from aiperf.sdk.statistics import Columns, Percentiles


class ReportOptions(Options):
    as_json: bool = option("--json", default=False, help="Print the summary as JSON to standard output; write no files.")
    html: bool = option(
        "--html",
        default=False,
        help="Write one page that needs no network, with figures and all tables, to --output; several runs stand side by side.",
    )
    baseline: Path | None = option(
        "--baseline", metavar="DIR", shown="the first", help="With --html, the run that the others are compared with."
    )
    definitions: bool = option(
        "--definitions",
        default=False,
        help="Print latency and throughput as several tools define them, side by side; files are written to --output alone.",
    )
    slice_duration_s: Finite | None = option(
        "--slice-duration",
        gt=0,
        metavar="SECONDS",
        shown="the run's own",
        help="Report every so many seconds of the profiling phase apart, too.",
    )
    percentiles: Percentiles = option(
        "--percentiles",
        default=[],
        metavar="PERCENT",
        shown="the run's own",
        help="Percentiles in the report and the CSV files, such as 50,90,99.9; the JSON files have them beside the usual ones.",
    )
    columns: Columns = option(
        "--columns",
        default=[],
        metavar="NAME",
        shown="the run's own",
        help="Columns of the report's tables and of the CSV files: avg, min, max, sum, std, count, and percentiles as p99.",
    )
    export_level: ExportLevel | None = option(
        "--export-level",
        metavar="LEVEL",
        shown="the run's own",
        help="Files to write: summary, records (per-request files, made from the stored columns), or raw, if the run kept it.",
    )
    accuracy_grader: str | None = option(
        "--accuracy-grader",
        metavar="NAME",
        shown="the run's own grades",
        help="Grade the answers again with this installed grader; a run with a grader, or with --export-level raw, kept them.",
    )
    grading_processes: int | None = option(
        "--grading-processes",
        ge=1,
        le=256,
        metavar="INT",
        shown="the run's own",
        help="Answers that a slow grader grades at a time.",
    )
    grading_timeout_s: Finite | None = option(
        "--grading-timeout",
        gt=0,
        metavar="SECONDS",
        shown="the run's own",
        help="Longest time for a slow grader to grade the answers that have no grade yet.",
    )
    verbose: bool = option(
        "--verbose",
        "-v",
        default=False,
        help="Print every table, also of a run that was made without -v.",
    )
    output: Path | None = option(
        "--output",
        metavar="PATH",
        shown="the run's own",
        help="Directory to write the results to; with --html the file, report.html in the first directory by default.",
    )
