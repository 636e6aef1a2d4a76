"""A batch as lines: columns become lists once, rows are made and encoded without a Python loop over their cells."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import pairwise, repeat
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from aiperf import Column, Metric, Ragged, RecordBatch, Target, integers

from aiperf_exporter_records.columns import (
    COUNTED,
    ESTIMATE_DECIMALS,
    Flags,
    Numbers,
    Texts,
    Words,
    errors,
    listed,
    metadata,
    scaled,
)  # fmt: skip
from aiperf_exporter_records.shape import Intervals, KnownValue, Metadata, Value
from aiperf_exporter_records.traces import traces

if TYPE_CHECKING:
    from aiperf.sdk.metric import MetricDeclaration
    from numpy.typing import NDArray

log = logging.getLogger(__name__)
_EXACT = 2.0**53
_ENCODED_ONCE = 8
"""Lines from which on a value that all of them have is encoded once."""


def lines(batch: RecordBatch, target: Target, off: dict[str, str]) -> bytes:
    """The lines of a batch's requests that were answered, failed or were cancelled.

    off: a sentence for each metric (by tag) whose ``details`` failed; their fields are left out.  Further ones are added.
    """
    declared, every = batch.metrics, batch
    batch, shown, values, bounds, rows = listed(batch)
    if not len(batch):
        return b""
    metrics = _metrics(shown, [_values(values[tag], declared[tag], bounds.get(tag)) for tag in shown], len(batch))
    detailed = [metric for metric in declared.values() if isinstance(metric, Metric) and metric.detail_field]
    fields = {metric.detail_field: texts for metric in detailed if (texts := _details(metric, every, off)) is not None}
    optional = [(str(name), Any, None) for name in ("trace_data", "error", *fields)]
    line = msgspec.defstruct("Line", ["metadata", "metrics", *optional], omit_defaults=True, gc=False)
    cells = [_cells(column, target.started_wall_ns) for column in metadata(batch, target).values()]
    wrong = [None if text is None else msgspec.Raw(text) for text in errors(batch)] or repeat(None)
    details = [_raw(texts, rows) for texts in fields.values()]
    made = map(line, map(Metadata, *cells), metrics, traces(batch, values, target), wrong, *details)
    return msgspec.json.Encoder().encode_lines(list(made))


def _details(metric: Metric, batch: RecordBatch, off: dict[str, str]) -> Sequence[bytes | None] | None:
    """The metric's field for each request; None where its code fails, which is said once, of the metric's package."""
    if metric.tag in off:
        return None
    try:
        texts = metric.details(batch)
        if len(texts) == len(batch):
            return texts
        why = f"details() returned {len(texts)} values for {len(batch)} requests"
    except (Exception, SystemExit) as error:  # code of a plugin
        log.debug("traceback:", exc_info=error)
        why = f"details() failed: {type(error).__name__}: {error}"
    package = type(metric).__module__.partition(".")[0]
    off[metric.tag] = f"metric {metric.tag} of {package}: {why}; its records have no {metric.detail_field} from here on"
    return None


def _raw(texts: Sequence[bytes | None], rows: NDArray[np.intp]) -> list[msgspec.Raw | None]:
    """The texts of these requests, as they are."""
    return [None if (text := texts[row]) is None else msgspec.Raw(text) for row in rows.tolist()]


def _cells(column: Numbers | Flags | Words | Texts, wall_ns: int) -> Sequence[Any]:
    """A column of the metadata as values of a line."""
    if isinstance(column, Numbers):
        return integers(column.values, wall_ns if column.instants else 0)
    if isinstance(column, Words):
        return [column.words[place] for place in column.places.tolist()]
    return column.values.tolist() if isinstance(column, Flags) else column.values


def _metrics(tags: list[str], columns: list[list[Any]], count: int) -> Iterable[Any]:
    """One object per request, with the metrics it has."""
    if not tags:
        return repeat({}, count)
    names = [f"metric_{i}" for i in range(len(tags))]  # a tag need not be a Python name
    shape = msgspec.defstruct(
        "Metrics",
        [(name, Any, None) for name in names],
        rename=dict(zip(names, tags, strict=True)),
        omit_defaults=True,
        gc=False,
    )
    return map(shape, *columns)


def _values(column: Column, metric: MetricDeclaration, bounds: tuple[Column, ...] | None) -> list[Any]:
    """A metric's value for each request; None where it has none."""
    if bounds is None:
        return _constant(column, metric) or _numbers(column, metric)
    found = _numbers(column, metric, ESTIMATE_DECIMALS)
    low, high, slack = (part.values if isinstance(part, Ragged) else part for part in bounds)
    at = np.flatnonzero(low < high)
    begins = column.offsets if isinstance(column, Ragged) else np.arange(len(column) + 1)
    ends = np.searchsorted(at, begins)  # of each request's estimates
    counts = np.diff(ends)
    rows = np.flatnonzero(counts)
    if not len(rows):
        return found
    show = partial(_shower(metric), decimals=ESTIMATE_DECIMALS)
    lower, upper, places = show(low[at]), show(high[at]), (at - np.repeat(begins[:-1], counts)).tolist()
    firsts, every = ends[rows], counts[rows] == np.diff(begins)[rows]
    slacks, positive = show(np.add.reduceat(slack[at], firsts)), np.add.reduceat(low[at], firsts) > 0
    spans = zip(rows.tolist(), firsts.tolist(), ends[rows + 1].tolist(), slacks, strict=True)
    for (row, a, b, off), has_lower, is_every in zip(spans, positive.tolist(), every.tolist(), strict=True):
        value = found[row]
        if value is not None:
            intervals = Intervals(upper[a:b], lower[a:b] if has_lower else [], [] if is_every else places[a:b], off or None)
            found[row] = Value(value.value, value.unit, intervals)
    return found


