"""The contract of live displays.

A display is the one live view that owns the terminal during the run.  It has its own process, as other views
(:mod:`aiperf.sdk.live`).  With ``in_process: true`` in its manifest the run's own process calls it, so it must be cheap.  With
``terminal: true`` it requires a terminal.
"""

from __future__ import annotations

import sys

from msgspec import Struct

from aiperf.cores import work_apart
from aiperf.redaction import harmless
from aiperf.sdk.live import LiveView, Step
from aiperf.sdk.options import OptionsT
from aiperf.sdk.snapshot import CellProgress, LogLine, Snapshot
from aiperf.terminal import columns, fitted, parent_has_terminal


class UiFacts(Struct, frozen=True):
    """What the manifest says of a display, below ``capabilities``.

    in_process: the run's own process calls it.  terminal: it requires one.  instead_of: names of displays that it stands in for
    where they are not installed.  preferred: it is the default on a terminal that it fits.  least_columns, least_lines: of
    the smallest such terminal; where there is less, another display takes its place.
    """

    in_process: bool = False
    terminal: bool = False
    instead_of: tuple[str, ...] = ()
    preferred: bool = False
    least_columns: int = 0
    least_lines: int = 0


class Ui(LiveView[OptionsT]):
    """Shows a run while it goes on.  options: the display's own (None where it declares none).

    A display that fails, hangs or dies is reported, and the run continues without it.  The keyboard is ``/dev/tty``, not
    standard input.  Ctrl-C reaches only the run, unless the display takes it from the terminal as a key; then it asks the run
    to stop.

    On Linux a display in the session of the run takes time of cores from the server on the same machine, though it works at
    idle priority.  One that can do without a controlling terminal calls :func:`work_apart`, once it has opened the terminal of
    standard error; it must then look at the size by itself, and read keys only while :func:`parent_has_terminal` is true.
    """

    draws = False
    """Whether it redraws lines of the terminal, in the run's own process: steps are not logged then, and results close it."""

    def log(self, line: LogLine) -> None:
        """Show a log line; nothing in it steers the terminal."""
        if not line.printed:
            print(fitted(harmless(line.text), sys.stderr), file=sys.stderr, flush=True)

    def close(self) -> None:
        """Restore the terminal; the results follow."""


class NoUi(Ui):
    """``--ui none``: only the log."""

    def show(self, snapshot: Snapshot) -> None:
        pass


__all__ = [
    "CellProgress", "LogLine", "NoUi", "Snapshot", "Step", "Ui", "columns", "fitted", "parent_has_terminal", "work_apart",
]  # fmt: skip
