"""What the lines of a batch hold, as columns: for the lines themselves, and for tables of the same requests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import msgspec
import numpy as np
from aiperf import Column, Ragged, RecordBatch, Target, Unit
from aiperf.parts.journal import CANCELLED, OUTCOMES, OVERFLOWED, RECORDED
from aiperf.sdk.columns import REPEAT, SITE, Floats, reconnects
from msgspec.structs import astuple

from aiperf_exporter_records.traces import NEEDED as TRACED

if TYPE_CHECKING:
    from aiperf.sdk.metric import MetricDeclaration
    from numpy.typing import NDArray

COUNTED = {Unit.TOKENS, Unit.REQUESTS, Unit.COUNT, Unit.BYTES, Unit.NANOSECONDS}
"""Units whose values are whole numbers."""
ESTIMATE_DECIMALS = 9
"""Of estimates and their bounds: what is shown in ms has 0.001 ns.  A third of a gap had 17 digits, half of the file."""
_NEEDED = (
    "outcome", "n", "session", "turn", "phase", "shard", "due_ns", "started_ns", "ack_ns", "first_byte_ns", "last_byte_ns",
    "ended_ns", "reconnected", "resent", "lane",
)  # fmt: skip


class _Source(msgspec.Struct, frozen=True):
    """The text ``source`` of a batch."""

    source_trace_id: str | None = None
    source_outer_idx: int | None = None
    source_inner_idx: int | None = None
    source_kind: str | None = None


_read_source = msgspec.json.Decoder(_Source).decode


class Numbers(NamedTuple):
    """Whole numbers, NaN where a request has none.  instants: they are ns since the run's start."""

    values: Floats
    instants: bool = False


class Flags(NamedTuple):
    values: NDArray[np.bool_]


class Words(NamedTuple):
    """Texts of which there are few: a place among *words* for each request; None among them is absent."""

    places: NDArray[np.int64]
    words: Sequence[str | int | None]


class Texts(NamedTuple):
    """Texts, None where a request has none."""

    values: Sequence[str | None]


class Listed(NamedTuple):
    """The requests that have a line, *rows* of their batch.

    tags: the metrics that a line shows, in their order; values, bounds: by tag.
    """

    batch: RecordBatch
    tags: list[str]
    values: Mapping[str, Column]
    bounds: Mapping[str, tuple[Column, ...]]
    rows: NDArray[np.intp]


def listed(batch: RecordBatch) -> Listed:
    """The batch's requests that were answered, failed, were cancelled or were longer than the model's context."""
    rows = np.flatnonzero(np.isin(batch["outcome"], RECORDED))
    values, bounds = batch.values, {tag: astuple(parts) for tag, parts in batch.bounds.items()}
    # Made anew per batch, at 0.1 ms: a metric may have been switched off since the last one.
    tags = [tag for tag in _ordered(batch.metrics) if tag in values]
    if len(rows) < len(batch):
        batch = _narrow(batch, rows)
        values = {tag: _take(column, rows) for tag, column in values.items()}
        bounds = {tag: tuple(_take(part, rows) for part in parts) for tag, parts in bounds.items()}
    return Listed(batch, tags, values, bounds, rows)


def _narrow(batch: RecordBatch, rows: NDArray[np.intp]) -> RecordBatch:
    """These requests with the columns that a line shows: the chunks of a batch are too much to copy for nothing."""
    needed = {*_NEEDED, *({REPEAT, "depth", "held_turn"} & batch.columns.keys()), *(TRACED if "trace" in batch.texts else ())}
    return RecordBatch(
        {name: batch[name][rows] for name in needed},
        batch.valid[rows],
        batch.texts.take(rows.astype(np.int64)),
    )


def _take(column: Column, rows: NDArray[np.intp]) -> Column:
    return column.take(rows.astype(np.int64)) if isinstance(column, Ragged) else column[rows]


def _ordered(metrics: Mapping[str, MetricDeclaration]) -> list[str]:
    """Tags that a line shows, as the console orders them, the rest behind by name."""

    def key(tag: str) -> tuple[bool, int, str]:
        order = metrics[tag].order
        return (order is None, order or 0, tag)

    return sorted((tag for tag, metric in metrics.items() if metric.per_record and not metric.hidden), key=key)


