"""A batch as lines: columns become lists once, rows are made and encoded without a Python loop over their cells."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import pairwise, repeat
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from aiperf import Column, Ragged, RecordBatch, Target, Unit, integers
from aiperf.sdk.journal import CANCELLED, COMPLETED, ERROR, OUTCOMES
from msgspec.structs import astuple

from aiperf_exporter_records.shape import Intervals, KnownValue, Metadata, Value
from aiperf_exporter_records.traces import NEEDED as TRACED
from aiperf_exporter_records.traces import traces

if TYPE_CHECKING:
    from aiperf.sdk.metric import MetricDeclaration
    from numpy.typing import NDArray

_COUNTED = {Unit.TOKENS, Unit.REQUESTS, Unit.COUNT, Unit.BYTES, Unit.NANOSECONDS}
_EXACT = 2.0**53
_ESTIMATE_DECIMALS = 9
"""Of estimates and their bounds: what is shown in ms has 0.001 ns.  A third of a gap had 17 digits, half of the file."""


def lines(batch: RecordBatch, target: Target) -> bytes:
    """The lines of a batch's requests that were answered, failed or were cancelled."""
    outcome = batch["outcome"]
    listed = np.flatnonzero((outcome == COMPLETED) | (outcome == ERROR) | (outcome == CANCELLED))
    values, declared, bounds = batch.values, batch.metrics, {tag: astuple(parts) for tag, parts in batch.bounds.items()}
    if len(listed) < len(batch):
        batch = _narrow(batch, listed)
        values = {tag: _take(column, listed) for tag, column in values.items()}
        bounds = {tag: tuple(_take(part, listed) for part in parts) for tag, parts in bounds.items()}
    if not len(batch):
        return b""
    # Made anew per batch, at 0.1 ms: a metric may have been switched off since the last one.
    shown = [tag for tag in _ordered(declared) if tag in values]
    metrics = _metrics(shown, [_values(values[tag], declared[tag], bounds.get(tag)) for tag in shown], len(batch))
    optional = [("trace_data", Any, None), ("error", Any, None)]
    line = msgspec.defstruct("Line", ["metadata", "metrics", *optional], omit_defaults=True, gc=False)
    made = map(line, _metadata(batch, target), metrics, traces(batch, values, target), _errors(batch))
    return msgspec.json.Encoder().encode_lines(list(made))


_NEEDED = (
    "outcome", "n", "session", "turn", "phase", "shard", "due_ns", "started_ns", "ack_ns", "first_byte_ns", "last_byte_ns",
    "ended_ns",
)  # fmt: skip


def _narrow(batch: RecordBatch, listed: NDArray[np.intp]) -> RecordBatch:
    """These requests with the columns that a line shows: the chunks of a batch are too much to copy for nothing."""
    needed = {*_NEEDED, *(TRACED if "trace" in batch.texts else ())}
    return RecordBatch(
        {name: batch[name][listed] for name in needed},
        batch.valid[listed],
        {name: [texts[i] for i in listed.tolist()] for name, texts in batch.texts.items()},
    )


def _take(column: Column, listed: NDArray[np.intp]) -> Column:
    return column.take(listed.astype(np.int64)) if isinstance(column, Ragged) else column[listed]


def _ordered(metrics: Mapping[str, MetricDeclaration]) -> list[str]:
    """Tags that a line shows, as the console orders them, the rest behind by name."""

    def key(tag: str) -> tuple[bool, int, str]:
        order = metrics[tag].order
        return (order is None, order or 0, tag)

    return sorted((tag for tag, metric in metrics.items() if metric.per_record and not metric.hidden), key=key)


