"""A batch as lines of the ledger."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat, starmap
from typing import Annotated, Any

import msgspec
import numpy as np
from aiperf import RecordBatch, Target, integers
from aiperf.parts.journal import ERROR, OUTCOMES, RECORDED
from aiperf.sdk.columns import RECONNECTS, SITE, reconnects
from aiperf.sdk.exporter import visible
from msgspec import Meta, Struct

from aiperf_exporter_arrivals.record_line import RECORD_LINE

_CUT, _FAULT = "cut", 1
"""The outcome of an error whose answer began and broke off, and its value in the column ``fault``."""

WallNs = Annotated[int, Meta(description="Wall clock, ns since 1970; absent where it never came to that.")]
Reconnected = Annotated[str, Meta(pattern=f"^({'|'.join(RECONNECTS)})$", description="Why it went to a new connection.")]


class Leg(Struct, frozen=True, omit_defaults=True, gc=False):
    """One of several exchanges of a request."""

    started_ns: WallNs
    ended_ns: WallNs
    first_byte_ns: WallNs | None = None
    status: int | None = None
    polled: Annotated[bool, Meta(description="It began after a wait, to ask again.")] = False


class Arrival(Struct, frozen=True, omit_defaults=True, gc=False):
    """One planned arrival, or a turn of a tree that has begun."""

    phase: str
    phase_index: int
    outcome: Annotated[str, Meta(pattern=f"^({'|'.join((*OUTCOMES, _CUT))})$")]
    n: Annotated[int, Meta(description="Number of the arrival in its phase; absent for turns that were none.")] | None = None
    session: Annotated[int, Meta(description="Number of the session in its phase.")] | None = None
    turn: Annotated[int, Meta(description="Index of the turn in its conversation.")] | None = None
    stream: Annotated[int, Meta(description="Number of the conversation in its tree, 0 for the root.")] | None = None
    conversation_id: Annotated[str, Meta(description="Of the conversation, where the data set has trees.")] | None = None
    lane: Annotated[int, Meta(description="Of the tree, where it is in one.")] | None = None
    worker: str | None = None
    site: Annotated[str, Meta(description="Of the worker, in a run with sites.")] | None = None
    url: str | None = None
    x_request_id: str | None = None
    due_ns: Annotated[WallNs, Meta(description="Absent where nothing was scheduled.")] | None = None
    started_ns: WallNs | None = None
    connected_ns: WallNs | None = None
    sent_ns: Annotated[WallNs, Meta(description="First byte handed to the kernel.")] | None = None
    sent_end_ns: Annotated[WallNs, Meta(description="Last byte handed to the kernel.")] | None = None
    first_byte_ns: Annotated[WallNs, Meta(description="First bytes of the body.")] | None = None
    last_byte_ns: WallNs | None = None
    ended_ns: Annotated[WallNs, Meta(description="When it was over, answered or not.")] | None = None
    record_line: Annotated[int, Meta(description="Number of the line in profile_export.jsonl, from 1.")] | None = None
    reconnected: Reconnected | None = None
    legs: Annotated[list[Leg], Meta(description="Exchanges of a request that can take several, in order.")] | None = None


_STAMPS = ("due_ns", "started_ns", "connected_ns", "sent_ns", "sent_end_ns", "first_byte_ns", "last_byte_ns", "ended_ns")


_read_legs = msgspec.json.Decoder(list[Leg]).decode


def schema() -> dict[str, Any]:
    """The JSON Schema of a line; the package carries it as ``profile_export_arrivals.schema.json``."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A line of profile_export_arrivals.jsonl",
        **msgspec.json.schema(Arrival),
    }


def lines(batch: RecordBatch, target: Target) -> bytes:
    """One line per arrival of the batch; recorded ones with :data:`RECORD_LINE` for the number of their record's line."""
    phases = batch["phase"].astype(np.int64).tolist()
    outcomes = batch["outcome"].astype(np.int64)
    cut = (outcomes == ERROR) & (batch["fault"] == _FAULT)
    recorded, trees = msgspec.Raw(RECORD_LINE), "stream" in batch.columns
    columns = (
        [target.phases[phase] for phase in phases],
        phases,
        [_CUT if broken else OUTCOMES[outcome] for outcome, broken in zip(outcomes.tolist(), cut.tolist(), strict=True)],
        integers(batch["n"]),
        integers(batch["session"]),
        integers(batch["turn"]),
        integers(batch["stream"]) if trees else repeat(None),
        batch.texts["conversation_id"] if trees else repeat(None),
        integers(batch["lane"]),
        _texts(batch, "worker"),
        batch.texts[SITE] if SITE in batch.texts else repeat(None),
        _texts(batch, "url"),
        _texts(batch, "request_id"),
        *(integers(batch[name], target.started_wall_ns) for name in _STAMPS),
        [recorded if listed else None for listed in np.isin(outcomes, RECORDED).tolist()],
        reconnects(batch),
        [_legs(text, target.started_wall_ns) for text in batch.texts["legs"]] if "legs" in batch.texts else repeat(None),
    )
    arrivals = starmap(Arrival, zip(*columns, strict=False))  # the last may be endless
    return visible(msgspec.json.Encoder().encode_lines(list(arrivals)))


def _legs(text: str | None, wall_ns: int) -> list[Leg] | None:
    """Exchanges in ns since the run's start, on the wall clock."""
    return None if text is None else [_on_wall_clock(leg, wall_ns) for leg in _read_legs(text)]


def _on_wall_clock(leg: Leg, wall_ns: int) -> Leg:
    first_ns = None if leg.first_byte_ns is None else leg.first_byte_ns + wall_ns
    return Leg(leg.started_ns + wall_ns, leg.ended_ns + wall_ns, first_ns, leg.status, leg.polled)


def _texts(batch: RecordBatch, name: str) -> Sequence[str | None]:
    return batch.texts[name] if name in batch.texts else [None] * len(batch)
