"""The terminal behind standard error: its modes during the run, and a process that puts them back whatever happens.

The run may be killed, and with it the display's process, at any instant.  So a second process, which does nothing else, holds
the modes of before; it sees the end of the first one by a pipe, and restores them.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import termios
import time
from typing import Any

from aiperf.sdk.ui import parent_has_terminal, work_apart

ENTER = "\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[2J"
"""The other screen, no cursor, no wrapping."""
LEAVE = "\x1b[0m\x1b[?7h\x1b[?1049l\x1b[?25h"
_PATIENCE_S = 1.0
"""A terminal that takes nothing for so long is left as it is."""
_DISABLED = os.fpathconf(2, "PC_VDISABLE") if hasattr(os, "fpathconf") and os.isatty(2) else 0


class Terminal:
    """A terminal, opened a second time, so that its descriptor may be non-blocking.

    Raises:
        OSError, termios.error: It can't be opened, or isn't one.
    """

    def __init__(self, stream_fd: int = 2) -> None:
        self.fd = os.open(os.ttyname(stream_fd), os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            self._before = termios.tcgetattr(self.fd)
        except BaseException:
            os.close(self.fd)
            raise
        self._guard: tuple[int, int] | None = None
        self._entered = self._apart = False
        self.keys_send_signals = self._is_ours() is True
        """Whether Ctrl-C is sent to the run by the terminal itself; else it is a key."""

    def leave_session(self) -> None:
        """Take time of cores from nobody; whether the job is in front is then looked up for the run, the parent process."""
        if self._is_ours() and parent_has_terminal(self.fd):  # else this is no display of a run, but a job of a shell
            work_apart()
            self._apart = True

    def guard(self) -> None:
        """Fork the process that restores the terminal.  To be called before this process has a second thread."""
        read, write = os.pipe()
        pid = os.fork()
        if not pid:
            with contextlib.suppress(BaseException):
                os.close(write)
                _stand_by(read, self.fd, self._before)
            os._exit(0)
        os.close(read)
        self._guard = (pid, write)

    @property
    def in_front(self) -> bool:
        """Whether this process may draw: False while the shell has another job in front."""
        return self._is_ours() is not False

    @property
    def size(self) -> tuple[int, int]:
        """Columns and lines, 1 at least; 80 and 24 where the terminal doesn't say."""
        try:
            columns, lines = os.get_terminal_size(self.fd)
        except OSError:
            return 80, 24
        return (columns, lines) if columns > 0 and lines > 0 else (80, 24)

    def enter(self) -> None:
        """Keys come one by one, and are not echoed."""
        self._entered = True
        self._tell_guard(b"entered ")
        attributes: list[Any] = [*self._before[:6], list(self._before[6])]
        attributes[0] &= ~(termios.IXON | termios.IXOFF | termios.ICRNL | termios.INLCR | termios.IGNCR)
        attributes[3] &= ~(termios.ECHO | termios.ICANON | termios.IEXTEN)
        if self.keys_send_signals:
            for key in (termios.VSUSP, termios.VQUIT):
                attributes[6][key] = bytes([_DISABLED])
        else:
            attributes[3] &= ~termios.ISIG
        attributes[6][termios.VMIN], attributes[6][termios.VTIME] = 1, 0
        with contextlib.suppress(termios.error):
            termios.tcsetattr(self.fd, termios.TCSANOW, attributes)

    def leave(self) -> bool:
        """Restore the modes, and let the second process go; False: the terminal takes no text."""
        restored = not self._entered or _restored(self.fd, self._before)
        self._entered = False
        if self._guard is not None:
            self._tell_guard(b"left ")
            (pid, write), self._guard = self._guard, None
            with contextlib.suppress(OSError):
                os.close(write)
                os.waitpid(pid, 0)
        return restored

    def close(self) -> None:
        os.close(self.fd)

    def _tell_guard(self, word: bytes) -> None:
        if self._guard is not None:
            with contextlib.suppress(OSError):
                os.write(self._guard[1], word)

    def _is_ours(self) -> bool | None:
        """Whether the run's process group is the terminal's foreground one; None: it isn't its session's terminal."""
        if self._apart and os.getsid(0) == os.getpid():
            return parent_has_terminal(self.fd)
        try:
            return os.tcgetpgrp(self.fd) == os.getpgrp()
        except OSError:
            return None


def _stand_by(pipe: int, fd: int, before: list[Any]) -> None:
    """The second process: wait for the end of the first one."""
    os.setsid()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGTTOU, signal.SIGTTIN):
        signal.signal(number, signal.SIG_IGN)
    keep = sorted((pipe, fd))
    os.closerange(0, keep[0])
    os.closerange(keep[0] + 1, keep[1])
    os.closerange(keep[1] + 1, 4096)
    told = b""
    while piece := os.read(pipe, 1 << 10):
        told = (told + piece)[-32:]
    if told.endswith(b"entered "):
        _restored(fd, before)


def _restored(fd: int, before: list[Any]) -> bool:
    """Restore modes and screen.  Whether the terminal took all of it: never waits long for one that nobody reads."""
    try:
        termios.tcsetattr(fd, termios.TCSANOW, before)
        waiting, until = LEAVE.encode(), time.monotonic() + _PATIENCE_S
        while waiting and (left := until - time.monotonic()) > 0:
            if select.select([], [fd], [], left)[1]:
                with contextlib.suppress(BlockingIOError):
                    waiting = waiting[os.write(fd, waiting) :]
    except (OSError, termios.error):  # it is gone
        return True
    return not waiting


def encoding() -> str:
    """The encoding of standard error."""
    return sys.__stderr__.encoding if sys.__stderr__ is not None else "ascii"


def shows_unicode() -> bool:
    """Whether blocks and lines may be drawn."""
    return encoding().lower().replace("-", "").replace("_", "") == "utf8"


__all__ = ["ENTER", "LEAVE", "Terminal", "encoding", "shows_unicode"]
