"""Folds on disk: ``journal/telemetry-<n>.folds``, which a source's process writes while it samples, beside its samples.

Each piece is msgpack behind its length (4 bytes, little-endian): lists of :class:`Part` as their windows are over, and at the
end :class:`Contents`.  Until then the file's name ends in ``.draft``, and nobody reads it: the samples have all that it has.
"""

from __future__ import annotations

import contextlib
import logging
import os
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np
from aiperf.sdk.descriptor import PluginRef
from aiperf.sdk.series import MOST_SLICES, Line, RunningSeries, Sample, SeriesHeader, SourceHeader, Window
from msgspec import Struct

from aiperf_series_by_time.folds import Fold, Part
from aiperf_series_by_time.tallies import Tally
from aiperf_series_by_time.windows import NEVER, Windows

log = logging.getLogger(__name__)

_HOLD_NS = 2_000_000_000
"""The end of a phase is known to a source's process so much later, at most; samples wait as long."""
_MOST_WAITING = 1000
"""Samples that wait."""
_SLICES_AT_ONCE = 1024
"""Slices that are in memory together."""


class Contents(Struct, frozen=True):
    """The end of the file.  Parts number the windows in *phases* and *slices*."""

    ref: PluginRef
    interval_s: float
    targets: list[Tally]
    series: list[SeriesHeader]
    phases: list[Window]
    slices: list[Window]

    @classmethod
    def of(cls, origin: SourceHeader, fold: Fold, phases: Iterable[Window], slices: Iterable[Window]) -> Contents:
        return cls(origin.ref, origin.interval_s, fold.tallies.all(origin), fold.series, [*phases], [*slices])


class RunningFold(RunningSeries):
    """Folds samples while they come, into the file *path*.

    slices: the phase that has time slices, and their length in ns.

    Raises:
        OSError: The disk can't be written; so do the methods.
    """

    def __init__(self, path: Path, slices: tuple[int, int] | None) -> None:
        self._path = path
        self._sliced, self._width_ns = (-1, 0) if slices is None else slices
        draft = path.with_suffix(".draft")
        self._draft = os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600), "wb")
        self._phases, self._slices, self._ended = Windows(), Windows(), list[Window]()
        self._fold = Fold(self._write, self._phases, self._slices)
        self._origin: SourceHeader | None = None
        self._waiting: deque[Line] = deque()
        self._open: tuple[int, int] | None = None
        """The running phase and its begin."""
        self._exact = True

    def take(self, line: Line) -> None:
        """Take a line of the samples.  It waits until the phase in which it was taken surely goes on."""
        if isinstance(line, SourceHeader):
            self._origin = line
        if isinstance(line, SourceHeader) or not self._exact:
            return
        self._waiting.append(line)
        if self._open is not None and isinstance(line, Sample):
            self._release(line.moment.at_ns - _HOLD_NS)

    def begin(self, phase: int, begin_ns: int) -> None:
        """The phase has begun."""
        self._open = phase, begin_ns
        self._phases.append(np.array([begin_ns]), np.array([NEVER]))
        if phase == self._sliced:
            self._more_slices(begin_ns)

    def end(self, phase: int, end_ns: int) -> None:
        """The phase has ended; later samples were taken already, among them the one at the end."""
        if self._open is None or self._open[0] != phase or self._fold.latest_ns > end_ns:
            self._exact = False  # the begin was missed, or what was folded belongs to no phase
            self._waiting.clear()
        if self._open is None or not self._exact:
            return
        begin_ns = self._open[1]
        self._phases.finish(len(self._ended), end_ns)
        self._ended.append(Window(phase, begin_ns, end_ns))
        if phase == self._sliced:
            self._more_slices(end_ns)
            self._slices.finish(0, end_ns)
        self._open = None
        self._release(NEVER)
        self._draft.flush()

    def close(self) -> None:
        """Write what is left, and give the file its name, if it has all phases from begin to end."""
        if self._origin is not None and self._open is None and self._exact:
            self._release(NEVER)
            self._fold.close()
            slices = self._slices.all(self._sliced)
            self._write(Contents.of(self._origin, self._fold, self._ended, slices))
            self._draft.close()
            self._path.with_suffix(".draft").replace(self._path)
        else:
            self.drop()

    def drop(self) -> None:
        """Leave the folding to whoever makes the summary."""
        with contextlib.suppress(OSError):
            self._draft.close()
        self._path.with_suffix(".draft").unlink(missing_ok=True)

    def _release(self, until_ns: int) -> None:
        """Fold what waits and was taken by then."""
        while self._waiting:
            line = self._waiting[0]
            if isinstance(line, Sample):
                latest_ns = _latest_ns(line)
                if latest_ns > until_ns and len(self._waiting) <= _MOST_WAITING:
                    return
                if self._open is not None and self._open[0] == self._sliced:
                    self._more_slices(latest_ns)
            self._fold.take(self._waiting.popleft())

    def _more_slices(self, until_ns: int) -> None:
        """Slices of the open phase until after that time, several at once."""
        assert self._open is not None
        count, begin_ns, width_ns = len(self._slices), self._open[1], self._width_ns
        if until_ns >= begin_ns + count * width_ns and count < MOST_SLICES:
            more = min(MOST_SLICES, (until_ns - begin_ns) // width_ns + _SLICES_AT_ONCE) - count
            begins = begin_ns + width_ns * np.arange(count, count + more)
            self._slices.append(begins, begins + width_ns)

    def _write(self, piece: list[Part] | Contents) -> None:
        data = msgspec.msgpack.encode(piece)
        self._draft.write(len(data).to_bytes(4, "little") + data)


def _latest_ns(sample: Sample) -> int:
    """The latest time of its values."""
    moment = sample.moment
    return moment.at_ns + max((wall_ns - moment.wall_ns for _, wall_ns, _ in sample.timed), default=0)


def begun(windows: Iterable[Window]) -> list[Window]:
    """The windows without those of phases that never began."""
    return [each for each in windows if each.end_ns > each.begin_ns]


class StoredFolds(NamedTuple):
    contents: Contents
    parts: list[Part]


_decode_parts, _decode_contents = msgspec.msgpack.Decoder(list[Part]).decode, msgspec.msgpack.Decoder(Contents).decode


def read_folds(path: Path, windows: Sequence[Window], slices: Sequence[Window]) -> StoredFolds | None:
    """What was folded over exactly these windows; None where there is no such file.

    Windows without a duration, of phases that never began, are no windows here.
    """
    if not path.is_file():
        return None
    try:
        *pieces, last = _pieces(path.read_bytes())
        contents = _decode_contents(last)
        if contents.phases != begun(windows):
            return None
        if slices and contents.slices != list(slices):
            return None
        return StoredFolds(contents, [part for piece in pieces for part in _decode_parts(piece)])
    except (ValueError, msgspec.MsgspecError):  # damaged
        log.warning("%s is damaged; its samples are folded again", path)
        return None


def _pieces(data: bytes) -> Iterator[bytes]:
    at = 0
    while at < len(data):
        size = int.from_bytes(data[at : at + 4], "little")
        at += 4 + size
        yield data[at - size : at]
