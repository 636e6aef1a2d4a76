"""The finished runs below some directories: what the list says of each, and their boards, made when somebody looks."""

from __future__ import annotations

import hashlib
import re
import threading
import time
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from aiperf.results import FinishedRun, open_runs
from aiperf.sdk.errors import AiperfError
from aiperf_live_api.board import Board

from aiperf_command_serve.finished import board_of, entry_of

_LOOK_AGAIN_S = 2.0
_MOST_BOARDS = 8


class ServedRuns:
    """The runs below *paths*; may be asked from several threads."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self._paths = list(paths)
        self._runs: dict[str, FinishedRun] = {}
        self._entries: dict[str, tuple[int, dict[str, Any]]] = {}
        self._boards: OrderedDict[str, tuple[int, Board]] = OrderedDict()
        self._looked_s = -_LOOK_AGAIN_S
        self._lock = threading.Lock()

    def look(self) -> None:
        """Find the runs, unless that was done a moment ago.

        Raises:
            AiperfError: A directory has no results, or can't be read.
        """
        with self._lock:
            if time.monotonic() - self._looked_s < _LOOK_AGAIN_S:
                return
            self._runs = {name_of(run): run for run in open_runs(self._paths)}
            self._looked_s = time.monotonic()

    def listed(self) -> list[dict[str, Any]]:
        """What the list has of each run, the latest first; a run that can't be read says why."""
        with self._lock:
            runs = dict(self._runs)
        entries = [{"id": name, "label": run.label, **self._entry(name, run)} for name, run in runs.items()]
        return sorted(entries, key=lambda entry: str(entry.get("start_time") or ""), reverse=True)

    def only(self) -> str | None:
        """The name of the run where there is one; None where there are several."""
        with self._lock:
            return next(iter(self._runs)) if len(self._runs) == 1 else None

    def board(self, name: str) -> Board | None:
        """The board of a run; None where no run has the name.

        Raises:
            AiperfError: Its results can't be read.
        """
        with self._lock:
            run = self._runs.get(name)
            if run is None:
                return None
            changed = _changed(run)
            kept = self._boards.get(name)
            if kept is None or kept[0] != changed:
                kept = changed, board_of(FinishedRun(run.directory, run.label))
                self._boards[name] = kept
            self._boards.move_to_end(name)
            while len(self._boards) > _MOST_BOARDS:
                self._boards.popitem(last=False)
            return kept[1]

    def _entry(self, name: str, run: FinishedRun) -> dict[str, Any]:
        changed = _changed(run)
        kept = self._entries.get(name)
        if kept is None or kept[0] != changed:
            try:
                entry = entry_of(FinishedRun(run.directory, run.label))
            except AiperfError as error:
                entry = {"problem": error.message}
            kept = self._entries[name] = changed, entry
        return kept[1]


def _changed(run: FinishedRun) -> int:
    """When the summary was written, in ns."""
    try:
        return run.file("aiperf.json").stat().st_mtime_ns
    except OSError:
        return 0


def name_of(run: FinishedRun) -> str:
    """The name of a run in URLs: the last part of its path, and what tells it from others of that name."""
    plain = re.sub(r"[^A-Za-z0-9_.-]+", "-", run.directory.resolve().name).strip("-.")[:60] or "run"
    return f"{plain}-{hashlib.blake2b(str(run.directory.resolve()).encode(), digest_size=4).hexdigest()}"


__all__ = ["ServedRuns", "name_of"]
