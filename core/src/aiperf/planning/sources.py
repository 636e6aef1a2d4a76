"""The source of a run's conversations: the named data set plugin, the plugin that recognises the input file, or synthetic.

The manifest tells whether a plugin reads a file (``reads: true``), whether its rows have recorded times (``trace: true``),
and keys of which each row has at least one (``keys``).  A plugin whose keys don't match the file is not imported.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from msgspec import Struct

from aiperf.errors import BadDataset, PluginError
from aiperf.registry.third_party import why
from aiperf.sdk.descriptor import Descriptor, PluginRef
from aiperf.sdk.model import names
from aiperf.sdk.rowfile import first_row, rows

if TYPE_CHECKING:
    from aiperf.planning.problems import Selection
    from aiperf.registry.registry import Registry
    from aiperf.sdk.registry import InstalledPlugins

SYNTHETIC = "synthetic"


class Source(Struct, frozen=True):
    """The chosen plugin, and facts about its file.

    explicit: its name was given.  trace: its format records times.  timestamped: the first row has plugin.
    """

    dataset: PluginRef | None
    path: Path | None = None
    explicit: bool = False
    trace: bool = False
    timestamped: bool = False

    @property
    def promotes(self) -> bool:
        """Whether the file is replayed at its recorded times without a flag (spec: timing §2)."""
        return self.explicit and self.trace and self.timestamped and self.path is not None and self.path.is_file()


def source(select: Selection, registry: Registry) -> Source:
    """The source that the options choose; errors go to the selection's problems."""
    problems = select.problems
    kernel = problems.kernel
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
    problems.hint(f"{path} is read as {found.name}")
    return _of_file(select.chosen("datasets", found.name), found, path, row, explicit=False)


def _named(select: Selection, registry: Registry, kind: str, path: Path | None) -> Source:
    problems = select.problems
    ref = select.chosen("datasets", kind, "dataset_type")
    if ref is None:
        return Source(None, path, explicit=True)
    found, flag, file = registry.descriptor("datasets", ref.name), problems.flag("dataset_type"), problems.flag("input_file")
    reads = bool(found.capabilities.get("reads"))
    if reads and path is None:
        problems.refuse(f"{flag} {kind} needs {file}: it is the format of a file", f"add {file}, or drop {flag}")
    elif path is not None and not reads:
        problems.refuse(f"{flag} {kind} reads no file, and {file} gives one", f"drop {flag}, or drop {file}")
    if path is None or not reads:
        return Source(ref, None, explicit=True)
    return _of_file(ref, found, path, first_row(path) if path.is_file() else None, explicit=True)


def _of_file(ref: PluginRef | None, found: Descriptor, path: Path, row: dict[str, Any] | None, *, explicit: bool) -> Source:
    timestamped = row is not None and _timestamped(row)
    return Source(ref, path.absolute(), explicit, bool(found.capabilities.get("trace")), timestamped)


def _timestamped(row: dict[str, Any]) -> bool:
    """Whether the row, or its first turn, has a timestamp."""
    turns = row.get("turns")
    first = turns[0] if isinstance(turns, list) and turns and isinstance(turns[0], dict) else {}
    return row.get("timestamp") is not None or first.get("timestamp") is not None


def _readable(select: Selection, path: Path) -> bool:
    problems = select.problems
    flag = problems.flag("input_file")
    if not path.exists():
        problems.refuse(f"{flag}: there is no file {path}", "check the path")
    elif not os.access(path, os.R_OK):
        problems.refuse(f"{flag}: {path} can't be read: permission denied", "check its permissions")
    elif path.is_file() and path.stat().st_size == 0:
        problems.refuse(f"{flag}: {path} is empty", "give a file with at least one row")
    else:
        return True
    return False


def _recognised(select: Selection, registry: Registry, path: Path, row: dict[str, Any] | None) -> Descriptor | None:
    """The only format that recognises the file; None, reported, where there is none or several."""
    problems = select.problems
    formats = [plugin for plugin in registry.all("datasets") if plugin.capabilities.get("reads")]
    stated = row.get("type") if row is not None else None
    if isinstance(stated, str) and (found := registry.find("datasets", stated)) in formats:
        return found
    known = [plugin for plugin in formats if _has_keys(plugin, row) and _recognises(select, registry, plugin, path, row)]
    if len(known) == 1:
        return known[0]
    file, kind = problems.flag("input_file"), problems.flag("dataset_type")
    if known:
        problems.refuse(f"{file}: {path} could be {names([plugin.name for plugin in known])}", f"say which with {kind}")
    else:
        problems.refuse(
            f"{file}: no installed format knows {path}: {_appearance(path, row)}",
            *(f"{plugin.name}: {_expected(plugin)}" for plugin in formats),
            f"name one with {kind} to learn what is wrong",
        )
    return None


def _has_keys(plugin: Descriptor, row: dict[str, Any] | None) -> bool:
    keys = plugin.capabilities.get("keys")
    return not keys or (row is not None and any(key in row for key in keys))


def _expected(plugin: Descriptor) -> str:
    keys = plugin.capabilities.get("keys")
    return f"rows with {' or '.join(keys)}" if keys else plugin.summary or "asked, and doesn't know it"


def _appearance(path: Path, row: dict[str, Any] | None) -> str:
    """The look of an unrecognised file, for the message."""
    if row is not None:
        return f"its first row has {names(sorted(row))}"
    if path.is_dir():
        return "it is a directory"
    try:
        return "it has blank lines alone" if next(rows(path), None) is None else "it has changed meanwhile"
    except BadDataset as error:
        return error.message


def _recognises(select: Selection, registry: Registry, plugin: Descriptor, path: Path, row: dict[str, Any] | None) -> bool:
    try:
        return bool(registry.load("datasets", plugin.name).recognises(path, row))
    except PluginError as error:  # the message names the plugin
        select.problems.warn(error.message)
        return False
    except Exception as error:  # noqa: BLE001  # code of a plugin
        select.problems.warn(f"{plugin} can't say whether it knows {path}: {why(error)}")
        return False


def format_of(path: Path, name: str | None, registry: InstalledPlugins, typed: Mapping[str, str]) -> PluginRef:
    """The plugin that reads the data set's file: the one called *name*, else (None) the one that a run would choose.

    *typed*: how messages name ``input_file`` and ``dataset_type``.

    Raises:
        AiperfError: No format has the name or knows the file, or the file cannot be opened.
    """
    from aiperf.planning.kernel_options import KernelOptions
    from aiperf.planning.problems import Problems, Selection, Settings

    problems = Problems(Settings(KernelOptions(input_file=path, dataset_type=name), {}, dict(typed), ""))
    installed = cast("Registry", registry)  # commands see no more of it than InstalledPlugins
    chosen = source(Selection(problems, installed), installed)
    problems.refuse_if_any()
    assert chosen.dataset is not None  # problems have what is missing
    return chosen.dataset
