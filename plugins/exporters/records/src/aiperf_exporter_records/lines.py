"""A batch as lines: bytes that all lines have stand once in a template, and only what differs is made for each line.

A line of a plain request has 60 values, of which 25 differ from line to line.  Each column of those is encoded at once and
divided at its commas.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np
from aiperf import Column, Metric, Ragged, RecordBatch, Target, integers
from aiperf.sdk.exporter import visible

from aiperf_exporter_records.columns import (
    COUNTED,
    Flags,
    Numbers,
    Texts,
    Words,
    errors,
    estimated,
    listed,
    metadata,
    scaled,
)  # fmt: skip
from aiperf_exporter_records.shape import Intervals
from aiperf_exporter_records.template import Template
from aiperf_exporter_records.traces import traces

if TYPE_CHECKING:
    from aiperf.sdk.columns import Floats
    from aiperf.sdk.metric import MetricDeclaration
    from numpy.typing import NDArray

log = logging.getLogger(__name__)
_EXACT = 2.0**53
"""From here on a float doesn't hold every whole number."""
_encode = msgspec.json.Encoder().encode


class _Cells(NamedTuple):
    """JSON for each line; *present*: the lines that have one, None are all."""

    values: Sequence[bytes]
    present: NDArray[np.bool_] | None = None


def lines(batch: RecordBatch, target: Target, off: dict[str, str]) -> bytes:
    """The lines of a batch's requests that were answered, failed or were cancelled.

    off: a sentence for each metric (by tag) whose ``details`` failed; their fields are left out.  Further ones are added.
    """
    declared, every = batch.metrics, batch
    batch, shown, values, bounds, rows = listed(batch)
    if not len(batch):
        return b""
    template = Template(len(batch))
    template.begin("metadata")
    for name, column in metadata(batch, target).items():
        _add(template, name, _of_metadata(column, target.started_wall_ns))
    template.end()
    template.begin("metrics")
    for tag in shown:
        unit = b',"unit":%b' % _encode(declared[tag].shown.value)
        if tag in bounds:
            _add(template, tag, _estimates(values[tag], declared[tag], bounds[tag], unit), b'{"value":', b"}")
        else:
            _add(template, tag, _values(values[tag], declared[tag]), b'{"value":', unit + b"}")
    template.end()
    _add(template, "trace_data", _some([None if trace is None else _encode(trace) for trace in traces(batch, values, target)]))
    _add(template, "error", _some(errors(batch)))
    for metric in declared.values():
        if isinstance(metric, Metric) and metric.detail_field and (texts := _details(metric, every, off)) is not None:
            _add(template, metric.detail_field, _some([texts[row] for row in rows.tolist()]))
    return visible(template.joined())


def _add(template: Template, name: str, cells: _Cells | bytes, begin: bytes = b"", end: bytes = b"") -> None:
    """Add a member whose value stands between *begin* and *end*.  bytes: all lines have this one, b"" is none."""
    if isinstance(cells, bytes):
        if cells:
            template.member(name, b"".join((begin, cells, end)))
    elif cells.present is None:
        template.varying_member(name, cells.values, begin, end)
    elif len(cells.values):
        template.rare_member(name, cells.values, np.flatnonzero(cells.present).tolist(), begin, end)


def _some(texts: Sequence[bytes | None]) -> _Cells:
    """Cells of texts of which any may be missing."""
    present = np.array([text is not None for text in texts], dtype=bool)
    found = [text for text in texts if text is not None]
    return _Cells(found, None if found and len(found) == len(texts) else present)


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


def _of_metadata(column: Numbers | Flags | Words | Texts, wall_ns: int) -> _Cells | bytes:
    if isinstance(column, Numbers):
        plus = wall_ns if column.instants else 0
        return _numbers(column.values, lambda known: integers(known, plus))
    if isinstance(column, Flags):
        return _words(column.values.astype(np.int64), (False, True))
    if isinstance(column, Words):
        return _words(column.places, column.words)
    return _texts(column.values)


def _words(places: NDArray[np.int64], words: Sequence[Any]) -> _Cells | bytes:
    encoded = [b"" if word is None else _encode(word) for word in words]
    if (places == places[0]).all():
        return encoded[int(places[0])]
    return _some([encoded[place] or None for place in places.tolist()])


def _texts(texts: Sequence[str | None]) -> _Cells | bytes:
    if texts.count(texts[0]) == len(texts):
        return b"" if texts[0] is None else _encode(texts[0])
    if None in texts:
        return _some([None if text is None else _encode(text) for text in texts])
    together = _encode(texts)
    if b"\\" in together:  # a quote in a text, perhaps
        return _Cells([_encode(text) for text in texts])
    return _Cells([b'"%b"' % text for text in together[2:-2].split(b'","')])


