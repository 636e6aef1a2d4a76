"""What a reducer writes of each batch for the per-request table: a block of arrays, which the parent puts together.

A block has the lengths of its two pieces, its :class:`Head`, and the arrays of its columns.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
from aiperf import Ragged, RecordBatch, Target
from aiperf.sdk.columns import BOUND_COLUMNS
from aiperf_exporter_records.columns import (
    Flags,
    Listed,
    Numbers,
    Texts,
    Words,
    errors,
    estimated,
    listed,
    metadata,
    scaled,
)
from msgspec import Struct

LENGTHS = struct.Struct("<II")
ESTIMATED_GAPS = "estimated_gaps"
"""The column that says how many of a request's gaps are estimates, because reads were merged."""
ABSENT = -1
"""Length of a text or list that is absent."""


class Piece(Struct, array_like=True, frozen=True):
    """A column of a batch.  first: the first request with a value.  at: place of its arrays in the block; sizes: their bytes.

    kind says what the arrays are: of ``whole`` numbers and ``instants`` (ns since the run's start) float64, NaN where absent,
    likewise of a ``number``; of ``flags`` a byte each; of ``words`` int32, places among *words*; of a ``text`` the lengths
    (int32) and all of it in UTF-8; of a ``list`` the lengths (int32) and all numbers.
    """

    name: str
    kind: str
    first: int
    at: int
    sizes: tuple[int, ...]
    unit: str = ""
    words: tuple[str | None, ...] = ()


class Head(Struct, array_like=True, frozen=True):
    """Columns that have a value, each kind in the order in which requests have them first."""

    count: int
    metadata: list[Piece]
    metrics: list[Piece]
    errors: list[Piece]


def block(batch: RecordBatch, target: Target) -> bytes:
    """The block of a batch; nothing where it has no request that the table lists."""
    found = listed(batch)
    if not len(found.batch):
        return b""
    body = _Body()
    about = [body.metadata(name, column) for name, column in metadata(found.batch, target).items()]
    shown = [body.metric(tag, found, batch.metrics[tag]) for tag in found.tags]
    shown.append(body.metadata(ESTIMATED_GAPS, Numbers(_estimated_gaps(found.batch))))
    wrong = body.errors(errors(found.batch))
    order = [sorted(filter(None, pieces), key=lambda piece: piece.first) for pieces in (about, shown, wrong)]
    head = msgspec.msgpack.encode(Head(len(found.batch), *order))
    return b"".join((LENGTHS.pack(len(head), body.size), head, *body.arrays))


def _estimated_gaps(batch: RecordBatch) -> Any:
    """For each request, the gaps between chunks that are known as intervals alone; NaN for one without gaps."""
    if "gap_ns" not in batch.columns:
        return np.full(len(batch), np.nan)
    gaps = batch.lists("gap_ns")
    counts = np.diff(gaps.offsets).astype(np.float64)
    estimated = np.zeros(len(batch))
    if all(name in batch.columns for name in BOUND_COLUMNS[:2]):
        low, high = (batch.lists(name).values for name in BOUND_COLUMNS[:2])
        owners = np.repeat(np.arange(len(batch)), np.diff(gaps.offsets))
        estimated = np.bincount(owners[low < high], minlength=len(batch)).astype(np.float64)
    return np.where(counts > 0, estimated, np.nan)


class _Body:
    """The arrays of a block.  Each method gives a column's piece; None where no request has a value."""

    def __init__(self) -> None:
        self.arrays: list[bytes] = []
        self.size = 0

    def _add(self, name: str, kind: str, present: Any, *arrays: bytes, unit: str = "", words: Any = ()) -> Piece | None:
        first = int(present.argmax())
        if not present[first]:
            return None
        piece = Piece(name, kind, first, self.size, tuple(map(len, arrays)), unit, tuple(words))
        self.arrays += arrays
        self.size += sum(piece.sizes)
        return piece

    def metadata(self, name: str, column: Numbers | Flags | Words | Texts) -> Piece | None:
        if isinstance(column, Numbers):
            kind = "instants" if column.instants else "whole"
            return self._add(name, kind, ~np.isnan(column.values), column.values.tobytes())
        if isinstance(column, Flags):
            return self._add(name, "flags", np.ones(len(column.values), dtype=bool), column.values.tobytes())
        if isinstance(column, Words):
            places = column.places.astype("<i4")
            return self._add(name, "words", places >= 0, places.tobytes(), words=column.words)
        return self._text(name, column.values)

    def _text(self, name: str, texts: Sequence[str | None]) -> Piece | None:
        encoded = [None if text is None else text.encode() for text in texts]
        lengths = np.array([ABSENT if text is None else len(text) for text in encoded], dtype="<i4")
        return self._add(name, "text", lengths != ABSENT, lengths.tobytes(), b"".join(filter(None, encoded)))

    def metric(self, tag: str, found: Listed, declared: Any) -> Piece | None:
        column, unit = found.values[tag], declared.shown.value
        estimates = estimated(found.bounds[tag]) if tag in found.bounds else False
        if not isinstance(column, Ragged):
            values = scaled(np.where(np.isfinite(column), column, np.nan), declared, estimates)
            return self._add(tag, "number", ~np.isnan(values), values.tobytes(), unit=unit)
        finite = np.isfinite(column.values)
        lengths = np.diff(np.concatenate(([0], np.cumsum(finite)))[column.offsets]).astype("<i4")
        lengths[lengths == 0] = ABSENT
        values = scaled(column.values, declared, estimates)[finite]
        return self._add(tag, "list", lengths != ABSENT, lengths.tobytes(), values.tobytes(), unit=unit)

    def errors(self, told: Sequence[bytes | None]) -> list[Piece | None]:
        if not told:
            return []
        decoded = [{} if text is None else msgspec.json.decode(text) for text in told]
        codes = np.array([np.nan if (code := error.get("code")) is None else code for error in decoded], dtype=np.float64)
        texts = [self._text(f"error_{name}", [error.get(name) for error in decoded]) for name in ("type", "message")]
        return [self.metadata("error_code", Numbers(codes)), *texts]
