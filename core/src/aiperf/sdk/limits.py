"""Bounds on what strangers' data may cost."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from threading import current_thread, main_thread
from types import FrameType


class OutOfTime(Exception):  # noqa: N818  # says what, not that something is wrong
    """A block took all the time that it had."""


@contextmanager
def processor_time(seconds: float) -> Iterator[None]:
    """End what runs inside after *seconds* of processor time, > 0; in the main thread alone, because others have no signals.

    C code is ended when it returns.  SIGVTALRM is used, and put back.

    Raises:
        OutOfTime: It ended so.
    """
    if current_thread() is not main_thread() or not hasattr(signal, "setitimer"):
        yield
        return

    def expired(number: int, frame: FrameType | None) -> None:
        raise OutOfTime

    before = signal.signal(signal.SIGVTALRM, expired)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


__all__ = ["OutOfTime", "processor_time"]
