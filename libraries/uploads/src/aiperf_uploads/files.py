"""Which files of a run are uploaded."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from msgspec import Struct

EXPORTS = ("*.json", "*.csv", "*.jsonl", "*.parquet", "*_timeslices.*")
"""Results, in the run's directory itself."""
PICTURES = tuple(f"**/*.{ending}" for ending in ("png", "svg", "jpg", "jpeg", "gif", "webp", "html"))
"""Pictures and pages, at any depth."""
_OURS = ("journal", "logs")
"""Directories that are no results."""
_AGGREGATES = ("aggregate", "aggregate/*", "*/aggregate", "sweep_aggregate")
"""Directories of a study's common files (:class:`aiperf.sdk.study.Study`)."""
_DRAWN = frozenset(pattern.rpartition(".")[2] for pattern in PICTURES)


class ExportedFile(Struct, frozen=True):
    """A file of a run.  name: below the run's directory, with slashes.  folder: ``exports`` or ``plots``."""

    path: Path
    name: str
    folder: str


def exported_files(directory: Path, patterns: Iterable[str] = (), leave: Iterable[str] = ()) -> list[ExportedFile]:
    """The files of a run that match one of the *patterns* (globs below *directory*), by name.

    Without patterns EXPORTS and PICTURES.  Hidden files, the journal, the log, links out of the directory and the names in
    *leave* are left out.
    """
    home, left = directory.resolve(), set(leave)
    found: dict[str, ExportedFile] = {}
    for pattern in patterns or (*EXPORTS, *PICTURES):
        for path in home.glob(pattern.lstrip("/")):
            name = path.relative_to(home).as_posix()
            hidden = any(part.startswith(".") for part in name.split("/")) or name.split("/")[0] in _OURS
            if hidden or name in left or not path.is_file() or not path.resolve().is_relative_to(home):
                continue
            found[name] = ExportedFile(path, name, "plots" if path.suffix[1:].lower() in _DRAWN else "exports")
    return [found[name] for name in sorted(found)]


def study_files(directory: Path) -> list[ExportedFile]:
    """What the runs of a study have in common: results beside the directories of its runs, and below its aggregates."""
    patterns = (*EXPORTS, *(f"{place}/{ending}" for place in _AGGREGATES for ending in ("*.json", "*.csv")))
    return exported_files(directory, patterns, leave=["mlflow_export.json"])


__all__ = ["EXPORTS", "PICTURES", "ExportedFile", "exported_files", "study_files"]
