"""What a reducer and the run tell the process that sends."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import msgspec
from msgspec import Struct

LENGTH = 4
"""Bytes of the length before each message of a reducer, the greatest first."""


class RecordGroup(Struct, frozen=True):
    """What some requests of a batch have in common.  error: ``error.type`` of the conventions, "" for a good one."""

    phase: str
    worker: str
    model: str
    cancelled: bool = False
    failed: bool = False
    error: str = ""


class MetricValues(Struct, frozen=True):
    """A metric of a batch.  values: float64 in base units, NaN is absent.

    offsets: int64, where each request has a list, at which its values begin, and their end; b"" for one value each.
    factor: from the base unit to *unit*, that of files.  second: base units in a second; 0 where it is no time.
    """

    tag: str
    title: str
    unit: str
    factor: float
    second: float
    values: bytes
    offsets: bytes = b""


class ReducedBatch(Struct, frozen=True, tag=True):
    """Finished requests of a reducer.  group_of: int32, the index into *groups* for each of *count* requests."""

    reducer: int
    count: int
    groups: tuple[RecordGroup, ...]
    group_of: bytes
    metrics: tuple[MetricValues, ...] = ()


class ReducerEnd(Struct, frozen=True, tag=True):
    """A reducer has told all.  dropped: requests for which there was no room."""

    reducer: int
    dropped: int


FromReducer: TypeAlias = ReducedBatch | ReducerEnd


class StreamStart(Struct, frozen=True, tag=True):
    """The first message of the run.

    address: of the socket for reducers, a path.  interval_s, most_records, request_s: as in ``Limits``.
    provider, operation: ``gen_ai.provider.name`` and ``gen_ai.operation.name``.
    """

    url: str
    address: str
    resource: dict[str, str]
    provider: str
    operation: str
    reducers: int
    interval_s: float
    most_records: int
    request_s: float


class PhaseCounts(Struct, frozen=True, tag=True):
    """Live numbers of a phase, since its begin.  timed_out: it ended because its duration was over; None until it ends."""

    phase: str
    kind: str
    sent: int
    completed: int
    errors: int
    in_flight: int
    elapsed_s: float
    timed_out: bool | None = None


class StreamFinish(Struct, frozen=True, tag=True):
    """Reducers have told all, or will soon: send the rest."""


FromRun: TypeAlias = StreamStart | PhaseCounts | StreamFinish


class StreamReady(Struct, frozen=True, tag=True):
    """Reducers may connect."""


class StreamTrouble(Struct, frozen=True, tag=True):
    """Nothing has arrived, for the first time."""

    why: str


class StreamDone(Struct, frozen=True, tag=True):
    """The last sending is over.  why: it failed; None where all has arrived.  dropped: requests that no reducer had room for.

    missing: reducers that have not told all in time.
    """

    why: str | None = None
    dropped: int = 0
    missing: int = 0


FromStream: TypeAlias = StreamReady | StreamTrouble | StreamDone

decode_reducer: Callable[[bytes], FromReducer] = msgspec.msgpack.Decoder(FromReducer).decode
decode_run: Callable[[bytes], FromRun] = msgspec.json.Decoder(FromRun).decode
decode_stream: Callable[[bytes], FromStream] = msgspec.json.Decoder(FromStream).decode
