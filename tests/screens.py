"""Programs on a terminal of a given width, and what a person sees there."""

from __future__ import annotations

import os
import pty
import re
import signal
import struct
import subprocess
import termios
from collections.abc import Mapping, Sequence
from fcntl import ioctl

import pyte

_LINES = 2000
"""Lines of the screen: enough that nothing scrolls away."""


def on_terminal(command: Sequence[str], columns: int, environment: Mapping[str, str] | None = None) -> list[str]:
    """The lines on the screen once the program has ended, without trailing blanks; it must end well."""
    return on_screen(raw_on_terminal(command, columns, environment), columns)


def on_screen(text: str, columns: int) -> list[str]:
    """The lines that this text leaves on a screen: what a dashboard drew on the other one is gone with it."""
    screen = pyte.Screen(columns, _LINES)
    pyte.Stream(screen).feed(re.sub(r"\x1b\[\?1049h.*?\x1b\[\?1049l", "", text, flags=re.DOTALL))
    lines = [line.rstrip() for line in screen.display]
    while lines and not lines[-1]:
        lines.pop()
    return lines


def raw_on_terminal(
    command: Sequence[str], columns: int, environment: Mapping[str, str] | None = None, *, stop_behind: str | None = None,
    code: int = 0,
) -> str:  # fmt: skip
    """What the program has written to the terminal.  It gets Ctrl-C behind the text *stop_behind*, and ends with *code*."""
    ours, theirs = pty.openpty()
    ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    around = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")} | dict(environment or {})
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs, env=around) as program:
        os.close(theirs)
        written = b""
        try:
            while piece := os.read(ours, 1 << 16):
                written += piece
                if stop_behind is not None and stop_behind.encode() in written:
                    written, stop_behind = written + b"^C", None  # as a terminal echoes it
                    program.send_signal(signal.SIGINT)
        except OSError:  # EIO: nobody holds the other end any more
            pass
        finally:
            os.close(ours)
    text = written.decode()
    assert program.returncode == code, text
    return text
