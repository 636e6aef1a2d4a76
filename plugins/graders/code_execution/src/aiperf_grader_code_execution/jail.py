"""The process of one test case: it gives up what it doesn't need, and runs the program.

    python -I jail.py HOW WORK JOB READY PARENT

*HOW*: ``isolated`` ends with the reason where something can't be given up; ``unisolated`` goes on.  *READY*: the
descriptor that gets ``ready``, or the reason.  *PARENT*: the process that it must not outlive.  It imports nothing of this
package: a fresh interpreter that starts fast.
"""

from __future__ import annotations

import ctypes
import json
import os
import platform
import resource
import signal
import struct
import sys
from collections.abc import Callable
from enum import IntEnum
from typing import Any

_CPU_S, _MEMORY_BYTES, _FILE_BYTES = 6, 1 << 30, 16 << 20
_MOST_FILES = 64
"""Files that are open at a time."""


class _Namespace(IntEnum):
    """Flags of unshare."""

    NEW_MOUNTS = 0x0002_0000
    NEW_USER = 0x1000_0000
    NEW_NETWORK = 0x4000_0000
    NEW_IPC = 0x0800_0000


class _Mount(IntEnum):
    """Flags and numbers of mount and mount_setattr."""

    PRIVATE = 1 << 18
    RECURSIVE = 1 << 14
    NO_SUID = 2
    NO_DEVICES = 4
    MOUNT_SETATTR = 442
    AT_FDCWD = -100
    AT_RECURSIVE = 0x8000
    READ_ONLY = 1


class _Filter(IntEnum):
    """Numbers of prctl, of answers of a filter, and of calls and errors in it."""

    DEATH_SIGNAL = 1
    NO_NEW_PRIVILEGES = 38
    SECCOMP = 22
    FILTER = 2
    ALLOW = 0x7FFF_0000
    KILL = 0x8000_0000
    REFUSE = 0x0005_0000
    EACCES = 13
    ENOSYS = 38
    CLONE_THREAD = 0x0001_0000
    CLONE3 = 435


# Numbers of system calls: processes, programs, signals, sockets, mounts and namespaces, other processes' memory.
_NEW_CALLS = (424, 425, 426, 427, 428, 429, 430, 431, 432, 433, 434, 438, 440, 442)
_CALLS = {
    "x86_64": (0xC000_003E, 56, (
        57, 58, 59, 322, 62, 200, 234, 129, 297, 41, 53, 101, 310, 311, 109, 112, 157, 165, 166, 155, 161, 272, 308, 250, 248,
        249, 321, 298, 323, 303, 304,
    )),
    "aarch64": (0xC000_00B7, 220, (
        221, 281, 129, 130, 131, 138, 240, 198, 199, 117, 270, 271, 154, 157, 167, 40, 39, 41, 51, 97, 268, 219, 217, 218, 280,
        241, 282, 264, 265,
    )),
}  # fmt: skip


class _Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p)]


class _RefusedError(Exception):
    """Something can't be given up here."""


def _checked(result: int, what: str) -> None:
    if result < 0:
        raise _RefusedError(f"{what}: {os.strerror(ctypes.get_errno())}")


def _separate(libc: Any, work: str) -> None:
    """Namespaces of its own: no network, and a file system that can be read alone but for *work*."""
    user, group = os.getuid(), os.getgid()
    _checked(libc.unshare(sum(_Namespace)), "namespaces")
    for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
        with open(f"/proc/self/{name}", "w") as file:  # noqa: PTH123  # no import that isn't needed
            file.write(text)
    _checked(libc.mount(b"none", b"/", None, _Mount.PRIVATE | _Mount.RECURSIVE, None), "private mounts")
    _checked(libc.mount(b"tmpfs", b"/proc", b"tmpfs", 0, b"size=4k"), "an empty /proc")
    attributes = struct.pack("QQQQ", _Mount.READ_ONLY, 0, 0, 0)
    words = (b"/", _Mount.AT_RECURSIVE, attributes, len(attributes))
    _checked(libc.syscall(_Mount.MOUNT_SETATTR, _Mount.AT_FDCWD, *words), "read-only mounts")
    flags = _Mount.NO_SUID | _Mount.NO_DEVICES
    _checked(libc.mount(b"tmpfs", work.encode(), b"tmpfs", flags, b"size=64m"), "a directory in memory")
    os.chdir(work)


