"""A callback at an exact instant: loop timers are millisecond-grained, a timerfd is not."""

from __future__ import annotations

import asyncio
import ctypes
import os
import struct
import sys
from collections.abc import Callable
from typing import Protocol

_ABSOLUTE = 1
"""``TFD_TIMER_ABSTIME`` of linux/timerfd.h: the time is an instant, and no delay."""
_NS = 1_000_000_000


class Alarm(Protocol):
    """Calls back once, at the CLOCK_MONOTONIC instant set last; None sets none."""

    def set(self, at_ns: int | None) -> None: ...

    def close(self) -> None: ...


class TimerFdAlarm:
    """By timerfd (Linux).  ``os`` has it from Python 3.13 on, libc has had it all along."""

    def __init__(self, loop: asyncio.AbstractEventLoop, callback: Callable[[], None]) -> None:
        self._loop = loop
        self._callback = callback
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._fd: int = self._libc.timerfd_create(1, os.O_NONBLOCK | os.O_CLOEXEC)  # 1 is CLOCK_MONOTONIC
        if self._fd < 0:
            raise OSError(ctypes.get_errno(), "timerfd_create failed")
        self._at_ns: int | None = None
        loop.add_reader(self._fd, self._ring)

    def set(self, at_ns: int | None) -> None:
        if at_ns == self._at_ns:
            return
        self._at_ns = at_ns
        when = 0 if at_ns is None else max(1, at_ns)  # 0 would switch it off
        self._libc.timerfd_settime(self._fd, _ABSOLUTE, struct.pack("@4q", 0, 0, when // _NS, when % _NS), None)

    def close(self) -> None:
        if self._fd >= 0:
            self._loop.remove_reader(self._fd)
            os.close(self._fd)
            self._fd = -1

    def _ring(self) -> None:
        try:
            os.read(self._fd, 8)
        except BlockingIOError:  # set anew between ringing and here
            return
        self._at_ns = None
        self._callback()


class LoopAlarm:
    """By the loop's own timers, where there is no timerfd."""

    def __init__(self, loop: asyncio.AbstractEventLoop, callback: Callable[[], None]) -> None:
        self._loop = loop
        self._callback = callback
        self._timer: asyncio.TimerHandle | None = None

    def set(self, at_ns: int | None) -> None:
        self.close()
        if at_ns is not None:
            self._timer = self._loop.call_at(at_ns / _NS, self._callback)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def alarm(loop: asyncio.AbstractEventLoop, callback: Callable[[], None]) -> Alarm:
    """The best alarm this platform has."""
    return TimerFdAlarm(loop, callback) if sys.platform == "linux" else LoopAlarm(loop, callback)
