"""Columns of the profiling phase's requests as files show them, from the stored columns: for pictures, which need a few."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
from aiperf.parts import journal
from aiperf.parts.loading import load
from aiperf.sdk.columns import Column, Floats, Ragged, RecordBatch
from aiperf.sdk.metric import Metric
from aiperf.sdk.model import ErrorDetails
from aiperf.sdk.plan import Plan
from msgspec.structs import astuple
from numpy.typing import NDArray

from aiperf_reducer_columns.reduce.batches import batches
from aiperf_reducer_columns.statistics.catalogue import Catalogue, catalogue
from aiperf_reducer_columns.statistics.pipeline import Pipeline

_ENDED = (journal.COMPLETED, journal.ERROR, journal.CANCELLED)
"""Outcomes of the requests that readers of results take; overflows have lines, too, which they leave out."""
_ESTIMATE_DECIMALS = 9
"""Of estimates, as files show them."""
_ERRORS = ("error_code", "error_message", "error_type")
_decode_error = msgspec.json.Decoder(ErrorDetails).decode


class ShownColumns(NamedTuple):
    """Requests that were answered, failed or were cancelled.

    numbers: by name, in display units, NaN where a request has none.  texts: by name, None where it has none.
    good: the requests that were answered.
    """

    numbers: dict[str, Floats]
    texts: Mapping[str, list[str | None]]
    good: NDArray[np.bool_]


def shown_columns(path: Path, plan: Plan, clock: journal.RunClock, names: Collection[str]) -> ShownColumns | None:
    """These columns of the profiling phases, from the journal at *path*; None where it does not tell one of them.

    A name is a metric's tag, one of the instants and counts of a line, or ``error_code``, ``error_type``, ``error_message``.
    Metrics with a list per request are not told; one that does not apply to the run has no column.

    Raises:
        AiperfError: The journal is of another version, or the run's metrics can't be loaded.
    """
    known = catalogue(plan, load(plan.plugins.endpoint))
    tags = [name for name in names if name in known.metrics]
    if any(name not in (*_FIELDS, *_ERRORS, *tags) and name not in known.unfit for name in names):
        return None
    if not all(isinstance(known.metrics[tag], Metric) and known.metrics[tag].per_record for tag in tags):
        return None
    pipeline = Pipeline(known.only(_closure(known, tags)), path / "none", "0")
    profiling = [phase.index for phase in plan.load.phases if phase.kind == "profiling"]
    numeric = [name for name in names if name in tags or name in _FIELDS or name == "error_code"]
    numbers: dict[str, list[Floats]] = {name: [np.empty(0)] for name in numeric}
    texts: dict[str, list[str | None]] = {name: [] for name in names if name in _ERRORS and name != "error_code"}
    good = [np.empty(0, dtype=bool)]
    for batch in batches(path, plan):
        rows = np.flatnonzero(np.isin(batch["outcome"], _ENDED) & np.isin(batch["phase"], profiling))
        if not len(rows):
            continue
        scored = pipeline.score(batch) if tags else batch
        for tag in tags:
            if (values := _shown(scored, tag)) is None:
                return None
            numbers[tag].append(values[rows])
        for name in numbers.keys() & _FIELDS.keys():
            numbers[name].append(_instant(_FIELDS[name](batch), clock.started_wall_ns, name)[rows])
        good.append(batch.valid[rows])
        _take_errors(batch, rows, numbers, texts)
    joined = {name: np.concatenate(numbers.pop(name)) for name in [*numbers]}  # one after the other: none is there twice
    return ShownColumns(joined, texts, np.concatenate(good))


def _closure(known: Catalogue, tags: Collection[str]) -> set[str]:
    """The tags and all that they need."""
    found, waiting = set[str](), list(tags)
    while waiting:
        tag = waiting.pop()
        if tag not in found and tag in known.metrics:
            found.add(tag)
            waiting += known.metrics[tag].needs
    return found


def _shown(scored: RecordBatch, tag: str) -> Floats | None:
    """The metric's values in its display unit; None where it has lists, or could not be computed."""
    values: Column | None = scored.values.get(tag)
    if values is None or isinstance(values, Ragged):
        return None
    scale = scored.metrics[tag].scale
    inverse = float(round(1 / scale))
    shown: Floats = values / inverse if inverse >= 1 and 1 / inverse == scale else values * scale
    if tag not in scored.bounds:
        return shown
    low, high, _ = astuple(scored.bounds[tag])
    return np.where(low < high, np.round(shown, _ESTIMATE_DECIMALS), shown)


def _instant(values: Floats, wall_ns: int, name: str) -> Floats:
    """Instants since the run's start as wall-clock times, by way of exact integers; counts as they are."""
    if not name.endswith("_ns"):
        return values
    absent = np.isnan(values)
    exact = np.rint(np.where(absent, 0, values)).astype(np.int64) + wall_ns
    return np.where(absent, np.nan, exact.astype(np.float64))


def _over(batch: RecordBatch) -> Floats:
    started, ended, last = batch["started_ns"], batch["ended_ns"], batch["last_byte_ns"]
    return np.where(np.isnan(last), np.where(np.isnan(ended), started, ended), last)


_FIELDS: Mapping[str, Callable[[RecordBatch], Floats]] = {
    "request_start_ns": lambda batch: batch["started_ns"],
    "request_end_ns": _over,
    "due_ns": lambda batch: batch["due_ns"],
    "credit_issued_ns": lambda batch: np.where(np.isnan(batch["due_ns"]), batch["started_ns"], batch["due_ns"]),
    "session_num": lambda batch: batch["n"],
    "turn_index": lambda batch: batch["turn"],
}
"""Numbers of the metadata of a line."""


def _take_errors(
    batch: RecordBatch, rows: NDArray[np.intp], numbers: dict[str, list[Floats]], texts: dict[str, list[str | None]]
) -> None:
    if not texts and "error_code" not in numbers:
        return
    errors: list[Any] = [None] * len(rows)
    if not batch.valid[rows].all():
        every = batch.texts["error"]
        errors = [None if (text := every[row]) is None else _decode_error(text) for row in rows.tolist()]
    if "error_code" in numbers:
        codes = [np.nan if error is None or error.code is None else float(error.code) for error in errors]
        numbers["error_code"].append(np.array(codes, dtype=np.float64))
    for name, column in texts.items():
        field = name.removeprefix("error_")
        column += [None if error is None else getattr(error, field) for error in errors]
