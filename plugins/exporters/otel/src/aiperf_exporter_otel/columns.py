"""A batch as a message: the values of its metrics, and what requests have in common."""

from __future__ import annotations

from math import isnan
from typing import TYPE_CHECKING

import numpy as np
from aiperf import Ragged, Unit
from aiperf.parts.journal import CANCELLED, COMPLETED, ERROR

from aiperf_exporter_otel.conventions import OTHER, error_type
from aiperf_exporter_otel.messages import MetricValues, RecordGroup, ReducedBatch

if TYPE_CHECKING:
    from aiperf import Column, Plan, RecordBatch
    from aiperf.sdk.metric import MetricDeclaration


def batch_message(batch: RecordBatch, plan: Plan, *, metrics: bool) -> ReducedBatch:
    """The requests that have a line in the per-request file: answered, failed or cancelled ones."""
    outcome = batch["outcome"]
    rows = np.flatnonzero((outcome == COMPLETED) | (outcome == ERROR) | (outcome == CANCELLED)).astype(np.int64)
    chosen = batch if len(rows) == len(batch) else batch.take(rows)
    reducer = int(chosen["shard"][0]) % plan.run.reducers if len(rows) else 0
    groups, group_of = _groups(chosen, plan)
    values = [_values(chosen.values[tag], metric) for tag, metric in chosen.metrics.items() if _told(chosen, tag, metric)]
    return ReducedBatch(reducer, len(rows), groups, group_of, tuple(values) if metrics else ())


def _told(batch: RecordBatch, tag: str, metric: MetricDeclaration) -> bool:
    return tag in batch.values and metric.per_record and not metric.hidden


def _groups(batch: RecordBatch, plan: Plan) -> tuple[tuple[RecordGroup, ...], bytes]:
    kinds = [phase.kind for phase in plan.load.phases]
    known: dict[RecordGroup, int] = {}
    places = []
    columns = (batch[name].tolist() for name in ("phase", "outcome", "status"))
    texts = (batch.texts[name] for name in ("worker", "model", "error"))
    for phase, outcome, status, worker, model, error in zip(*columns, *texts, strict=True):
        cancelled = outcome == CANCELLED
        kind = error_type(error, None if isnan(status) else int(status), cancelled=cancelled)
        failed = bool(kind) or outcome == ERROR
        group = RecordGroup(
            kinds[int(phase)], worker or "", model or "", cancelled, failed, kind or (OTHER if failed else "")
        )
        places.append(known.setdefault(group, len(known)))
    return tuple(known), np.asarray(places, dtype=np.int32).tobytes()


def _values(column: Column, metric: MetricDeclaration) -> MetricValues:
    try:
        second = 1 / metric.unit.per(Unit.SECONDS)
    except ValueError:  # no time
        second = 0.0
    if isinstance(column, Ragged):
        lists = column.values.astype(np.float64).tobytes(), column.offsets.astype(np.int64).tobytes()
    else:
        lists = column.astype(np.float64).tobytes(), b""
    return MetricValues(metric.tag, metric.title, str(metric.shown.value), metric.scale, second, *lists)


__all__ = ["batch_message"]
