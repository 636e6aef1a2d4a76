"""Clocks and an absolute timer.

Due times need a timerfd: the loop rounds timers to about a millisecond (measured at 2,000/s: gaps off by 0.5 ms
with uvloop's ``call_at``, by 2 µs with a timerfd).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from time import CLOCK_BOOTTIME, clock_gettime_ns, monotonic_ns, time_ns
from typing import TYPE_CHECKING

from aiperf.sdk.driver import PRECISE_TIMERS

if TYPE_CHECKING:
    import asyncio

NS_PER_S = 1_000_000_000
_CLOCK_MONOTONIC, _TFD_CLOEXEC_NONBLOCK, _TFD_TIMER_ABSTIME = 1, os.O_CLOEXEC | os.O_NONBLOCK, 1
"""Of ``time.h`` and ``sys/timerfd.h``, on Linux."""


def read_clocks() -> tuple[int, int]:
    """Monotonic and wall clock of one instant, in ns: the tightest of three readings."""
    best = (1 << 62, 0, 0)
    for _ in range(3):
        before, wall, after = monotonic_ns(), time_ns(), monotonic_ns()
        best = min(best, (after - before, (before + after) // 2, wall))
    return best[1], best[2]


def slept_ns() -> int:
    """How long this machine has slept since it was started; 0 where the system doesn't say."""
    return clock_gettime_ns(CLOCK_BOOTTIME) - monotonic_ns() if sys.platform == "linux" else 0


class LoopTimer:
    """Calls *callback* at an absolute monotonic time.  It holds one time: the latest ``set`` counts."""

    def __init__(self, loop: asyncio.AbstractEventLoop, callback: Callable[[], None]) -> None:
        self._loop, self._callback = loop, callback
        self._handle: asyncio.TimerHandle | None = None
        self._fd = -1
        if PRECISE_TIMERS:
            import ctypes  # the parent and reducers use this module for its clocks alone

            libc = ctypes.CDLL(None, use_errno=True)
            self._settime = libc.timerfd_settime
            self._fd = libc.timerfd_create(_CLOCK_MONOTONIC, _TFD_CLOEXEC_NONBLOCK)
        if self._fd >= 0:
            self._spec = (ctypes.c_long * 4)()  # struct itimerspec: interval and value, in s and ns each
            loop.add_reader(self._fd, self._expired)

    def set(self, at_ns: int) -> None:
        """Fire at *at_ns*; a time that has passed fires at once."""
        if self._fd < 0:
            if self._handle is not None:
                self._handle.cancel()
            self._handle = self._loop.call_later(max(0, at_ns - monotonic_ns()) / NS_PER_S, self._callback)
            return
        # A value of zero would disarm the timer.
        self._spec[2], self._spec[3] = divmod(max(at_ns, 1), NS_PER_S)
        self._settime(self._fd, _TFD_TIMER_ABSTIME, self._spec, None)

    def close(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
        if self._fd >= 0:
            self._loop.remove_reader(self._fd)
            os.close(self._fd)
            self._fd = -1

    def _expired(self) -> None:
        try:
            os.read(self._fd, 8)
        except BlockingIOError:  # the timer was set again after the loop saw the event
            return
        self._callback()
