"""Some columns of the requests of a run: from the journal's columns where they are, else from the lines of the file."""

from __future__ import annotations

import logging
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from aiperf.parts import journal
from aiperf.sdk.errors import AiperfError
from aiperf.sdk.plan import Plan

from aiperf_results.table import Table, lines

if TYPE_CHECKING:
    import numpy as np
    from aiperf.sdk.columns import Floats
    from numpy.typing import NDArray

log = logging.getLogger(__name__)
_DETAILS = {f"error_{name}": name for name in ("type", "message", "code")}


class ChosenColumns:
    """Columns of the requests of the profiling phase that were answered, failed or were cancelled.

    table: the columns.  good: the requests that were answered.
    """

    def __init__(self, table: Table, good: NDArray[np.bool_]) -> None:
        self.table, self.good = table, good

    def numbers(self, name: str) -> Floats:
        """A column of the good requests."""
        return self.table.numbers(name)[self.good]

    def only_good(self) -> Table:
        import numpy as np

        return self.table.take(np.flatnonzero(self.good))


def of_journal(path: Path, plan: Plan, clock: journal.RunClock, names: Collection[str]) -> ChosenColumns | None:
    """The columns *names* as the journal has them; None where it lacks one, or can't be read."""
    from aiperf_reducer_columns.reduce.shown import shown_columns  # numpy: not for readers of the summary alone

    if not journal.numbered(path, "columns-*.*"):
        return None
    try:
        shown = shown_columns(path, plan, clock, names)
    except AiperfError as error:
        log.debug("%s: the columns are read from the lines: %s", path, error.message)
        return None
    return None if shown is None else ChosenColumns(Table.of(shown.numbers, shown.texts, len(shown.good)), shown.good)


def of_lines(path: Path, names: Collection[str]) -> ChosenColumns:
    """The columns *names* of the lines of a per-request file.

    Raises:
        AiperfError: The file cannot be read; names the line.
    """
    import numpy as np

    table, good = Table(), bytearray()
    wanted = list(dict.fromkeys(names))
    fields = [f"f{place}" for place in range(len(wanted))]
    for line in lines(path, _shape(wanted, fields)):
        about, metrics, error = line.metadata, line.metrics, line.error
        if about.benchmark_phase != "profiling":
            continue
        good.append(not error and not about.was_cancelled)
        cells: list[tuple[str, object]] = []
        for name, field in zip(wanted, fields, strict=True):
            metric = getattr(metrics, field)
            value = getattr(about, field) if metric is None else metric.get("value") if isinstance(metric, dict) else None
            if name in _DETAILS and isinstance(error, dict):
                value = error.get(_DETAILS[name])
            if value is not None and not isinstance(value, list):
                cells.append((name, value))
        table.add(cells)
    return ChosenColumns(table, np.frombuffer(bytes(good), dtype=np.bool_))


def _shape(names: list[str], fields: list[str]) -> Any:
    """A line of which only *names* are decoded, each as the field of the same place."""
    renamed = dict(zip(fields, names, strict=True))
    wanted = [(field, Any, None) for field in fields]
    known = [("benchmark_phase", str, "profiling"), ("was_cancelled", Any, False)]
    metadata = msgspec.defstruct("metadata", [*wanted, *known], rename=renamed)
    metrics = msgspec.defstruct("metrics", wanted, rename=renamed)
    made = [(name, kind, msgspec.field(default_factory=kind)) for name, kind in (("metadata", metadata), ("metrics", metrics))]
    return msgspec.defstruct("line", [*made, ("error", Any, None)])
