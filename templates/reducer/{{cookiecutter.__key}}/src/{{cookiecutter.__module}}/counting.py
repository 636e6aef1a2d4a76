"""Segments to counts."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
from aiperf.parts.journal import (
    DONE,
    DONE_FIELDS,
    OUTCOMES,
    SENT,
    SENT_FIELDS,
    TEXT,
    Frame,
    frames,
    segment_path,
)
from aiperf.sdk.model import ErrorDetails
from aiperf.sdk.redaction import private

_STARTED, _PHASE = SENT_FIELDS.index("started_ns"), SENT_FIELDS.index("phase")
_OUTCOME, _ENDED = DONE_FIELDS.index("outcome"), DONE_FIELDS.index("ended_ns")


class PhaseCounts(msgspec.Struct):
    """Requests of a phase.  outcomes: by name.  errors: by their JSON.  first_ns, last_ns: monotonic, the first start and the
    last end; 0 where there is none."""

    sent: int = 0
    outcomes: dict[str, int] = {}
    errors: dict[str, int] = {}
    first_ns: int = 0
    last_ns: int = 0


class Counts(msgspec.Struct):
    """What a reducer has counted.  phases: by index.  sent: by shard."""

    phases: dict[int, PhaseCounts] = {}
    sent: dict[int, int] = {}

    @property
    def ended(self) -> int:
        return sum(sum(phase.outcomes.values()) for phase in self.phases.values())

    def save(self, journal: Path, index: int) -> None:
        """Write the counts in one piece: a reducer may die at any instant, and its file may be there from before."""
        draft = journal / f"counts-{index}.draft"
        private(draft).write_bytes(msgspec.json.encode(self))
        draft.replace(journal / f"counts-{index}")

    @classmethod
    def saved(cls, journal: Path, index: int) -> Counts:
        return msgspec.json.decode((journal / f"counts-{index}").read_bytes(), type=cls)


class Cursor:
    """A place in the segments of one worker; what is behind it is in *counts*."""

    def __init__(self, journal: Path, shard: int, counts: Counts) -> None:
        self._journal, self._shard, self._counts = journal, shard, counts
        self._segment = self._offset = 0
        self._open: dict[int, PhaseCounts] = {}
        counts.sent[shard] = 0

    def read(self, until_s: float = math.inf) -> bool:
        """Count what is new, up to this instant of ``time.monotonic``; whether there was anything.

        A frame that is not written to its end is read another time.
        """
        moved = False
        while (path := segment_path(self._journal, self._shard, self._segment)).exists():
            # Looked for before the frames are read: a worker writes nothing to a segment once the next one is there.
            another = segment_path(self._journal, self._shard, self._segment + 1).exists()
            for frame in frames(path, self._offset):
                self._count(frame)
                self._offset, moved = frame.end, True
                if time.monotonic() > until_s:
                    return True
            if not another:
                break
            self._segment, self._offset = self._segment + 1, 0
        return moved

    def _count(self, frame: Frame) -> None:
        if frame.kind == SENT:
            for request, row in _rows(frame):
                phase = self._counts.phases.setdefault(row[_PHASE], PhaseCounts(first_ns=row[_STARTED]))
                phase.first_ns = min(phase.first_ns, row[_STARTED])
                phase.sent += 1
                self._counts.sent[self._shard] += 1
                self._open[request] = phase
        elif frame.kind == TEXT:
            for request, kind, value in msgspec.msgpack.decode(frame.payload):
                if kind == "error" and request in self._open:
                    error = msgspec.json.encode(msgspec.convert(value, ErrorDetails)).decode()
                    errors = self._open[request].errors
                    errors[error] = errors.get(error, 0) + 1
        elif frame.kind == DONE:
            for request, row in _rows(frame):
                if (ended := self._open.pop(request, None)) is not None:  # else the frame with its start is lost
                    outcome = OUTCOMES[row[_OUTCOME]]
                    ended.outcomes[outcome] = ended.outcomes.get(outcome, 0) + 1
                    ended.last_ns = max(ended.last_ns, row[_ENDED])


def _rows(frame: Frame) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Each request's number and row."""
    values = memoryview(frame.payload).cast("q")
    width = len(values) // max(frame.count, 1)
    for start in range(0, len(values), width or 1):
        yield values[start], tuple(values[start : start + width])
