"""Textual's door to the terminal: keys in, frames out, and neither ever waits.

Textual's own driver reads standard input, which here is the pipe of the run, and a terminal that nobody reads would stop it.
"""

from __future__ import annotations

import asyncio
import codecs
import os
from collections import deque
from collections.abc import Callable
from typing import Any

from textual import events
from textual._xterm_parser import XTermParser
from textual.driver import Driver
from textual.geometry import Size

from aiperf_ui_dashboard.terminal import ENTER, Terminal

_LOOK_S = 0.2
"""How often the size of the terminal, and whose it is, is looked at."""
_ESCAPE_S = 0.1
"""After this an escape is the key, not the beginning of a sequence."""
_MOST_WAITING = 256 * 1024
"""Bytes that wait for a terminal which takes none; then frames are left out, and the screen is drawn anew later."""


class Frames:
    """Bytes for a descriptor that may take none: whole frames are left out, never the middle of one."""

    def __init__(self, fd: int) -> None:
        self._fd, self._waiting, self._bytes = fd, deque[bytes](), 0
        self.lost = False
        """Whether frames were left out since this was last set to False."""

    @property
    def waiting(self) -> bool:
        return bool(self._waiting)

    def add(self, frame: bytes) -> None:
        if self._bytes + len(frame) > _MOST_WAITING:
            self.lost = True
            return
        self._waiting.append(frame)
        self._bytes += len(frame)

    def write(self) -> bool:
        """Write what the descriptor takes; False: it is gone."""
        try:
            while self._waiting:
                first = self._waiting.popleft()
                written = os.write(self._fd, first)
                self._bytes -= written
                if written < len(first):
                    self._waiting.appendleft(first[written:])
        except BlockingIOError:
            self._waiting.appendleft(first)
        except OSError:
            self._waiting.clear()
            return False
        return True


class TerminalDriver(Driver):
    """Textual's driver for a :class:`Terminal`."""

    terminal: Terminal
    encoding = "utf-8"

    def __init__(self, app: Any, *, debug: bool = False, mouse: bool = True, size: tuple[int, int] | None = None) -> None:
        super().__init__(app, debug=debug, mouse=False, size=self.terminal.size)
        self._frames = Frames(self.terminal.fd)
        self._parser, self._decoder = XTermParser(debug), codecs.getincrementaldecoder("utf-8")("replace")
        self._shown_size: tuple[int, int] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._in_front, self._writing, self._hung_up = True, False, False
        self.on_stale: Callable[[], None] = lambda: None
        """Called when the whole screen must be drawn again."""

    def write(self, data: str) -> None:
        self._notice_whose()
        if self._in_front:
            self._frames.add(data.encode(self.encoding, "replace"))
            self._write()

    def start_application_mode(self) -> None:
        self.terminal.enter()
        self.write(ENTER)
        self._loop.add_reader(self.terminal.fd, self._read)
        self._look()

    def disable_input(self) -> None:
        self._loop.remove_reader(self.terminal.fd)

    def stop_application_mode(self) -> None:
        self.disable_input()
        self._loop.remove_writer(self.terminal.fd)
        if self._timer is not None:
            self._timer.cancel()
        self.terminal.leave()

    def _write(self) -> None:
        if not self._frames.write():
            self._gone()
        elif self._frames.waiting != self._writing:
            self._writing = self._frames.waiting
            if self._writing:
                self._loop.add_writer(self.terminal.fd, self._write)
            else:
                self._loop.remove_writer(self.terminal.fd)
                if self._frames.lost:
                    self._frames.lost = False
                    self.on_stale()

    def _gone(self) -> None:
        """The terminal is hung up: nothing is read or written any more."""
        self._loop.remove_reader(self.terminal.fd)
        self._loop.remove_writer(self.terminal.fd)
        self._in_front, self._writing, self._hung_up = False, False, True

    def _read(self) -> None:
        try:
            read = os.read(self.terminal.fd, 1 << 12)
        except BlockingIOError:
            return
        except OSError:
            read = b""
        if not read:
            self._gone()
            return
        for message in self._parser.feed(self._decoder.decode(read)):
            self.process_message(message)
        self._loop.call_later(_ESCAPE_S, self._tick)

    def _tick(self) -> None:
        for message in self._parser.tick():
            self.process_message(message)

    def _notice_whose(self) -> None:
        """Notice the shell taking the terminal away and giving it back."""
        if self._hung_up:
            return
        was_in_front, self._in_front = self._in_front, self.terminal.in_front
        if self._in_front and not was_in_front:
            self.terminal.enter()
            self._loop.add_reader(self.terminal.fd, self._read)
            self.write(ENTER)
            self.on_stale()
        elif was_in_front and not self._in_front:
            self.disable_input()  # keys are the shell's now

    def _look(self) -> None:
        """Notice a new size, and whose the terminal is."""
        if self._hung_up:
            return
        self._timer = self._loop.call_later(_LOOK_S, self._look)
        self._notice_whose()
        size = self.terminal.size
        if size != self._shown_size:
            self._shown_size = self._size = size
            told = Size(*size)
            self.send_message(events.Resize(told, told))


__all__ = ["TerminalDriver"]
