"""Where a run's conversations come from: the data set plugin that was named, the one that knows the input file, or synthetic.

A plugin that reads a file says so in its manifest (``reads: true``), and there too whether its rows carry the times at which
they were recorded (``trace: true``) and of which keys every row has one (``keys``).  None is imported that can't know the file.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from aiperf.descriptor import Descriptor, PluginRef
from aiperf.errors import BadDataset, PluginError
from aiperf.model import names
from aiperf.rowfile import first_row, rows
from aiperf.selection import ref_to
from aiperf.strangers import who, why

if TYPE_CHECKING:
    from aiperf.registry import Registry
    from aiperf.selection import Selection

SYNTHETIC = "synthetic"


class Source(Struct, frozen=True):
    """The chosen plugin and what is known of its file.

    explicit: its name was given.  trace: its format records times.  timestamped: the first row has one.
    """

    dataset: PluginRef | None
    path: Path | None = None
    explicit: bool = False
    trace: bool = False
    timestamped: bool = False

    @property
    def promotes(self) -> bool:
        """Whether it is replayed at its recorded times without being asked to (spec: timing §2)."""
        return self.explicit and self.trace and self.timestamped and self.path is not None and self.path.is_file()


def source(select: Selection, registry: Registry) -> Source:
    """The source that the options choose; what is wrong with them goes to the selection's findings."""
    findings = select.findings
    kernel = findings.kernel
    path, kind = kernel.input_file, kernel.dataset_type
    if path is not None and not _readable(select, path):
        select.missing.add("datasets")
        return Source(None, path)
    if kind is not None:
        return _named(select, registry, kind, path)
    if path is None:
        return Source(select.chosen("datasets", SYNTHETIC))
    row = first_row(path) if path.is_file() else None
    found = _recognised(select, registry, path, row)
    if found is None:
        select.missing.add("datasets")
        return Source(None, path)
    findings.hint(f"{path} is read as {found.name}")
    return _of_file(select.chosen("datasets", found.name), found, path, row, explicit=False)


def _named(select: Selection, registry: Registry, kind: str, path: Path | None) -> Source:
    findings = select.findings
    ref = select.chosen("datasets", kind, "dataset_type")
    if ref is None:
        return Source(None, path, explicit=True)
    found, flag, file = registry.descriptor("datasets", ref.name), findings.flag("dataset_type"), findings.flag("input_file")
    reads = bool(found.capabilities.get("reads"))
    if reads and path is None:
        findings.refuse(f"{flag} {kind} needs {file}: it is the format of a file", f"add {file}, or drop {flag}")
    elif path is not None and not reads:
        findings.refuse(f"{flag} {kind} reads no file, and {file} gives one", f"drop {flag}, or drop {file}")
    if path is None or not reads:
        return Source(ref, None, explicit=True)
    return _of_file(ref, found, path, first_row(path) if path.is_file() else None, explicit=True)


def _of_file(ref: PluginRef | None, found: Descriptor, path: Path, row: dict[str, Any] | None, *, explicit: bool) -> Source:
    timestamped = row is not None and _timestamped(row)
    return Source(ref, path.absolute(), explicit, bool(found.capabilities.get("trace")), timestamped)


def _timestamped(row: dict[str, Any]) -> bool:
    """Whether the row, or its first turn, says when it was recorded."""
    turns = row.get("turns")
    first = turns[0] if isinstance(turns, list) and turns and isinstance(turns[0], dict) else {}
    return row.get("timestamp") is not None or first.get("timestamp") is not None


def _readable(select: Selection, path: Path) -> bool:
    findings = select.findings
    flag = findings.flag("input_file")
    if not path.exists():
        findings.refuse(f"{flag}: there is no file {path}", "check the path")
    elif not os.access(path, os.R_OK):
        findings.refuse(f"{flag}: {path} can't be read: permission denied", "check its permissions")
    elif path.is_file() and path.stat().st_size == 0:
        findings.refuse(f"{flag}: {path} is empty", "give a file with at least one row")
    else:
        return True
    return False


def _recognised(select: Selection, registry: Registry, path: Path, row: dict[str, Any] | None) -> Descriptor | None:
    """The one format that knows the file; else that is said."""
    findings = select.findings
    formats = [one for one in registry.all("datasets") if one.capabilities.get("reads")]
    said = row.get("type") if row is not None else None
    if isinstance(said, str) and (found := registry.find("datasets", said)) in formats:
        return found
    known = [one for one in formats if _may_know(one, row) and _knows(select, registry, one, path, row)]
    if len(known) == 1:
        return known[0]
    file, kind = findings.flag("input_file"), findings.flag("dataset_type")
    if known:
        findings.refuse(f"{file}: {path} could be {names([one.name for one in known])}", f"say which with {kind}")
    else:
        findings.refuse(
            f"{file}: no installed format knows {path}: {_look(path, row)}",
            *(f"{one.name}: {_wants(one)}" for one in formats),
            f"name one with {kind} to learn what is wrong",
        )
    return None


def _may_know(one: Descriptor, row: dict[str, Any] | None) -> bool:
    keys = one.capabilities.get("keys")
    return not keys or (row is not None and any(key in row for key in keys))


def _wants(one: Descriptor) -> str:
    keys = one.capabilities.get("keys")
    return f"rows with {' or '.join(keys)}" if keys else one.summary or "asked, and doesn't know it"


def _look(path: Path, row: dict[str, Any] | None) -> str:
    """What the file looks like, for somebody who expected it to be known."""
    if row is not None:
        return f"its first row has {names(sorted(row))}"
    if path.is_dir():
        return "it is a directory"
    try:
        return "it has blank lines alone" if next(rows(path), None) is None else "it has changed meanwhile"
    except BadDataset as error:
        return error.message


def _knows(select: Selection, registry: Registry, one: Descriptor, path: Path, row: dict[str, Any] | None) -> bool:
    try:
        return bool(registry.load("datasets", one.name).recognises(path, row))
    except PluginError as error:  # which names it
        select.findings.warn(error.message)
        return False
    except Exception as error:  # noqa: BLE001  # strangers' code; who is asked for by name says why
        select.findings.warn(f"{who(ref_to(one))} can't say whether it knows {path}: {why(error)}")
        return False
