"""The simple display: two lines of text, on a terminal in place."""

from __future__ import annotations

import os
import sys
import time
from typing import TextIO

from aiperf.sdk.environment import progress_s
from aiperf.sdk.live import Step
from aiperf.sdk.snapshot import LogLine, Snapshot
from aiperf.sdk.ui import Ui, columns, fitted


class Simple(Ui[None]):
    """``--ui simple``: redrawn in place on a terminal, else a line every ``AIPERF_UI_REALTIME_METRICS_INTERVAL`` seconds."""

    def __init__(self, options: None = None, stream: TextIO | None = None) -> None:
        super().__init__(options)
        self._every_s = progress_s()
        self._stream = stream or sys.stderr
        self.draws = self._stream.isatty() and os.environ.get("TERM") != "dumb"  # which knows no way back
        self._drawn = 0
        self._last_s = time.monotonic()

    def show(self, snapshot: Snapshot) -> None:
        if self.draws:
            self._draw(*snapshot.lines())
        elif time.monotonic() - self._last_s >= self._every_s:
            self._last_s = time.monotonic()
            self._write("  ".join(snapshot.lines()) + "\n")

    def step(self, step: Step) -> None:
        if self.draws:
            self._draw(step.line())

    def log(self, line: LogLine) -> None:
        self.close()
        self._write(f"{fitted(line.text, self._stream)}\n")

    def close(self) -> None:
        """Erase the lines."""
        self._write(self._erasing())
        self._drawn = 0

    def _draw(self, *lines: str) -> None:
        width = max(1, (columns(self._stream) or 80) - 1)
        self._write(self._erasing() + "\n".join(line[:width] for line in lines))
        self._drawn = len(lines)

    def _erasing(self) -> str:
        """What takes the drawn lines away."""
        return "\x1b[1A".join(["\r\x1b[K"] * self._drawn)

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()


__all__ = ["Simple"]
