"""``--ui dashboard``: the whole terminal shows the run."""

from __future__ import annotations

import os
import sys
import time
from collections import deque
from typing import TYPE_CHECKING

from aiperf.sdk.live import LiveEnd, LiveFeed, LiveRun, Step
from aiperf.sdk.snapshot import LogLine, Snapshot
from aiperf.sdk.ui import Ui

if TYPE_CHECKING:
    from aiperf_ui_dashboard.screen import Screen
    from aiperf_ui_dashboard.terminal import Terminal

_SHORT_S = 0.4
"""A run that ends sooner has no dashboard: Textual's import would only take the processor from it."""
_KEPT_LINES = 2000


class Dashboard(Ui[None]):
    """The screen while a terminal is there, else plain log lines.

    Lines of the log are printed below each other when the screen is left, as another display would have left them.
    """

    def __init__(self, options: None = None) -> None:
        super().__init__(options)
        self._screen: Screen | None = None
        self._buffers = False
        self._lines = deque[LogLine](maxlen=_KEPT_LINES)
        self._run: LiveRun | None = None
        self._snapshot: Snapshot | None = None
        self._step: Step | None = None

    def begin(self, run: LiveRun) -> None:
        self._run, self._snapshot, self._step = run, None, None
        if self._screen is not None:
            self._screen.begin(run)

    def step(self, step: Step) -> None:
        self._step = step
        if self._screen is not None:
            self._screen.step(step)

    def show(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        if self._screen is not None:
            self._screen.show(snapshot)

    def log(self, line: LogLine) -> None:
        if not self._buffers:
            super().log(line)
            return
        if not line.printed:
            self._lines.append(line)
        if self._screen is not None:
            self._screen.log(line)

    def end(self, end: LiveEnd) -> None:
        if self._screen is not None:
            self._screen.end(end)

    def close(self) -> None:
        """Print what was logged: the screen has been left."""
        self._buffers = False
        while self._lines:
            super().log(self._lines.popleft())

    def run(self, feed: LiveFeed) -> None:
        terminal = _terminal()
        if terminal is None:
            super().run(feed)
            return
        self._buffers = True
        try:
            terminal.guard()
            terminal.leave_session()
            if self._wait(feed):
                self._show_screen(feed, terminal)
        finally:
            if not terminal.leave():
                self._lines.clear()  # nobody reads the terminal
            terminal.close()

    def _wait(self, feed: LiveFeed) -> bool:
        """Take what comes until the load has begun or the run isn't short; False: it is over."""
        until = time.monotonic() + _SHORT_S
        while (left := until - time.monotonic()) > 0:
            if not feed.take(left):
                return False
        return True

    def _show_screen(self, feed: LiveFeed, terminal: Terminal) -> None:
        from aiperf_ui_dashboard.screen import Screen

        self._screen = screen = Screen(terminal, self.ask_stop, self.ask_cancel)
        try:
            if self._run is not None:
                screen.begin(self._run)
            if self._step is not None:
                screen.step(self._step)
            for line in self._lines:
                screen.log(line)
            if self._snapshot is not None:
                screen.show(self._snapshot)
            screen.live(feed)
        finally:
            self._screen = None


def _terminal() -> Terminal | None:
    """The terminal of standard error, if it is one that can be drawn on, and this job has it."""
    if os.environ.get("TERM", "") in ("", "dumb") or not sys.stderr.isatty():
        return None
    try:
        from aiperf_ui_dashboard.terminal import Terminal

        terminal = Terminal(sys.stderr.fileno())
    except (ImportError, OSError):  # no such terminal; no termios on this platform
        return None
    if not terminal.in_front:
        terminal.close()
        return None
    return terminal


__all__ = ["Dashboard"]
