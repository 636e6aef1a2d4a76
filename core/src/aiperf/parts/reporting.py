"""Making the results of a run again."""

from __future__ import annotations

from aiperf.registry.third_party import made
from aiperf.rundir.artifacts import (
    READY_FILE,
    export,
    exporters,
    mark_ready,
    part_path,
    print_footer,
    run_summary_exporters,
    target_for,
)
from aiperf.rundir.reducing import report

__all__ = [
    "READY_FILE", "export", "exporters", "made", "mark_ready", "part_path", "print_footer", "report",
    "run_summary_exporters", "target_for",
]  # fmt: skip
