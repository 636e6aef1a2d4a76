"""``journal/run.json``: what a run is, beside its segments and columns."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import BinaryIO

import msgspec
from msgspec import Struct

from aiperf.errors import BadJournal
from aiperf.sdk.plan import Plan

_NAME = "run.json"


class RunClock(Struct, frozen=True):
    """The run's time zero on both clocks, in ns: columns count from it."""

    started_mono_ns: int
    started_wall_ns: int


class _Run(Struct, frozen=True):
    plan: Plan
    clock: RunClock


def save_run(journal: Path, plan: Plan, clock: RunClock) -> None:
    """Write ``run.json`` atomically, without the secrets of plugins."""
    draft = journal / "run.draft"
    draft.write_bytes(msgspec.json.format(msgspec.json.encode(_Run(plan.public(), clock)), indent=2))
    draft.chmod(0o600)
    draft.replace(journal / _NAME)


def hold(journal: Path) -> BinaryIO:
    """Lock the directory for as long as the file stays open; the lock ends with the process.

    Raises:
        BadJournal: Another process has the lock.
    """
    file = (journal / "lock").open("ab")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        file.close()
        raise BadJournal(f"{os.fspath(journal.parent)} is in use by another run or report", "wait until it is over") from error
    return file


def load_run(journal: Path) -> tuple[Plan, RunClock]:
    """Read ``run.json``.

    Raises:
        BadJournal: The file is missing or unreadable.
    """
    path = journal / _NAME
    try:
        run = msgspec.json.decode(path.read_bytes(), type=_Run)
    except FileNotFoundError:
        raise BadJournal(f"{os.fspath(journal.parent)} holds no run: {path} is not there") from None
    except (OSError, msgspec.MsgspecError) as error:
        raise BadJournal(f"{path} can't be read: {error}") from error
    return run.plan, run.clock
