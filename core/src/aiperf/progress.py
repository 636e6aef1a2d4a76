"""Live numbers, and the display of one or two lines that shows them."""

from __future__ import annotations

import shutil
import sys
import time
from typing import Any, TextIO

from msgspec import Struct

from aiperf import environment
from aiperf.ui import Ui


class Snapshot(Struct, frozen=True):
    """Where a phase stands.

    share: of the stop condition, 0 to 1, None where there is none.  elapsed_s, eta_s: seconds; eta None if unknown.
    ttft_ms, itl_ms: means so far, from what the reducer has seen; None before the first.
    """

    phase: str
    kind: str
    elapsed_s: float
    sent: int
    completed: int
    errors: int
    in_flight: int
    rate: float
    share: float | None = None
    eta_s: float | None = None
    ttft_ms: float | None = None
    itl_ms: float | None = None

    def lines(self) -> tuple[str, str]:
        """What is going on, and how it looks so far."""
        percent = "" if self.share is None else f" {min(100, int(self.share * 100)):3d} %"
        eta = "" if self.eta_s is None else f"  ETA {_clock(self.eta_s)}"
        first = (
            f"{self.phase}{percent}  {_clock(self.elapsed_s)}{eta}  {self.completed:,} done  {self.in_flight:,} in flight"
            f"  {self.errors:,} errors"
        )
        parts = [f"{self.rate:,.1f} requests/s"]
        if self.ttft_ms is not None:
            parts.append(f"TTFT {self.ttft_ms:,.2f} ms")
        if self.itl_ms is not None:
            parts.append(f"ITL {self.itl_ms:,.2f} ms")
        return first, "  ".join(parts)


def _clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


class Simple(Ui):
    """``--ui simple``: redrawn in place on a terminal, else a line every ``AIPERF_UI_REALTIME_METRICS_INTERVAL`` seconds."""

    def __init__(self, options: Any = None, stream: TextIO | None = None) -> None:
        super().__init__(options)
        self._every_s = environment.progress_s()
        self._stream = stream or sys.stderr
        self._terminal = self._stream.isatty()
        self._drawn = False
        self._last_s = time.monotonic()

    def show(self, snapshot: Snapshot) -> None:
        if not self._terminal:
            if time.monotonic() - self._last_s >= self._every_s:
                self._last_s = time.monotonic()
                self._stream.write("  ".join(snapshot.lines()) + "\n")
                self._stream.flush()
            return
        width = max(20, shutil.get_terminal_size().columns - 1)
        first, second = (line[:width] for line in snapshot.lines())
        up = "\x1b[1A\r" if self._drawn else "\r"
        self._stream.write(f"{up}\x1b[K{first}\n\x1b[K{second}")
        self._stream.flush()
        self._drawn = True

    def log(self, line: str) -> None:
        self.close()
        self._stream.write(f"{line}\n")
        self._stream.flush()

    def close(self) -> None:
        """Take the lines away, so that what follows starts clean."""
        if self._drawn:
            self._stream.write("\r\x1b[K\x1b[1A\r\x1b[K")
            self._stream.flush()
            self._drawn = False