def _instructions(machine: str) -> bytes:
    """The filter: it refuses the calls above, and new processes; threads pass."""
    architecture, clone, calls = _CALLS[machine]

    def instruction(code: int, right: int, wrong: int, value: int) -> bytes:
        return struct.pack("HBBI", code, right, wrong, value)

    load, equal, at_least, bits, give = 0x20, 0x15, 0x35, 0x45, 0x06
    made = [
        instruction(load, 0, 0, 4), instruction(equal, 1, 0, architecture), instruction(give, 0, 0, _Filter.KILL),
        instruction(load, 0, 0, 0), instruction(at_least, 0, 1, 0x4000_0000), instruction(give, 0, 0, _Filter.KILL),
        instruction(equal, 0, 1, _Filter.CLONE3), instruction(give, 0, 0, _Filter.REFUSE | _Filter.ENOSYS),
        instruction(equal, 0, 4, clone), instruction(load, 0, 0, 16), instruction(bits, 0, 1, _Filter.CLONE_THREAD),
        instruction(give, 0, 0, _Filter.ALLOW), instruction(give, 0, 0, _Filter.REFUSE | _Filter.EACCES),
    ]  # fmt: skip
    for call in (*calls, *_NEW_CALLS):
        made += [instruction(equal, 0, 1, call), instruction(give, 0, 0, _Filter.REFUSE | _Filter.EACCES)]
    return b"".join([*made, instruction(give, 0, 0, _Filter.ALLOW)])


def _filtered(libc: Any) -> None:
    """Refuse new processes, programs, sockets and signals from now on."""
    machine = platform.machine()
    if machine not in _CALLS or struct.calcsize("P") != 8:
        raise _RefusedError(f"no filter of system calls for {machine}")
    instructions = _instructions(machine)
    program = _Program(len(instructions) // 8, instructions)
    _checked(libc.prctl(_Filter.NO_NEW_PRIVILEGES, 1, 0, 0, 0), "no new privileges")
    _checked(libc.prctl(_Filter.SECCOMP, _Filter.FILTER, ctypes.byref(program), 0, 0), "a filter of system calls")


def _limited() -> None:
    for kind, most in (
        (resource.RLIMIT_CPU, _CPU_S), (resource.RLIMIT_AS, _MEMORY_BYTES), (resource.RLIMIT_FSIZE, _FILE_BYTES),
        (resource.RLIMIT_NOFILE, _MOST_FILES), (resource.RLIMIT_CORE, 0), (resource.RLIMIT_MEMLOCK, 0),
    ):  # fmt: skip
        resource.setrlimit(kind, (most, most))


def _call(code: Any, name: str, given: str) -> None:
    """Call the function or method *name*, and write its result as JSON."""
    result = os.dup(1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what the function prints is none of its result
    space: dict[str, Any] = {"__name__": "solution"}
    exec(code, space)
    owner = space.get("Solution")
    function = space[name] if owner is None else getattr(owner(), name)
    os.write(result, json.dumps(function(*json.loads(given))).encode())


def _ends_with(parent: int, libc: Any) -> None:
    """Let the system kill this process, whatever it does by then, when *parent* has ended."""
    _checked(libc.prctl(_Filter.DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0), "an end with its parent")
    if os.getppid() != parent:
        os._exit(1)


def main(how: str, work: str, job_path: str, ready: int, parent: int) -> None:
    """Prepare the process, and run the program."""
    with open(job_path) as file:  # noqa: PTH123
        job = json.load(file)
    libc = ctypes.CDLL(None, use_errno=True)
    try:
        steps: tuple[Callable[[], None], ...] = (
            lambda: _separate(libc, work), lambda: _ends_with(parent, libc), _limited, lambda: _filtered(libc),
        )  # fmt: skip
        for give_up in steps:
            try:
                give_up()
            except (_RefusedError, OSError) as error:
                if how == "isolated":
                    raise _RefusedError(str(error)) from error
    except _RefusedError as error:
        os.write(ready, str(error).encode()[:500])
        os._exit(1)
    os.write(ready, b"ready")
    os.close(ready)
    os.environ.clear()  # Python sets LC_CTYPE where the environment is empty
    code = compile(job["code"], "solution.py", "exec")
    if job["function"] is None:
        exec(code, {"__name__": "__main__"})
    else:
        _call(code, job["function"], job["given"])


if __name__ == "__main__":
    how_, work_, job_, ready_, parent_ = sys.argv[1:]
    sys.argv[1:] = []
    main(how_, work_, job_, int(ready_), int(parent_))
