"""The terminal as it was before a display took it."""

from __future__ import annotations

import contextlib
import os
import signal
import termios
from typing import Any

_ORDINARY = b"\x1b[?1049l\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?1004l\x1b[?2004l\x1b[<u\x1b[?25h\x1b[0m"
"""Leave the alternate screen; no reports of mouse, focus, pastes and keys; a visible cursor, and no colours."""


class TerminalModes:
    """Modes of the controlling terminal at the time when this is made; nothing where there is none."""

    def __init__(self) -> None:
        self._modes: list[Any] | None = None
        with contextlib.suppress(OSError, termios.error):
            terminal = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
            try:
                self._modes = termios.tcgetattr(terminal)
            finally:
                os.close(terminal)

    def restore(self) -> None:
        """Set the modes as they were, and leave the alternate screen.  Further calls do nothing."""
        modes, self._modes = self._modes, None
        if modes is None:
            return
        with contextlib.suppress(OSError, termios.error, ValueError):
            terminal = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC | os.O_NONBLOCK)
            blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTTOU})  # a job in the background may set them, too
            try:
                if termios.tcgetattr(terminal) != modes:
                    os.write(terminal, _ORDINARY)
                    termios.tcsetattr(terminal, termios.TCSANOW, modes)
            finally:
                signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
                os.close(terminal)
