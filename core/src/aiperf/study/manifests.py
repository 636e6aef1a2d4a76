"""What a study keeps on disk to continue after it was broken off: one manifest for itself, and one for each run.

``study_manifest.json`` lies in the study's directory, ``run_manifest.json`` in each run's.  Both are written atomically; that
of a run when its journal is closed, so that a run with one is measured, whatever happens afterwards.
"""

from __future__ import annotations

import fcntl
import hashlib
import logging
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from aiperf.errors import ConfigError
from aiperf.redaction import private
from aiperf.rundir.journal import numbered
from aiperf.sdk.exporter import atomic, visible
from aiperf.sdk.plan import Plan
from aiperf.sdk.study import StudyRun
from aiperf.study.outline import StudyOutline

log = logging.getLogger(__name__)

STUDY_FILE, RUN_FILE = "study_manifest.json", "run_manifest.json"
_LOCK_FILE = ".study.lock"
_LOCK_S, _POLL_S = 3.0, 0.05
"""How long the lock of a killed study may live on, and how often it is tried."""


class RunManifest(Struct, frozen=True):
    """A run that is measured.

    index, cell, cell_label: of its cell, see :class:`aiperf.sdk.study.StudyCell`; index is None in manifests of earlier
    versions.  trial: from 1.
    options: what was asked of it: options of its cell by flag, its seed, whether it warms up.  versions: of the kernel and of
    the packages of its plugins.  data: hash of the input file.  journal: size in bytes of each of its files.
    carried_over: aborted requests of the run before.  failed: why its results don't count, "" where they do.
    layout: of this file.
    """

    label: str
    run_id: str
    options: dict[str, Any]
    seed: int
    versions: dict[str, str]
    data: str
    journal: dict[str, int]
    carried_over: int = 0
    failed: str = ""
    layout: int = 1
    index: int | None = None
    cell: str = ""
    cell_label: str = ""
    trial: int = 1


class StudyManifest(Struct, frozen=True):
    """A study.  asked: options by flag, and what its space is made of.  seed: of its draws.  folders: names of those of its
    runs, below its own.  outline: as at the end of the last command; None in manifests of earlier versions."""

    study_id: str
    version: str
    command: str
    asked: dict[str, Any]
    seed: int
    folders: tuple[str, ...] = ()
    layout: int = 1
    outline: StudyOutline | None = None


M = TypeVar("M", RunManifest, StudyManifest)


class Unreadable(Exception):  # noqa: N818  # what follows from it differs
    """A manifest is there, and is cut off or no manifest."""


def save(path: Path, manifest: RunManifest | StudyManifest) -> None:
    """Write it atomically, and see to it that it is on the disk."""
    with atomic(path) as draft, private(draft).open("wb") as file:
        file.write(visible(msgspec.json.format(msgspec.json.encode(manifest), indent=2)) + b"\n")
        file.flush()
        os.fsync(file.fileno())


def read(path: Path, kind: type[M]) -> M | None:
    """The manifest; None where there is none.

    Raises:
        Unreadable: It can't be read.
    """
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.MsgspecError) as error:
        raise Unreadable(str(error)) from error


def of_run(plan: Plan, journal: Path, run: StudyRun, options: Mapping[str, Any]) -> RunManifest:
    """The manifest of a *run* whose journal is closed."""
    files = [path for pattern in ("shard-*.seg", "columns-*.*") for path in numbered(journal, pattern)]
    return RunManifest(
        run.label, plan.run.run_id, dict(options), plan.run.seed, versions(plan),
        data_hash(None if plan.data.source is None else Path(plan.data.source)),
        {path.name: path.stat().st_size for path in files}, plan.run.carried_over,
        index=run.cell.index, cell=run.cell.name, cell_label=run.cell.label, trial=run.trial,
    )  # fmt: skip


def versions(plan: Plan) -> dict[str, str]:
    """The versions of the kernel and of the packages whose plugins the plan uses, by distribution."""
    plugins = plan.plugins
    refs = (plugins.endpoint, plugins.transport, plugins.dataset, plugins.tokenizer, plugins.reducer, *plugins.metrics)
    used = {ref.distribution: ref.version for ref in refs if ref is not None and ref.distribution}
    return {"aiperf": plan.run.version, **used}


def data_hash(source: Path | None) -> str:
    """SHA-256 of the input file, or of the files in a directory with their names; "" where there is none: what is made is a
    function of the options and the seed."""
    if source is None or not source.exists():
        return ""
    if source.is_dir():
        parts = [f"{path.relative_to(source)} {_file_hash(path)}" for path in sorted(source.rglob("*")) if path.is_file()]
        return hashlib.sha256("\n".join(parts).encode(errors="surrogateescape")).hexdigest()
    return _file_hash(source)


def _file_hash(path: Path) -> str:
    about = path.stat()
    return _read_hash(path, about.st_mtime_ns, about.st_size)


@cache
def _read_hash(path: Path, mtime_ns: int, size: int) -> str:
    """The hash of a file that has not changed since: all runs of a study read the same ones."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def plain(value: Any) -> Any:
    """The value as JSON gives it back."""
    return msgspec.json.decode(msgspec.json.encode(value))


def differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """A line for each option with another value: ``--request-count was 100, is 200``."""
    lines = []
    for name in sorted(before.keys() | now.keys()):
        old, new = before.get(name), now.get(name)
        if old != new:
            lines.append(f"{name} {_said('was', old)}, {_said('is', new)}")
    return lines


def _said(verb: str, value: Any) -> str:
    if value is None:
        return f"{verb} not given"
    return f"{verb} {value if isinstance(value, str) else msgspec.json.encode(value).decode()}"


@contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Keep other studies out of the directory.

    Raises:
        ConfigError: Another study uses it, or it can't be written.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
        file = private(directory / _LOCK_FILE).open("ab")
    except OSError as error:
        hint = "choose another directory with --artifact-dir"
        raise ConfigError(f"{directory} can't be written: {error.strerror or error}", hint) from error
    with file:
        until_s = time.monotonic() + _LOCK_S
        while True:
            try:
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # a fork does not inherit it
                break
            except OSError as error:
                if time.monotonic() > until_s:
                    hint = "wait until they are over, or choose another directory with --artifact-dir"
                    raise ConfigError(f"{directory} is in use by the runs of another command", hint) from error
                time.sleep(_POLL_S)
        yield


def free_name(path: Path, word: str) -> Path:
    """A path beside *path* that nothing has: ``run_0002.half``, ``run_0002.half-2``."""
    free, number = path.with_name(f"{path.name}.{word}"), 1
    while free.exists():
        number += 1
        free = path.with_name(f"{path.name}.{word}-{number}")
    return free
