"""How the system gives this process its cores, beside the run and the server that is measured."""

from __future__ import annotations

import contextlib
import os
import platform
import struct
import sys
import time
from functools import cache
from pathlib import Path

from aiperf import environment

_SLICE_NS = 100_000
_SCHED_SETATTR = {"x86_64": 314, "aarch64": 274, "riscv64": 274}
"""Numbers of the system call: few C libraries have a function for it."""
_ATTRIBUTES = struct.Struct("IIQiIQQQ")
"""``struct sched_attr`` of sched_setattr(2): size, policy, flags, nice, priority, and runtime, deadline and period in ns."""

LOWEST_NICE = 19
"""The priority of a session that gets what others leave."""
_AGAIN_S = 0.11
"""Linux lets users without privileges set the priority of a session ten times a second, all of them together."""


@cache
def machine() -> str:
    """What this is: the processor, how many CPUs this process may use, the system, Python; no name of the machine."""
    model = platform.machine()
    with contextlib.suppress(OSError, UnicodeDecodeError):
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        model = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), model)
    count = environment.cpus()
    release = platform.release().partition("-")[0]
    python = f"{platform.python_implementation()} {platform.python_version()}"
    return f"{model}, {count} CPU{'' if count == 1 else 's'}, {platform.system()} {release}, {python}"


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


def work_apart(nice: int = LOWEST_NICE, *, tries: int = 5) -> bool:
    """Have a session of one's own, of the priority *nice*, -20 to 19, on Linux; elsewhere nothing happens.

    *tries*: of setting the priority, with 0.11 s between them.  False: the system has put it off, and it may be set later.

    Linux shares the cores among sessions first (autogroups), whatever the priorities in them: what a process at idle priority
    uses is taken from the server and the processes of its run, unless its session comes last.  A process that has asked for
    short slices before leaves its core soon when another one wakes.  It has no controlling terminal then: no signal of a
    terminal reaches it, and there is no ``/dev/tty``.
    """
    if sys.platform != "linux":
        return True
    with contextlib.suppress(OSError):
        if os.getpgrp() == os.getpid():
            os.setpgid(0, os.getpgid(os.getppid()))  # the leader of a group can't begin a session
        os.setsid()
    while set_session_nice(os.getpid(), nice) is None:
        tries -= 1
        if not tries:
            return False
        time.sleep(_AGAIN_S)
    return True


def set_session_nice(pid: int, nice: int = LOWEST_NICE) -> bool | None:
    """Set the priority of the session that process *pid* leads, -20 to 19; whether it did.

    None: the system allows it later.  False: there is no such session, or its priorities mean nothing on this system.
    """
    try:
        if sys.platform != "linux" or os.getsid(pid) != pid:
            return False
        group = Path(f"/proc/{pid}/autogroup")
        if group.read_text().split()[-1] != str(nice):
            group.write_text(str(nice))
    except BlockingIOError:
        return None
    except (OSError, IndexError):
        return False
    return True


def level_with_parent(pid: int) -> bool | None:
    """Give the session of this process, or of a child, the priority of its parent's; as :func:`set_session_nice`."""
    parent = os.getppid() if pid == os.getpid() else os.getpid()
    try:
        group = Path(f"/proc/{parent}/autogroup").read_text().split()
        # The file is empty where the parent's session is that of the system's first process, which has the usual priority.
        return set_session_nice(pid, int(group[-1]) if group else 0)
    except (OSError, ValueError):
        return False


__all__ = ["LOWEST_NICE", "ask_for_short_slices", "level_with_parent", "machine", "set_session_nice", "work_apart"]
