"""Results of an earlier run in a run's directory: set aside while this run starts, and removed or put back after that."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO

from msgspec import structs

from aiperf.errors import BadJournal
from aiperf.rundir.artifacts import READY_FILE
from aiperf.rundir.journal import hold, load_run, numbered
from aiperf.sdk.exporter import file_name
from aiperf.sdk.plan import OutputPlan

log = logging.getLogger(__name__)

_EARLY = "early"
"""Folder in the journal set aside: files of the earlier run that this one writes before load, while it may be refused."""


def recover(directory: Path) -> bool:
    """Put back what a start set aside that was killed before it began; whether there was anything.

    Raises:
        BadJournal: That start is still at work.
        OSError: The results can't be moved.
    """
    if not set_aside(directory):
        return False
    PreviousResults(directory).restore()
    return True


def set_aside(directory: Path) -> bool:
    """Whether results of an earlier run lie aside, because a start is under way or was killed."""
    return _aside_of(journal_of(directory)).exists()


def journal_of(directory: Path) -> Path:
    """The journal of a run's directory; where it is a link, the place to which it points."""
    path = directory / "journal"
    return path.resolve() if path.is_symlink() else path


def _aside_of(journal: Path) -> Path:
    return journal.with_name(f"{journal.name}.earlier")


class PreviousResults:
    """The results of an earlier run in *directory*.

    output: of the run that starts; its exporters' files are looked for where the earlier run names none.  None recovers.

    Raises:
        BadJournal: That run, or a report of it, is still at work.
        OSError: The results can't be moved.
    """

    def __init__(self, directory: Path, output: OutputPlan | None = None) -> None:
        self._directory = directory
        self._journal = journal_of(directory)
        self._aside = _aside_of(self._journal)
        self._new = not directory.exists()
        self._locks: list[BinaryIO] = []
        for folder, mark in ((self._aside, self._aside / "lock"), (self._journal, self._journal)):
            if mark.exists():
                self._locks.append(hold(folder))
        self._early = _names(output, early=True)
        if self._observed():  # a start was killed, but its journal counts: it has observed something
            shutil.rmtree(self._aside, ignore_errors=True)
        elif self._aside.exists():
            self._put_back(self._early | _names(_output(self._journal), early=True))
        earlier = _output(self._journal)
        default = None if output is None else structs.replace(output, export_prefix=None)
        self._early |= _names(earlier, early=True)
        self._late = _names(earlier or default) - self._early
        self._has_results = self._observed() or any((directory / name).exists() for name in self._late | {READY_FILE})
        self._set_aside()

    def _observed(self) -> bool:
        """Whether the journal has more than a plan."""
        return bool(numbered(self._journal, "shard-*.seg") or numbered(self._journal, "columns-*.*"))

    def _set_aside(self) -> None:
        if self._journal.exists():
            self._journal.rename(self._aside)
        for path in filter(Path.is_file, (self._directory / name for name in self._early)):
            # The file stays, because it may be this run's input.  An exporter replaces it, and never writes into it.
            (self._aside / _EARLY).mkdir(parents=True, exist_ok=True)
            try:
                os.link(path, self._aside / _EARLY / path.name)
            except OSError:  # a file system without links
                shutil.copy2(path, self._aside / _EARLY / path.name)

    def _put_back(self, early: Iterable[str]) -> None:
        shutil.rmtree(self._journal, ignore_errors=True)
        for name in early:
            (self._directory / name).unlink(missing_ok=True)
        if not self._aside.exists():
            return
        if (self._aside / _EARLY).exists():
            for path in (self._aside / _EARLY).iterdir():
                shutil.move(path, self._directory / path.name)  # a linked journal may be on another disk
            (self._aside / _EARLY).rmdir()
        if any(self._aside.iterdir()):
            self._aside.rename(self._journal)
        else:  # there was no journal
            self._aside.rmdir()

    def close(self) -> None:
        """Let others use them.  May be called again."""
        for lock in self._locks:
            lock.close()

    def restore(self) -> None:
        """Put the earlier results back: this run never began.  Of its own files a log with lines stays."""
        self._put_back(self._early)
        log_file = self._directory / "logs" / "aiperf.log"
        with contextlib.suppress(OSError):  # it has lines, or the folder has files of others
            if not log_file.stat().st_size:
                log_file.unlink()
            log_file.parent.rmdir()
        with contextlib.suppress(OSError):
            if self._new:
                self._directory.rmdir()
        self._release()

    def replace(self, keep: Path | None = None) -> None:
        """Remove the earlier results: this run begins, and no file of another shall stand among its own.

        *keep*: a file that stays, because it is this run's input.
        """
        if self._has_results:
            log.warning("%s holds results of an earlier run, which this one replaces", self._directory)
            for path in self._written():
                if keep is None or not path.exists() or not path.samefile(keep):
                    path.unlink(missing_ok=True)
            (self._directory / READY_FILE).unlink(missing_ok=True)
        shutil.rmtree(self._aside, ignore_errors=True)
        self._release()

    def _written(self) -> list[Path]:
        """Files of the earlier run: those its marker names, and those its exporters declare; none that this run wrote."""
        paths = [self._directory / name for name in self._late]
        with contextlib.suppress(OSError, ValueError, LookupError, TypeError):
            names = set(json.loads((self._directory / READY_FILE).read_bytes())["files"]) - self._early
            paths += [self._directory / name for name in names]
        if (self._aside / "lock").exists():
            for before in (self._aside / _EARLY).glob("*"):
                path = self._directory / before.name
                paths += [path] if path.exists() and path.samefile(before) else []  # not written anew by this run
        root = self._directory.resolve()
        return [path for path in paths if path.resolve().is_relative_to(root) and not path.is_dir()]

    def _release(self) -> None:
        for lock in self._locks:
            lock.close()
        self._locks.clear()


def _output(journal: Path) -> OutputPlan | None:
    """The output of the run whose journal it is; None where that can't be read."""
    try:
        return load_run(journal)[0].output
    except BadJournal:
        return None


def _names(output: OutputPlan | None, *, early: bool = False) -> set[str]:
    """Names of the files that the run's exporters declare, without a folder: ``run.json`` of a stranger may name any path.

    *early*: only of those that are written before load.
    """
    if output is None:
        return set()
    patterns = (pattern for kind, pattern in output.files.items() if kind in output.early_files or not early)
    names = {file_name(pattern, output.export_prefix) for pattern in patterns}
    return {name for name in names if "/" not in name and name not in ("", ".", "..")}