def metadata(batch: RecordBatch, target: Target) -> dict[str, Numbers | Flags | Words | Texts]:
    """The fields of ``metadata``, in their order."""
    started, ended, last = batch["started_ns"], batch["ended_ns"], batch["last_byte_ns"]
    due, count = batch["due_ns"], len(batch)
    over = np.where(np.isnan(last), np.where(np.isnan(ended), started, ended), last)
    # A transport sees the headers when it reads them, the kernel stamps the bytes behind them when they come.
    ack = np.minimum(batch["ack_ns"], np.fmin(batch["first_byte_ns"], over))
    cancelled = batch["outcome"] == CANCELLED
    phases, trees = batch["phase"].astype(np.int64), "depth" in batch.columns
    kinds = Words(phases, target.kinds)
    sessions = Texts(_texts(batch, "session_id"))
    reducers = [f"reducer-{number}" for number in range(target.reducers)]
    return {
        "session_num": Numbers(batch["n"]),
        "turn_index": Numbers(batch["turn"]),
        "credit_issued_ns": Numbers(np.where(np.isnan(due), started, due), True),
        "request_start_ns": Numbers(started, True),
        "request_end_ns": Numbers(over, True),
        "benchmark_phase": kinds,
        "phase_index": Numbers(batch["phase"]),
        "phase_name": Words(phases, target.phases),
        "phase_kind": kinds,
        "was_cancelled": Flags(cancelled),
        "context_overflow_skip": Flags(batch["outcome"] == OVERFLOWED),
        "agent_depth": Numbers(batch["depth"] if trees else np.zeros(count)),
        "due_ns": Numbers(due, True),
        "request_ack_ns": Numbers(ack, True),
        "cancellation_time_ns": Numbers(np.where(cancelled, ended, np.nan), True),
        "conversation_num": Numbers(batch["session"]),
        "profiling_index": Numbers(_profiling(target.kinds)[phases]),
        "x_request_id": Texts(_texts(batch, "request_id")),
        "x_correlation_id": sessions,
        "conversation_id": Texts(_texts(batch, "conversation_id")),
        "worker_id": Texts(_texts(batch, "worker")),
        **({SITE: Texts(_texts(batch, SITE))} if SITE in batch.texts else {}),
        "record_processor_id": Words(batch["shard"].astype(np.int64) % target.reducers, reducers),
        **({"parent_correlation_id": Texts(batch.texts["parent_id"])} if trees else {}),
        "root_correlation_id": Texts(batch.texts["root_id"]) if trees else sessions,
        "lane": Numbers(batch["lane"]),
        **(
            {"held_by_correlation_id": Texts(batch.texts["held_id"]), "held_by_turn_index": Numbers(batch["held_turn"])}
            if trees else {}
        ),
        **_sources(batch),
        "reconnected": Texts(reconnects(batch)),
        "finish_reason": Texts(_texts(batch, "finish_reason")),
        **({REPEAT: Numbers(batch[REPEAT])} if REPEAT in batch.columns else {}),
    }


def _sources(batch: RecordBatch) -> dict[str, Numbers | Flags | Words | Texts]:
    """Where each request's record came from in the trace; nothing where the data set doesn't tell."""
    if "source" not in batch.texts:
        return {}
    known = [_Source() if text is None else _read_source(text) for text in batch.texts["source"]]
    outer = [np.nan if each.source_outer_idx is None else each.source_outer_idx for each in known]
    inner = [np.nan if each.source_inner_idx is None else each.source_inner_idx for each in known]
    return {
        "source_trace_id": Texts([each.source_trace_id for each in known]),
        "source_outer_idx": Numbers(np.array(outer, dtype=np.float64)),
        "source_inner_idx": Numbers(np.array(inner, dtype=np.float64)),
        "source_kind": Texts([each.source_kind for each in known]),
    }


def _profiling(kinds: Sequence[str]) -> Floats:
    """Number of each phase among the profiling ones; NaN for warmup."""
    counted = (sum(kind == "profiling" for kind in kinds[:i]) for i in range(len(kinds)))
    return np.array([number if kind == "profiling" else np.nan for number, kind in zip(counted, kinds, strict=True)])


def _texts(batch: RecordBatch, name: str) -> Sequence[str | None]:
    return batch.texts[name] if name in batch.texts else [None] * len(batch)


def errors(batch: RecordBatch) -> list[bytes | None]:
    """Each request's error as JSON; None for a good one.  One that failed without a word is given its outcome's; [] is none."""
    texts = _texts(batch, "error")
    if batch.valid.all() and not any(texts):
        return []
    outcomes, valid = batch["outcome"].astype(np.int64).tolist(), batch.valid.tolist()
    return [
        text.encode() if text else None if fine else b'{"message":"%s"}' % OUTCOMES[outcome].encode()
        for text, fine, outcome in zip(texts, valid, outcomes, strict=True)
    ]


def estimated(bounds: tuple[Column, ...]) -> NDArray[np.bool_]:
    """Which values of a metric, those of lists one behind the other, are estimates between these *bounds*."""
    low, high = (part.values if isinstance(part, Ragged) else part for part in bounds[:2])
    estimates: NDArray[np.bool_] = low < high
    return estimates


def scaled(values: Floats, metric: MetricDeclaration, estimates: NDArray[np.bool_] | bool = False) -> Floats:
    """Values in the metric's display unit; *estimates* have ESTIMATE_DECIMALS at most, the others all of theirs."""
    # 35538758 ns / 1e6 is 35.538758, times 1e-6 it is 35.538757999999996: the quotient is rounded once.
    inverse = float(round(1 / metric.scale))
    shown: Floats = values / inverse if inverse >= 1 and 1 / inverse == metric.scale else values * metric.scale
    return shown if estimates is False else np.where(estimates, np.round(shown, ESTIMATE_DECIMALS), shown)
