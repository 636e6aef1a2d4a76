"""Making the results of a run again: what ``aiperf report`` needs of the kernel.

The names come from rooms above this one, so they are loaded when a command uses them, as in the door ``aiperf`` itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiperf.doors import door

_WHERE = {
    "registry.third_party": "made", "rundir.reducing": "report",
    "rundir.artifacts": "READY_FILE export exporters mark_ready part_path print_footer run_summary_exporters target_for",
}  # fmt: skip

__all__ = [
    "READY_FILE", "export", "exporters", "made", "mark_ready", "part_path", "print_footer", "report", "run_summary_exporters",
    "target_for",
]  # fmt: skip

__getattr__ = door(__name__, _WHERE)

if TYPE_CHECKING:
    from aiperf.registry.third_party import made
    from aiperf.rundir.artifacts import (  # isort: skip
        READY_FILE, export, exporters, mark_ready, part_path, print_footer, run_summary_exporters, target_for,
    )  # fmt: skip
    from aiperf.rundir.reducing import report