def _constant(column: Column, metric: MetricDeclaration) -> list[Any]:
    """The value of a column that has one alone, encoded once; empty for any other."""
    if isinstance(column, Ragged) or len(column) < _ENCODED_ONCE or np.isnan(column[0]):
        return []
    bits = column.view(np.int64)  # 0.0 and -0.0 are shown apart
    if not (bits == bits[0]).all():
        return []
    (value,) = _numbers(column[:1], metric)
    return [msgspec.Raw(msgspec.json.encode(value))] * len(column)


def _numbers(column: Column, metric: MetricDeclaration, decimals: int | None = None) -> list[KnownValue | Value | None]:
    """The same without intervals."""
    unit, show = metric.shown.value, partial(_shower(metric), decimals=decimals)
    if isinstance(column, Ragged):
        finite = np.isfinite(column.values)
        ends = column.offsets if finite.all() else np.concatenate(([0], np.cumsum(finite)))[column.offsets]
        flat = show(column.values[finite])
        return [KnownValue(flat[a:b], unit) if b > a else None for a, b in pairwise(ends.tolist())]
    present = np.isfinite(column)
    if present.all():
        return list(map(KnownValue, show(column), repeat(unit)))
    found: list[KnownValue | Value | None] = [None] * len(column)
    if present.any():
        for i, value in zip(np.flatnonzero(present).tolist(), show(column[present]), strict=True):
            found[i] = KnownValue(value, unit)
    return found


def _shower(metric: MetricDeclaration) -> Callable[..., list[Any]]:
    """Base unit to display unit: whole numbers of what is counted, else floats, of so many *decimals* at most."""
    whole = metric.shown in COUNTED

    def show(values: NDArray[np.float64], decimals: int | None = None) -> list[Any]:
        shown = scaled(values, metric, decimals)
        found: list[Any] = shown.tolist()
        if not whole:
            return found
        integral = (np.rint(shown) == shown) & (np.abs(shown) < _EXACT)
        if integral.all():
            whole_numbers: list[Any] = shown.astype(np.int64).tolist()
            return whole_numbers
        return [int(value) if fine else value for value, fine in zip(found, integral.tolist(), strict=True)]

    return show
