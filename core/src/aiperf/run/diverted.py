"""What this process prints while a display of another process has the screen: shown there, and printed behind it."""

from __future__ import annotations

import atexit
import contextlib
import sys
from collections import deque
from collections.abc import Iterator
from typing import Any, TextIO, cast

from aiperf.redaction import harmless
from aiperf.sdk.snapshot import LogLine

_MOST_KEPT = 1 << 20
"""Characters that wait for the display's end; what would be more is printed at once, and spoils a picture."""
_STREAMS = ("stdout", "stderr")


class Screen:
    """The terminal while a display has it.  Any thread may print.

    Only what Python prints through ``sys.stdout`` and ``sys.stderr`` is kept from the terminal.
    """

    def __init__(self) -> None:
        self.taken = True
        self._kept: list[tuple[TextIO, str]] = []
        self._size = 0
        self._lines = deque[str]()
        self._parts: dict[int, str] = {}

    def keep(self, stream: TextIO, text: str) -> bool:
        """Whether the text is printed later."""
        if not self.taken or self._size + len(text) > _MOST_KEPT:
            return False
        if not self._size:
            atexit.register(self.give_back)
        self._size += len(text)
        self._kept.append((stream, text))
        *lines, self._parts[id(stream)] = (self._parts.get(id(stream), "") + text).split("\n")
        self._lines.extend(line.rpartition("\r")[2] for line in lines)
        return True

    def lines(self) -> Iterator[LogLine]:
        """The lines since the last call, for the display."""
        while self._lines:
            yield LogLine(harmless(self._lines.popleft()), printed=True)

    def give_back(self) -> None:
        """The display has left it: print what was kept.  Further calls do nothing."""
        self.taken, kept, self._kept = False, self._kept, []
        atexit.unregister(self.give_back)
        for stream, text in kept:
            with contextlib.suppress(OSError, ValueError):  # it is gone, or closed
                stream.write(text)
                stream.flush()


class Diverted:
    """A text stream in place of *stream*, which a screen may keep from the terminal."""

    def __init__(self, stream: TextIO, screen: Screen) -> None:
        self.stream, self._screen = stream, screen

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)

    def write(self, text: str) -> int:
        return len(text) if self._screen.keep(self.stream, text) else self.stream.write(text)

    def writelines(self, lines: Iterator[str]) -> None:
        for line in lines:
            self.write(line)


@contextlib.contextmanager
def diverted(screen: Screen | None) -> Iterator[None]:
    """In the block, what is printed on a terminal is for the *screen*; None changes nothing."""
    divert(screen)
    try:
        yield
    finally:
        undivert()


def divert(screen: Screen | None) -> None:
    """Let what is printed on a terminal be for the *screen*, until :func:`undivert`."""
    undivert()
    for name in _STREAMS if screen is not None and screen.taken else ():
        stream = getattr(sys, name)
        if stream is not None and stream.isatty():
            setattr(sys, name, cast(TextIO, Diverted(stream, cast(Screen, screen))))


def undivert() -> None:
    """Let the streams be what they were before, where nobody has put others in their place."""
    for name in _STREAMS:
        stream = getattr(sys, name)
        if isinstance(stream, Diverted):
            setattr(sys, name, stream.stream)
