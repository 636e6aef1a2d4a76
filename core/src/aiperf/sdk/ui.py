"""The contract of live displays.

A display has its own process and owns the terminal during the run.  With ``in_process: true`` in its manifest the run's
own process calls it, so it must be cheap.  With ``terminal: true`` it requires a terminal.
"""

from __future__ import annotations

import sys

from msgspec import Struct

from aiperf.sdk.options import OptionsT, WithOptions
from aiperf.terminal import columns, fitted


class UiFacts(Struct, frozen=True):
    """What the manifest says of a display, below ``capabilities``.

    in_process: the run's own process calls it.  terminal: it requires one.  instead_of: names of displays that it stands in for
    where they are not installed.
    """

    in_process: bool = False
    terminal: bool = False
    instead_of: tuple[str, ...] = ()


class CellProgress(Struct, frozen=True):
    """The place of a run among those of its study.

    number: from 1.  of: number of all runs; None where that isn't known.  label: ``concurrency_4/trial_0002``.
    left_s: seconds until the last run has ended; None is unknown.
    """

    number: int
    of: int | None
    label: str
    left_s: float | None = None

    def line(self) -> str:
        """``run 3 of 9  concurrency_4/trial_0002  2:10 left``."""
        of = "" if self.of is None else f" of {self.of:,}"
        left = "" if self.left_s is None else f"  {_clock(self.left_s)} left"
        return f"run {self.number:,}{of}  {self.label}{left}"


class Snapshot(Struct, frozen=True):
    """The state of a phase.

    share: progress towards the stop condition, 0 to 1, None without one.  elapsed_s, eta_s: seconds; eta_s None is unknown.
    rate: completed requests/s.  ttft_ms, itl_ms: means of the reduced requests so far; None before the first.
    unreached_s: for how many seconds, 3 at least, no connection to the server could be opened; None where that is not so.
    cell: the run's place in a study; None for a run by itself.
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
    unreached_s: float | None = None
    cell: CellProgress | None = None

    def lines(self) -> tuple[str, ...]:
        """Two lines of text: the progress, and the rates and latencies so far; before them the run's place in a study."""
        percent = "" if self.share is None else f" {min(100, int(self.share * 100)):3d} %"
        eta = "" if self.eta_s is None else f"  ETA {_clock(self.eta_s)}"
        first = (
            f"{self.phase}{percent}  {_clock(self.elapsed_s)}{eta}  {self.completed:,} done  {self.in_flight:,} in flight"
            f"  {self.errors:,} errors"
        )
        parts = [] if self.unreached_s is None else [f"no connection for {_clock(self.unreached_s)}"]
        parts.append(f"{self.rate:,.1f} requests/s")
        if self.ttft_ms is not None:
            parts.append(f"TTFT {self.ttft_ms:,.2f} ms")
        if self.itl_ms is not None:
            parts.append(f"ITL {self.itl_ms:,.2f} ms")
        return (*([] if self.cell is None else [self.cell.line()]), first, "  ".join(parts))


class Step(Struct, frozen=True):
    """Work before or behind the load that takes more than a second.

    what: ``Making the data set``.  done, total: how far it is, in *unit*; None is unknown.
    """

    what: str
    elapsed_s: float
    done: int | None = None
    total: int | None = None
    unit: str = ""

    def line(self) -> str:
        """``Making the data set: 1,200 of 40,000 entries, 0:07``."""
        far = "" if self.done is None else f": {self.done:,}{'' if self.total is None else f' of {self.total:,}'} {self.unit}"
        return f"{self.what}{far}, {_clock(self.elapsed_s)}"


def _clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


class Ui(WithOptions[OptionsT]):
    """Shows a run while it goes on.  options: the display's own (None where it declares none).

    A display that fails, hangs or dies is reported, and the run continues without it.  The keyboard is ``/dev/tty``, not
    standard input.  Ctrl-C reaches only the run.
    """

    draws = False
    """Whether it redraws lines of the terminal, in the run's own process: steps are not logged then, and results close it."""

    def show(self, snapshot: Snapshot) -> None:
        """Show live numbers; called a few times per second.  Snapshots that come too fast are left out."""
        raise NotImplementedError(f"{type(self).__name__} must define show(snapshot)")

    def step(self, step: Step) -> None:
        """Show what the run does before or behind the load; called a few times per second.  The log has a line on it, too."""

    def log(self, line: str) -> None:
        """Show a log line, without its newline."""
        print(fitted(line, sys.stderr), file=sys.stderr, flush=True)

    def close(self) -> None:
        """Restore the terminal at the end of the load; the results follow."""


class NoUi(Ui):
    """``--ui none``: only the log."""

    def show(self, snapshot: Snapshot) -> None:
        pass


__all__ = ["CellProgress", "NoUi", "Snapshot", "Step", "Ui", "columns", "fitted"]
