"""The files that a run wrote, by its marker and its journal: whether all are there, and none of another run."""

from __future__ import annotations

from typing import Any

from aiperf.parts.journal import load_end
from aiperf.parts.reporting import READY_FILE
from aiperf.results import FinishedRun
from aiperf.sdk.errors import BadJournal

from aiperf_command_validate.faults import Faults

_SIGNS = {"ready": bool, "was_cancelled": bool, "partial": bool, "files": list}
_LOG = "logs/aiperf.log"


class RepeatedKeyError(ValueError):
    """An object of JSON has a key twice: programs differ in which value they read."""


def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The object of *pairs*, for ``object_pairs_hook``.

    Raises:
        RepeatedKeyError: A key stands in it twice.
    """
    found = dict(pairs)
    if len(found) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise RepeatedKeyError(f"the key {key!r} stands twice in one object")
            seen.add(key)
    return found


def marker(run: FinishedRun, faults: Faults) -> None:
    """The marker is whole; what it names is there, and no other file that is named like a run's results."""
    about = run.marker
    path = run.directory / READY_FILE
    if about is None:
        if run.ours:
            faults.add(READY_FILE, "holds no object" if path.exists() else "is missing: the export never came to its end")
        return
    wrong = [name for name, kind in _SIGNS.items() if not isinstance(about.get(name), kind)]
    if wrong and run.ours:
        faults.add(READY_FILE, f"says nothing of {', '.join(wrong)}: it was changed after the export")
    if about.get("partial"):
        faults.add(READY_FILE, "says that an exporter failed: results are not whole")
    named = {str(name) for name in about["files"]} if isinstance(about.get("files"), list) else set()
    for name in sorted(named):
        if not (run.directory / name).exists():
            faults.add(name, "is missing; the run wrote it")
    if run.ours and not wrong:
        prefix = run.target.prefix or "profile_export"
        for found in sorted(run.directory.glob("*")):
            if found.is_file() and found.name.startswith((f"{prefix}.", f"{prefix}_")) and found.name not in named:
                faults.add(found.name, "was not written by this run; is it another run's?")


def journal_files(run: FinishedRun, faults: Faults) -> None:
    """The journal's columns are as long as the run left them, and the log is there."""
    folder = run.directory / "journal"
    try:
        end = load_end(folder)
    except BadJournal:  # said where the journal is reported
        return
    if end is None:
        return
    for name, size in sorted(end.columns.items()):
        try:
            left = (folder / name).stat().st_size
        except OSError:
            faults.add(f"journal/{name}", "is missing; the run wrote it")
            continue
        if left < size:
            faults.add(f"journal/{name}", f"has {left:,} bytes; the run left {size:,}")
    if not (run.directory / _LOG).is_file():
        faults.add(_LOG, "is missing; the run wrote it")


def level_files(run: FinishedRun, kinds: tuple[str, ...], faults: Faults) -> None:
    """The files of the run's export level are there."""
    for kind in kinds:
        if not run.has(kind):
            faults.add(run.file(kind).name, f"is missing; export level {run.level} has it")


