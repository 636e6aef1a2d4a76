"""CPU time of what many cells have in common: all files of a sweep, from summaries as large as those of a streaming chat run.

Prints a line: cells, statistics a cell, seconds of CPU, bytes.  ``python benchmarks/aggregates.py [CELLS]``
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from aiperf import Result, Target
from aiperf.sdk.study import Dimension, Study, StudyCell, StudyRun
from aiperf.sdk.summary import STATISTICS, Summary
from aiperf.testing import sample_summary
from aiperf_exporter_aggregate import Aggregate
from aiperf_studies.cells import numbers_of
from msgspec.structs import replace

_METRICS = 45
"""With all statistics; with 14 each that is what the reference has of a streaming chat run, 634."""
_CELLS = 1000
"""Where the command line says no number of them."""


def summary(cell: int, base: Summary) -> Summary:
    names = ("request_throughput", "request_latency", "time_to_first_token", *(f"metric_{n}" for n in range(_METRICS - 3)))
    results = {
        tag: Result(tag, tag, "ms", {name: 1.0 + cell / 7 + place / 3 + at for place, name in enumerate(STATISTICS)})
        for at, tag in enumerate(names)
    }
    return replace(base, results=results)


def main(cells: int) -> None:
    base = sample_summary()
    with tempfile.TemporaryDirectory() as folder:
        runs = tuple(
            StudyRun(StudyCell(n, {"concurrency": n}, f"concurrency_{n}"), 1, Path(folder), 42, summary(n, base))
            for n in range(cells)
        )
        dimensions = (Dimension("profiling.concurrency", "concurrency", tuple(range(cells))),)
        study = Study("x", "0", Path(folder), runs, "grid", dimensions)
        begin_s = time.process_time()
        written = Aggregate(Target(Path(folder))).export_study(study)
        took_s = time.process_time() - begin_s
        size = sum(file.path.stat().st_size for file in written)
        statistics = len(numbers_of(study)[0].rows)
    print(f"{cells} cells of {statistics} statistics: {took_s:.2f} s of CPU, {len(written)} files, {size:,} bytes")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else _CELLS)
