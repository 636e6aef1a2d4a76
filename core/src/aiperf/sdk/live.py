"""The contract of live views, which watch runs while they go on, and may end them.

Every enabled view has a process of its own, which works at idle priority once it has begun: it gets what the load leaves of
the cores.  One that has not begun, and gets no core, has the run's priority for at most ten seconds.  With
``needs_option: FIELD`` in the manifest it is left out where that option of its own is none or false.  One process serves all
plans of an ``aiperf.Run`` or of a study.  A view that fails, hangs or dies is reported, and the run goes on without it; one
that is too slow loses snapshots.
What it prints goes to the run's log file.  The signals that end a run don't reach it: the run tells it of the end.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec import Struct

from aiperf.sdk.options import OptionsT, WithOptions
from aiperf.sdk.plan import Plan
from aiperf.sdk.snapshot import CellProgress, LogLine, Snapshot, clock

if TYPE_CHECKING:
    from aiperf.sdk.summary import Summary


class LiveFacts(Struct, frozen=True):
    """What the manifest says of a view, below ``capabilities``.

    needs_option: field of its own options without which it takes no part; variable: of the environment, which stands for it.
    stays_s: seconds, 0 to 60, that the process may go on after the end of the run, which waits for it; then it is killed.
    checks: its class has a :meth:`LiveView.check`; the run's own process imports the package for it, so its module is light.
    """

    needs_option: str = ""
    variable: str = ""
    stays_s: Annotated[float, msgspec.Meta(ge=0, le=60)] = 2.0
    checks: bool = False


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
        return f"{self.what}{far}, {clock(self.elapsed_s)}"


class LiveRun(Struct, frozen=True):
    """A plan that begins.

    plan: before its data set is made, without secrets.  cell: its place in a study; None for a run by itself.
    at_ns: wall clock.
    """

    plan: Plan
    cell: CellProgress | None = None
    at_ns: int = 0


class LiveEnd(Struct, frozen=True):
    """The end of a plan, behind its last file.

    directory: of the run's files, as an absolute path.  files: absolute paths of what was written.  code: the exit code.
    failure: why there is no summary; "" where there is one.
    """

    directory: str = ""
    files: tuple[str, ...] = ()
    code: int = 0
    failure: str = ""

    @property
    def summary(self) -> Summary | None:
        """The summary, read from its file at each call; None where there is none."""
        from aiperf.sdk.summary import Summary

        try:
            packed = (Path(self.directory) / "journal" / "summary.msgpack").read_bytes()
            summary = msgspec.msgpack.decode(packed, type=Summary)
        except (OSError, msgspec.DecodeError):
            return None
        return msgspec.structs.replace(summary, directory=self.directory)


class EndKind(StrEnum):
    """How a run is asked to end: ``stop`` as the first Ctrl-C, ``cancel`` as the second."""

    STOP = "stop"
    CANCEL = "cancel"


class Asked(Struct, frozen=True, tag=True):
    """A view asks the run to end.  reason: a clause for the report (``TTFT p99 passed 500 ms``)."""

    kind: EndKind
    reason: str = ""


class Said(Struct, frozen=True, tag=True):
    """A view has a sentence for the run's log.  unlogged: for standard error alone."""

    sentence: str
    level: int = 20
    unlogged: bool = False


class LiveFeed:
    """What the run sends to a view's process.  It calls the view's methods.

    In a loop of asyncio :meth:`followed` does all; for another one: :meth:`take` at each call for :meth:`fileno`.
    """

    def fileno(self) -> int:
        """The descriptor that is readable when there is something to take."""
        raise NotImplementedError(f"{type(self).__name__} must define fileno()")

    def take(self, wait_s: float | None = 0.0) -> bool:
        """Call the view with what has come, waiting up to *wait_s* for it (None: without limit).

        Of several snapshots that have come together only the newest is given.  False once the run wants nothing more of the
        process, which then has :attr:`LiveFacts.stays_s` left.  An exception of a method of the view passes.
        """
        raise NotImplementedError(f"{type(self).__name__} must define take(wait_s)")

    async def followed(self) -> None:
        """In a loop of asyncio: call the view with what comes, until the feed is over.  An exception of a method passes."""
        import asyncio  # in no process that has other views

        loop = asyncio.get_running_loop()
        over: asyncio.Future[None] = loop.create_future()

        def ready() -> None:
            try:
                if self.take():
                    return
            except BaseException as error:  # noqa: BLE001  # raised by followed()
                over.set_exception(error)
            else:
                over.set_result(None)
            loop.remove_reader(self.fileno())

        loop.add_reader(self.fileno(), ready)
        try:
            await over
        finally:
            loop.remove_reader(self.fileno())


class LiveView(WithOptions[OptionsT]):
    """Watches runs.  options: the view's own (None where it declares none).

    Calls come in one thread, from :meth:`LiveFeed.take`.  ``ask_stop``, ``ask_cancel`` and ``say`` may be called from any
    thread.
    """

    answer: Callable[[Asked | Said], None] = staticmethod(lambda message: None)
    """Sends to the run; set before :meth:`run`."""

    @classmethod
    def check(cls, plan: Plan, options: OptionsT) -> None:
        """Refuse the plan with ConfigError, before anything is started; with ``checks: true``, in the run's own process."""

    def begin(self, run: LiveRun) -> None:
        """A plan begins."""

    def step(self, step: Step) -> None:
        """The run works before or behind the load; called a few times per second."""

    def show(self, snapshot: Snapshot) -> None:
        """Live numbers, twice a second while a phase runs, and with ``last`` once all is reduced."""
        raise NotImplementedError(f"{type(self).__name__} must define show(snapshot)")

    def log(self, line: LogLine) -> None:
        """A line of the log.  Of too many some are left out; ``Snapshot.logged`` counts all."""

    def end(self, end: LiveEnd) -> None:
        """The plan has ended; another one may begin.  Not called where the run can't say how it ended."""

    def close(self) -> None:
        """The last call: the process ends behind it."""

    def run(self, feed: LiveFeed) -> None:
        """Live until the feed is over.  Override it for an event loop of your own; :meth:`close` is called behind it."""
        while feed.take(None):
            pass

    def ask_stop(self, reason: str = "") -> None:
        """Ask the run to stop, as the first Ctrl-C: nothing more is sent, results are written, the exit code is 130.

        *reason*: a clause for ``incomplete_reason``.  Without a load to stop it does nothing.
        """
        self.answer(Asked(EndKind.STOP, reason))

    def ask_cancel(self, reason: str = "") -> None:
        """Ask the run to end at once, as the second Ctrl-C: what is in flight is aborted, and the results are dropped.

        The journal stays: ``aiperf report`` makes the results of it.
        """
        self.answer(Asked(EndKind.CANCEL, reason))

    def say(self, sentence: str, level: int = 20) -> None:
        """Log a sentence in the run; the first 20 of a plan are."""
        self.answer(Said(sentence, level))

    def tell(self, sentence: str) -> None:
        """Print a sentence on the run's standard error, and in no log: it may hold a secret.  It counts as :meth:`say`."""
        self.answer(Said(sentence, unlogged=True))


__all__ = ["Asked", "EndKind", "LiveEnd", "LiveFeed", "LiveRun", "LiveView", "Said", "Step"]
