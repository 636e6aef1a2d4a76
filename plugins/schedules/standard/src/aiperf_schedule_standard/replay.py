"""The scheduling mode that replays a trace at its recorded times."""

from __future__ import annotations

import logging
import math

import numpy as np
from aiperf import ConfigError
from aiperf.sdk.columns import Ints
from aiperf.sdk.plan import Replay
from aiperf.sdk.schedule import Conversations, ScheduleContext, SessionStarts
from numpy.typing import NDArray

log = logging.getLogger(__name__)

_NS_PER_MS = 1_000_000


def conversations_of(context: ScheduleContext) -> Conversations:
    """The phase's conversations.

    Raises:
        ConfigError: The context has no data set.
    """
    if context.data is None:
        raise ConfigError(f"the {context.phase.schedule} schedule needs a data set: its sessions follow from it")
    return context.data


def source_of(context: ScheduleContext) -> str:
    """The source of the conversations, for messages."""
    return context.source or "the data set"


class FixedSchedule:
    """A trace at its recorded times: every conversation of the window once, ordered by its first turn's time.

    Ties keep the file's order.  A conversation is kept or left out as a whole, by its first turn (spec: timing §13).

    Raises:
        ConfigError: A conversation has no time, or none begins inside the window.
    """

    paced = True
    spacing_ns = None

    def __init__(self, context: ScheduleContext) -> None:
        data, replay = conversations_of(context), context.phase.replay or Replay()
        begins_ns = np.array([data.timestamp_ns(entry, 0) for entry in range(data.count)], dtype=np.int64)
        without = np.flatnonzero(begins_ns < 0)
        if len(without):
            raise ConfigError(
                f"{source_of(context)} has no 'timestamp' in the first turn of {len(without)} of its {len(begins_ns)}"
                f" conversations (the first is number {without[0] + 1}), and a fixed schedule needs one in each",
                "add the times (milliseconds), or drop --fixed-schedule",
            )
        inside = np.flatnonzero(_inside(context, replay, begins_ns))
        entry = inside[np.argsort(begins_ns[inside], kind="stable")]
        self.zero_ns = int(begins_ns[entry[0]]) if replay.auto_offset else (replay.start_ms or 0) * _NS_PER_MS
        turns = np.array([data.turns(one) for one in entry.tolist()], dtype=np.int64)
        self._columns = begins_ns[entry] - self.zero_ns, entry, turns

    def due_block(self, first: int, count: int) -> Ints:
        """Due times of the sessions' first turns."""
        return self.starts(first, count).due_ns

    def starts(self, first: int, count: int) -> SessionStarts:
        return SessionStarts(*(column[first : first + count] for column in self._columns))


def _inside(context: ScheduleContext, replay: Replay, begins_ns: Ints) -> NDArray[np.bool_]:
    """A mask of the conversations that begin inside the window, both ends included."""
    begins_ms = begins_ns / _NS_PER_MS
    start = -math.inf if replay.start_ms is None else replay.start_ms
    end = math.inf if replay.end_ms is None else replay.end_ms
    inside: NDArray[np.bool_] = (begins_ms >= start) & (begins_ms <= end)
    outside = int((~inside).sum())
    if not outside:
        return inside
    prefix = "--warmup-fixed-schedule" if context.phase.kind == "warmup" else "--fixed-schedule"
    bounds = {f"{prefix}-start-offset": replay.start_ms, f"{prefix}-end-offset": replay.end_ms}
    window = " ".join(f"{flag} {bound}" for flag, bound in bounds.items() if bound is not None)
    if outside == len(begins_ns):
        raise ConfigError(
            f"nothing of {source_of(context)} lies inside {window}: all {outside} conversations begin outside",
            f"they begin between {begins_ms.min():g} and {begins_ms.max():g} ms; move the window, or drop it",
        )
    log.info("%s leaves out %d of %d conversations of %s", window, outside, len(begins_ns), source_of(context))
    return inside
