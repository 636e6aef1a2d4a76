"""A batch as lines of a part: where an item stands in the file, then the item."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
from aiperf import RecordBatch, Target, integers
from aiperf.parts.journal import CANCELLED, COMPLETED, ERROR
from aiperf.sdk.columns import ANSWER_TEXTS, REPEAT
from aiperf.sdk.exporter import visible
from aiperf_exporter_records.columns import COUNTED, Numbers, metadata, scaled
from msgspec import Struct

from aiperf_exporter_outputs.joining import PLACE

TAGS = (
    "input_sequence_length", "output_token_count", "output_sequence_length", "request_latency", "time_to_first_token",
    "inter_token_latency",
)  # fmt: skip
"""The metrics of an item, in its order; one that the request lacks is absent."""
_NAMES = ("session_num", "conversation_id", "turn_index", "x_request_id", "request_start_ns", "request_end_ns")


class Item(Struct, omit_defaults=True):
    """A request and what was generated: its reasoning, then its answer.  None where nothing was.

    repeat, settings: of a data set that repeats problems, or has settings that yield, as they were sent; else absent.
    """

    session_num: int | None
    conversation_id: str | None
    turn_index: int | None
    x_request_id: str | None
    request_start_ns: int | None
    request_end_ns: int | None
    metrics: dict[str, float]
    response_text: str | None
    repeat: int | None = None
    settings: msgspec.Raw | None = None


def lines(batch: RecordBatch, target: Target) -> bytes:
    """The lines of the profiling requests that were answered, failed or were cancelled."""
    outcome, phase = batch["outcome"], batch["phase"]
    profiling = [number for number, kind in enumerate(target.kinds) if kind == "profiling"]
    batch = batch.select(np.isin(outcome, (COMPLETED, ERROR, CANCELLED)) & np.isin(phase, profiling))
    if not len(batch):
        return b""
    known = metadata(batch, target)
    columns = [_cells(known[name], target.started_wall_ns) for name in _NAMES]
    texts = ([text or "" for text in batch.texts.get(name) or [None] * len(batch)] for name in ANSWER_TEXTS)
    generated = ["".join(both) or None for both in zip(*texts, strict=True)]
    encode = msgspec.json.Encoder().encode
    repeats = integers(batch[REPEAT]) if REPEAT in batch.columns else [None] * len(batch)
    settings = [text and msgspec.Raw(text) for text in batch.texts.get("settings") or [None] * len(batch)]
    items = map(Item, *columns, _metrics(batch), generated, repeats, settings)
    places = zip(batch["phase"].tolist(), batch["n"].tolist(), batch["turn"].tolist(), strict=True)
    return b"".join(
        PLACE.pack(*(int(part) if part == part else 0 for part in place)) + visible(encode(item)) + b"\n"
        for place, item in zip(places, items, strict=True)
    )


def _cells(column: Any, wall_ns: int) -> Sequence[Any]:
    if isinstance(column, Numbers):
        return integers(column.values, wall_ns if column.instants else 0)
    return list(column.values)


def _metrics(batch: RecordBatch) -> list[dict[str, float]]:
    found: list[dict[str, float]] = [{} for _ in range(len(batch))]
    for tag in TAGS:
        column, metric = batch.values.get(tag), batch.metrics.get(tag)
        if metric is None or not isinstance(column, np.ndarray):
            continue
        whole = metric.shown in COUNTED
        for item, value in zip(found, scaled(column, metric).tolist(), strict=True):
            if value == value:
                item[tag] = int(value) if whole and value == int(value) else value
    return found


__all__ = ["TAGS", "Item", "lines"]
