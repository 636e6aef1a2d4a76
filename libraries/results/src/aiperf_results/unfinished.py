"""Directories of runs that have no summary: the run is going on, was broken off, or an aggregate alone is left."""

from __future__ import annotations

import fcntl
import re
from collections.abc import Iterator
from pathlib import Path

from aiperf.sdk.exporter import Target

AGGREGATE = "profile_export_aiperf_aggregate.json"
_ASIDE = re.compile(r"\.(half|failed|earlier)(-\d+)?$")
"""Ends of names of directories that were set aside."""


def is_aside(directory: Path) -> bool:
    """Whether the directory's name says that it was set aside for a later attempt."""
    return _ASIDE.search(directory.name) is not None


def lack(target: Target) -> tuple[str, str] | None:
    """Why a directory with files of a run has no summary, and what to do about it; None where it has no such files."""
    directory = target.directory
    if (directory / "journal" / "run.json").exists():
        if _is_held(directory / "journal" / "lock"):
            return "its run, or a report of it, is still going on", "wait until it is over"
        return "its run was broken off before it had a summary", f"aiperf report {directory} makes one of what was observed"
    if (path := target.file("jsonl")).is_file():
        return f"it has {path.name} and no {target.file('aiperf.json').name}", "copy all files of the run, or run it again"
    if aggregates := [*_aggregates(directory)]:
        why = f"it has an aggregate of runs alone ({aggregates[0].relative_to(directory)}), and none of the runs"
        return why, "give the directory in which profile_runs stands, too"
    return None


def _aggregates(directory: Path) -> Iterator[Path]:
    return (path for path in (directory / AGGREGATE, directory / "aggregate" / AGGREGATE) if path.is_file())


def _is_held(lock: Path) -> bool:
    """Whether a run, or a report, has the lock of a journal."""
    try:
        with lock.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:  # none was taken
        return False
    return False
