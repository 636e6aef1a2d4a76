"""Which files of a run go to the bucket, in their order."""

from __future__ import annotations

import json
from pathlib import Path

from aiperf.sdk.study import Study
from msgspec import Struct

MARKER = ".aiperf_results_ready.json"
"""The kernel's last file, which says that the results are there, and which."""
_LOGS, _JOURNAL = "logs", "journal"


class UploadJob(Struct, frozen=True):
    """Files to copy.  url: without a slash at its end.  files: absolute path, and name below *url*.

    markers: likewise, copied when all of *files* have arrived.
    """

    url: str
    files: tuple[tuple[str, str], ...]
    markers: tuple[tuple[str, str], ...]

    @property
    def items(self) -> list[str]:
        return [name for _, name in (*self.files, *self.markers)]


def job_of(directory: Path, url: str, *, journal: bool) -> UploadJob:
    """The results that the marker names, the log, and on request the journal; then the marker.

    Raises:
        OSError: There is no marker.
        ValueError: It can't be read.
    """
    listed = json.loads((directory / MARKER).read_text())["files"]
    names = [*listed, *_below(directory, _LOGS), *(_below(directory, _JOURNAL) if journal else ())]
    files = [(str(directory / name), name) for name in dict.fromkeys(names) if (directory / name).is_file()]
    return UploadJob(url, tuple(files), ((str(directory / MARKER), MARKER),))


def job_of_study(study: Study, url: str, *, journal: bool) -> UploadJob:
    """The files of all runs and what they have in common; then the marker of each run."""
    files: list[tuple[str, str]] = []
    markers: list[tuple[str, str]] = []
    for run in study.runs:
        within = _within(run.directory, study.directory)
        if within is None or not (run.directory / MARKER).is_file():
            continue
        own = job_of(run.directory, url, journal=journal)
        files += [(path, f"{within}/{name}") for path, name in own.files]
        markers += [(path, f"{within}/{name}") for path, name in own.markers]
    runs = tuple(_within(run.directory, study.directory) or "" for run in study.runs)
    for path in sorted(study.directory.rglob("*")):
        name = path.relative_to(study.directory).as_posix()
        hidden = any(part.startswith(".") or part == _JOURNAL for part in name.split("/"))
        if path.is_file() and not hidden and not any(run and name.startswith(f"{run}/") for run in runs):
            files.append((str(path), name))
    return UploadJob(url, tuple(files), tuple(markers))


def _within(directory: Path, base: Path) -> str | None:
    """The path of a run's directory below the study's; None where it lies elsewhere."""
    return directory.relative_to(base).as_posix() if directory.is_relative_to(base) else None


def _below(directory: Path, folder: str) -> list[str]:
    paths = (path for path in (directory / folder).rglob("*") if path.is_file())
    return sorted(path.relative_to(directory).as_posix() for path in paths)


__all__ = ["MARKER", "UploadJob", "job_of", "job_of_study"]
