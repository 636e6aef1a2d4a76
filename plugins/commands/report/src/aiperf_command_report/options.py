"""What ``aiperf report`` can be told."""

from __future__ import annotations

from pathlib import Path

from aiperf.options import Options, option


class ReportOptions(Options):
    as_json: bool = option("--json", default=False, help="Print the summary as JSON to standard output; write no files.")
    output: Path | None = option("--output", metavar="DIR", shown="the run's own", help="Directory to write the results to.")
