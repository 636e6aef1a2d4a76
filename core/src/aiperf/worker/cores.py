"""How the system gives this process its cores."""

from __future__ import annotations

import os
import platform
import struct
import sys

_SLICE_NS = 100_000
_SCHED_SETATTR = {"x86_64": 314, "aarch64": 274, "riscv64": 274}
"""Numbers of the system call: few C libraries have a function for it."""
_ATTRIBUTES = struct.Struct("IIQiIQQQ")
"""``struct sched_attr`` of sched_setattr(2): size, policy, flags, nice, priority, and runtime, deadline and period in ns."""


def ask_for_short_slices() -> bool:
    """Ask for slices of 0.1 ms instead of 1.4 or more, for this thread; whether the system took it.

    Where processes share a core, the one with short slices comes first when it has something to do, for a shorter time: its
    share stays what it was.  From Linux 6.12 on; earlier systems take no notice.  Another policy than the usual one was
    chosen by somebody, and stays.
    """
    number = _SCHED_SETATTR.get(platform.machine())
    if sys.platform != "linux" or number is None or os.sched_getscheduler(0) != os.SCHED_OTHER:
        return False
    import ctypes  # as the timer's

    nice = os.getpriority(os.PRIO_PROCESS, 0)
    attributes = _ATTRIBUTES.pack(_ATTRIBUTES.size, os.SCHED_OTHER, 0, nice, 0, _SLICE_NS, 0, 0)
    return bool(ctypes.CDLL(None, use_errno=True).syscall(number, 0, attributes, 0) == 0)


__all__ = ["ask_for_short_slices"]
