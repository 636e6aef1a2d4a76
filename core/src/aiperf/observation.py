"""What a worker wrote of each request, whole again: for whoever wants the bytes themselves.

A pass over the segments with memory for the requests in flight alone.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from aiperf import journal

_STEP_NS = 100_000
_SENT, _DONE, _CHUNK = len(journal.SENT_FIELDS), len(journal.DONE_FIELDS), len(journal.CHUNK_FIELDS)


class Observation(Struct):
    """A request that is over.

    sent, done: SENT_FIELDS and DONE_FIELDS of :mod:`aiperf.journal` by name.  texts: its TEXT entries by kind.  reads: of
    each its instant (monotonic ns; the kernel's receive stamp where there is one) and the bytes of body.
    """

    sent: dict[str, int]
    done: dict[str, int]
    texts: dict[str, Any]
    reads: list[tuple[int, bytes]]


def observations(directory: Path, shard: int) -> Iterator[Observation]:
    """Every request of the shard that is over, in the order in which they ended.  *directory* is the journal's."""
    open_now: dict[int, Observation] = {}
    clock = _Clock()
    for path in journal.numbered(directory, f"shard-{shard}.*.seg"):
        for frame in journal.frames(path):
            offset = clock.offset(frame)
            if frame.kind == journal.SENT:
                for row in _rows(frame.payload, _SENT):
                    sent = dict(zip(journal.SENT_FIELDS, row, strict=True))
                    open_now[sent["request"]] = Observation(sent, {}, {}, [])
            elif frame.kind == journal.CHUNKS:
                _take_chunks(frame, offset, open_now)
            elif frame.kind == journal.TEXT:
                for request, kind, value in msgspec.msgpack.decode(frame.payload):
                    if request in open_now:
                        open_now[request].texts[kind] = value
            elif frame.kind == journal.DONE:
                for row in _rows(frame.payload, _DONE):
                    over = open_now.pop(row[0], None)
                    if over is not None:
                        over.done = dict(zip(journal.DONE_FIELDS, row, strict=True))
                        yield over


def _rows(payload: bytes, width: int) -> Iterator[tuple[int, ...]]:
    numbers = array("q", payload)
    return (tuple(numbers[at : at + width]) for at in range(0, len(numbers), width))


def _take_chunks(frame: journal.Frame, offset: int | None, open_now: dict[int, Observation]) -> None:
    at = frame.count * _CHUNK * 8
    for request, kernel_ns, read_ns, size, _ in _rows(frame.payload[:at], _CHUNK):
        if request in open_now:
            placed = kernel_ns > 0 and offset is not None
            open_now[request].reads.append((kernel_ns - (offset or 0) if placed else read_ns, frame.payload[at : at + size]))
        at += size


class _Clock:
    """Wall clock less monotonic clock as of each flush; None for one in which the wall clock was set."""

    def __init__(self) -> None:
        self._at_ns = -1
        self._offset: int | None = None
        self._stepped = False

    def offset(self, frame: journal.Frame) -> int | None:
        now = frame.wall_ns - frame.mono_ns
        if frame.mono_ns != self._at_ns:  # the frames of one flush carry one reading of the clocks
            self._stepped = self._offset is not None and abs(now - self._offset) > _STEP_NS
            self._at_ns, self._offset = frame.mono_ns, now
        return None if self._stepped else now