def _numbers(values: Floats, shown: Callable[[Floats], list[Any]]) -> _Cells | bytes:
    """*shown*: numbers as JSON has them."""
    present = np.isfinite(values)
    if not present.all():
        return _Cells(_apart(shown(values[present])), present) if present.any() else b""
    bits = values.view(np.int64)  # 0.0 and -0.0 are shown apart
    return _encode(shown(values[:1])[0]) if (bits == bits[0]).all() else _Cells(_apart(shown(values)))


def _apart(numbers: list[Any]) -> list[bytes]:
    return _encode(numbers)[1:-1].split(b",")


def _values(column: Column, metric: MetricDeclaration, estimates: NDArray[np.bool_] | bool = False) -> _Cells | bytes:
    """A metric's values."""
    if not isinstance(column, Ragged):
        return _numbers(scaled(column, metric, estimates), partial(_show, metric=metric))
    finite = np.isfinite(column.values)
    ends = column.offsets if finite.all() else np.concatenate(([0], np.cumsum(finite)))[column.offsets]
    flat = _show(scaled(column.values, metric, estimates)[finite], metric)
    return _some([_encode(flat[a:b]) if b > a else None for a, b in pairwise(ends.tolist())])


def _estimates(column: Column, metric: MetricDeclaration, bounds: tuple[Column, ...], unit: bytes) -> _Cells | bytes:
    """A metric's values with the unit, and with the intervals of those that are estimates."""
    cells = _values(column, metric, estimated(bounds))
    if isinstance(cells, bytes):
        cells = _Cells([cells] * (len(column.offsets) - 1 if isinstance(column, Ragged) else len(column))) if cells else cells
    if isinstance(cells, bytes):
        return cells
    count = len(cells.values) if cells.present is None else len(cells.present)
    ends = [unit] * count
    if found := [*_intervals(column, metric, bounds)]:
        texts = _encode([intervals for _, intervals in found])[2:-2].split(b"},{")  # none has an object in it
        for (row, _), text in zip(found, texts, strict=True):
            ends[row] = b'%b,"intervals":{%b}' % (unit, text)
    rows: Iterable[int] = range(count) if cells.present is None else np.flatnonzero(cells.present).tolist()
    return _Cells([value + ends[row] for row, value in zip(rows, cells.values, strict=True)], cells.present)


def _intervals(
    column: Column, metric: MetricDeclaration, bounds: tuple[Column, ...]
) -> Iterable[tuple[int, Intervals]]:
    """The requests with estimates, and their intervals."""
    low, high, slack = (part.values if isinstance(part, Ragged) else part for part in bounds)
    at = np.flatnonzero(estimated(bounds))
    begins = column.offsets if isinstance(column, Ragged) else np.arange(len(column) + 1)
    ends = np.searchsorted(at, begins)  # of each request's estimates
    counts = np.diff(ends)
    rows = np.flatnonzero(counts)
    if not len(rows):
        return

    def show(values: Floats) -> list[Any]:
        return _show(scaled(values, metric, estimates=True), metric)

    lower, upper, places = show(low[at]), show(high[at]), (at - np.repeat(begins[:-1], counts)).tolist()
    firsts, every = ends[rows], counts[rows] == np.diff(begins)[rows]
    slacks, positive = show(np.add.reduceat(slack[at], firsts)), np.add.reduceat(low[at], firsts) > 0
    spans = zip(rows.tolist(), firsts.tolist(), ends[rows + 1].tolist(), slacks, strict=True)
    for (row, a, b, off), has_lower, is_every in zip(spans, positive.tolist(), every.tolist(), strict=True):
        yield row, Intervals(upper[a:b], lower[a:b] if has_lower else [], [] if is_every else places[a:b], off or None)


def _show(shown: Floats, metric: MetricDeclaration) -> list[Any]:
    """Values in the display unit as JSON has them: whole numbers of what is counted, else floats."""
    found: list[Any] = shown.tolist()
    if metric.shown not in COUNTED:
        return found
    integral = (np.rint(shown) == shown) & (np.abs(shown) < _EXACT)
    if integral.all():
        whole_numbers: list[Any] = shown.astype(np.int64).tolist()
        return whole_numbers
    return [int(value) if fine else value for value, fine in zip(found, integral.tolist(), strict=True)]


__all__ = ["lines"]
