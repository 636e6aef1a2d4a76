"""The contract of live displays.

A display lives in a process of its own and owns the terminal while the run goes on; one whose manifest says
``in_process: true`` is called from the run's own process, and must cost next to nothing.  With ``terminal: true`` it needs a
terminal to draw on.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from aiperf.progress import Snapshot


class Ui:
    """Shows a run while it goes on.  *options* has the display's own options as attributes (None where it declares none).

    It may fail, hang or die: that is reported, and the run goes on without it.  Standard input isn't the keyboard: that is
    ``/dev/tty``.  Ctrl-C reaches the run alone.
    """

    def __init__(self, options: Any = None) -> None:
        self.options = options

    def show(self, snapshot: Snapshot) -> None:
        """Live numbers, a few times a second; those that it is too slow for are left out."""
        raise NotImplementedError(f"{type(self).__name__} must define show(snapshot)")

    def log(self, line: str) -> None:
        """A line of the log, for a person, without its newline."""
        print(line, file=sys.stderr, flush=True)

    def close(self) -> None:
        """The load is over: leave the terminal as it was, results follow."""


class NoUi(Ui):
    """``--ui none``: nothing but the log."""

    def show(self, snapshot: Snapshot) -> None:
        pass
