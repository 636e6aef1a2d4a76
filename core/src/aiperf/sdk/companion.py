"""The contract of companions: what works beside the load, and is told of the points of a run's life.

The run's own process makes one of each and calls it.  No request is in flight during a call, except ``phase_began`` and
``snapshot``.  An exception is reported, with package and version, and the run goes on without the companion.

The manifest may say in which runs a companion takes part: ``needs_option: FIELD`` where this option of its own has a value
other than none, 0 or false; ``needs_plugins: telemetry`` where the run uses plugins of that category.  No other run imports it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Generic

from msgspec import Struct

from aiperf.sdk.options import OptionsT
from aiperf.sdk.plan import PhasePlan, Plan, Secrets

if TYPE_CHECKING:
    from aiperf.sdk.snapshot import LiveSeries, Snapshot


class CompanionContext(Struct, frozen=True):
    """What a companion knows of its run.

    plan: before the data set is made, with its secrets.  secrets: the headers of every request, and the texts that stand in no
    file.  log_file: for what processes of its own write.  report: takes a sentence for the log and the report, as a warning.
    kept: another plan may follow, and :meth:`Companion.rest` is called in place of :meth:`Companion.close`.
    """

    plan: Plan
    secrets: Secrets
    log_file: Path
    report: Callable[[str], None]
    kept: bool = False


class Waiting(Struct, frozen=True):
    """What the load waits for: ``Waiting for http://a``.  done, total: how far that is, in *unit*; None is unknown."""

    what: str
    done: int | None = None
    total: int | None = None
    unit: str = ""


class Companion(Generic[OptionsT]):
    """Made once a run, cheaply.  options: the companion's own (None where it declares none)."""

    def __init__(self, options: OptionsT, context: CompanionContext) -> None:
        self.options, self.context = options, context

    @classmethod
    def check(cls, plan: Plan, options: OptionsT) -> None:
        """Refuse the plan with ConfigError, before anything is started."""

    @classmethod
    def processes(cls, plan: Plan, options: OptionsT) -> int:
        """How many processes (``aiperf.parts.processes.SideProcess``) :meth:`begin` will start: they are forked ahead, because
        a new interpreter takes longer.  Their modules have a function ``main``, which gets the words of the command line."""
        return 0

    def begin(self) -> None:
        """The run begins: the data set is made beside what is started here.  An AiperfError ends the run before its load."""

    def waiting(self) -> Waiting | None:
        """What the load waits for, asked often behind the making of the data set; None lets it begin.

        It is shown once it takes a second, and the companion logs it by itself.  An AiperfError ends the run before its load.
        """
        return None

    def phase_begins(self, phase: PhasePlan) -> None:
        """The phase begins when this returns, within seconds."""

    def phase_began(self, phase: PhasePlan, at_ns: int) -> None:
        """The phase begins at this monotonic instant, milliseconds away; return at once."""

    def snapshot(self, snapshot: Snapshot) -> None:
        """Live numbers, at most twice a second while a phase runs, and at its end with the last ones; return at once."""

    def series(self) -> Sequence[LiveSeries]:
        """The last values of telemetry series, asked twice a second while somebody looks; return at once."""
        return ()

    def phase_ended(self, phase: PhasePlan, at_ns: int) -> None:
        """The phase ended at this monotonic instant; the next one waits for the return."""

    def finish(self) -> None:
        """The load is over: begin to end, and wait for nothing.  Not called where the run ends before."""

    def close(self) -> None:
        """The last call, also of a run that failed: end what was started.  The summary waits for the return."""

    def rest(self) -> bool:
        """The last call for this plan, which the summary waits for, where another plan may follow.  True keeps what was started
        until :meth:`again` or :meth:`close`; False calls :meth:`close`."""
        return False

    def again(self, context: CompanionContext) -> bool:
        """Take part in another plan, with the same options of this companion's own; :meth:`begin` is next.  False calls
        :meth:`close`, and another companion is made."""
        return False

    def queued(self) -> float | None:
        """How many requests the servers under test have in work or in their queues right now, between two plans; None where
        that isn't known.  Asked often behind :meth:`rest`, and returns at once."""
        return None


__all__ = ["Companion", "CompanionContext", "Waiting"]