def _metadata(batch: RecordBatch, target: Target) -> Iterable[Metadata]:
    started, ended, last = batch["started_ns"], batch["ended_ns"], batch["last_byte_ns"]
    due, wall = batch["due_ns"], target.started_wall_ns
    starts = integers(started, wall)
    over = np.where(np.isnan(last), np.where(np.isnan(ended), started, ended), last)
    # A transport sees the headers when it reads them, the kernel stamps the bytes behind them when they come.
    ack = np.minimum(batch["ack_ns"], np.fmin(batch["first_byte_ns"], over))
    cancelled = batch["outcome"] == CANCELLED
    phases = batch["phase"].astype(np.int64).tolist()
    kinds = [target.kinds[phase] for phase in phases]
    profiling = _profiling(target.kinds)
    sessions = _texts(batch, "session_id")
    return map(
        Metadata,
        integers(batch["n"]),
        integers(batch["turn"]),
        integers(np.where(np.isnan(due), started, due), wall),
        starts,
        integers(over, wall),
        kinds,
        phases,
        [target.phases[phase] for phase in phases],
        kinds,
        cancelled.tolist(),
        repeat(False),
        repeat(0),
        integers(due, wall),
        integers(ack, wall),
        integers(np.where(cancelled, ended, np.nan), wall),
        integers(batch["session"]),
        [profiling[phase] for phase in phases],
        _texts(batch, "request_id"),
        sessions,
        _texts(batch, "conversation_id"),
        _texts(batch, "worker"),
        [f"reducer-{shard % target.reducers}" for shard in batch["shard"].astype(np.int64).tolist()],
        sessions,
    )  # type: ignore[call-overload, unused-ignore]  # more iterables than the signature of map spells out


def _profiling(kinds: Sequence[str]) -> list[int | None]:
    """Number of each phase among the profiling ones; None for warmup."""
    counted = [sum(kind == "profiling" for kind in kinds[:i]) for i in range(len(kinds))]
    return [number if kind == "profiling" else None for number, kind in zip(counted, kinds, strict=True)]


def _texts(batch: RecordBatch, name: str) -> Sequence[str | None]:
    return batch.texts[name] if name in batch.texts else [None] * len(batch)


def _errors(batch: RecordBatch) -> Iterable[msgspec.Raw | None]:
    """Each request's error as the JSON it already is.  A request that failed without a word is given its outcome's."""
    texts = _texts(batch, "error")
    if batch.valid.all() and not any(texts):
        return repeat(None)
    outcomes, valid = batch["outcome"].astype(np.int64).tolist(), batch.valid.tolist()
    return [
        msgspec.Raw(text.encode()) if text else None if fine else msgspec.Raw(b'{"message":"%s"}' % OUTCOMES[outcome].encode())
        for text, fine, outcome in zip(texts, valid, outcomes, strict=True)
    ]


def _metrics(tags: list[str], columns: list[list[KnownValue | Value | None]], count: int) -> Iterable[Any]:
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


def _values(column: Column, metric: MetricDeclaration, bounds: tuple[Column, ...] | None) -> list[KnownValue | Value | None]:
    """A metric's value for each request; None where it has none."""
    if bounds is None:
        return _numbers(column, metric)
    found = _numbers(column, metric, _ESTIMATE_DECIMALS)
    low, high, slack = (part.values if isinstance(part, Ragged) else part for part in bounds)
    at = np.flatnonzero(low < high)
    begins = column.offsets if isinstance(column, Ragged) else np.arange(len(column) + 1)
    ends = np.searchsorted(at, begins)  # of each request's estimates
    counts = np.diff(ends)
    rows = np.flatnonzero(counts)
    if not len(rows):
        return found
    show = partial(_shower(metric), decimals=_ESTIMATE_DECIMALS)
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
    whole = metric.shown in _COUNTED
    # 35538758 ns / 1e6 is 35.538758, times 1e-6 it is 35.538757999999996: the quotient is rounded once.
    inverse = float(round(1 / metric.scale))
    exact = inverse >= 1 and 1 / inverse == metric.scale

    def show(values: NDArray[np.float64], decimals: int | None = None) -> list[Any]:
        scaled = values / inverse if exact else values * metric.scale
        if decimals is not None:
            scaled = np.round(scaled, decimals)
        found: list[Any] = scaled.tolist()
        if not whole:
            return found
        integral = (np.rint(scaled) == scaled) & (np.abs(scaled) < _EXACT)
        return [int(value) if fine else value for value, fine in zip(found, integral.tolist(), strict=True)]

    return show
