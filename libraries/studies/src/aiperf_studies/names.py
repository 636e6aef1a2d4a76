"""Names and labels of cells: of directories, and for people."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from aiperf.sdk.study import Setting, StudyCell

RESERVED = ("aggregate", "sweep_aggregate", "profile_runs", "journal", "logs")
"""Directories of a study that hold something else, and no cell is called so."""
_UNSAFE = re.compile(r'[/\\<>:"|?*\x00-\x1f\x7f]|\.\.')
"""What names of files can't have, or not everywhere."""
_MOST_BYTES = 180
"""Length of a name; file systems take 255, and a number may follow."""


def path_safe(text: str) -> str:
    """The text without what a directory's name can't have; "" where nothing is left."""
    kept = _UNSAFE.sub("", text).strip()
    while len(kept.encode()) > _MOST_BYTES:
        kept = kept[:-1]
    return "" if set(kept) <= {"."} else kept


def cell_name(parameters: Mapping[str, Setting]) -> str:
    """``concurrency_10__rate_5`` in the order of the parameters; "" where a value is a list or mapping, or nothing is left."""
    if not parameters or any(isinstance(value, list | dict) for value in parameters.values()):
        return ""
    return path_safe("__".join(f"{key}_{shown(value)}" for key, value in parameters.items()))


def cell_label(parameters: Mapping[str, Setting]) -> str:
    """``concurrency=10, rate=5``."""
    return ", ".join(f"{key}={shown(value)}" for key, value in parameters.items())


def shown(value: Setting) -> str:
    """A value as names and tables show it: true and false as a file writes them."""
    return str(value).lower() if isinstance(value, bool) else "null" if value is None else str(value)


def cells_of(
    combinations: Iterable[Mapping[str, Setting]], names: Sequence[str] = (), labels: Sequence[str] = ()
) -> tuple[StudyCell, ...]:
    """A cell for each combination of values, with a name of its own.

    A name that is another's already, also but for case, or a directory's of the study (:data:`RESERVED`), gets the cell's
    index; a cell without one is called after its index.  *names*, *labels*: in place of those that the values give.
    """
    taken = {name.casefold() for name in RESERVED}
    cells = []
    for index, parameters in enumerate(combinations):
        name = path_safe(names[index]) if names else cell_name(parameters)
        name = name or f"variation_{index:04d}"
        while name.casefold() in taken:
            name = f"{name}__{index:04d}"
        taken.add(name.casefold())
        label = labels[index] if labels else cell_label(parameters)
        cells.append(StudyCell(index, dict(parameters), name, label))
    return tuple(cells)
