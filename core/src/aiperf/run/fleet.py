"""The processes of a run: for one plan, or for one plan after the other.  And what is done between two plans."""

from __future__ import annotations

import contextlib
import logging
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from aiperf import environment, logs
from aiperf.errors import AiperfError
from aiperf.planning.kernel_options import KernelOptions
from aiperf.processes import control
from aiperf.processes.local import let_all_go
from aiperf.run.builder import Builder
from aiperf.run.children import Children, Mailbox, counts, fewest_phases
from aiperf.run.companions import Resting
from aiperf.run.start import Directories, switchboard
from aiperf.run.watchers import Watchers
from aiperf.rundir import temporary
from aiperf.sdk.plan import Plan, RunClock, Secrets

if TYPE_CHECKING:
    from aiperf.run.measured import Measured
    from aiperf.run.site_switchboard import SiteSwitchboard
    from aiperf.sites.remote import RemoteSites

log = logging.getLogger(__name__)

_END_S = 2.0
_RELEASE_S = 10.0
"""Longest time until a process has dropped its plan."""
_LONG_S = 10.0
"""Behind a load of this time the files are written at once: they are no large part of the time that a plan takes."""
QUEUE_S, CROWDED_S = 60.0, 5.0
"""Longest time that the servers' queue is waited for, and once it did not get empty in that time."""
_LOOK_S = 0.05


class Settled(Struct, frozen=True):
    """What was waited for between two plans.  waited_s: for what was under way, without the cooldown.
    queued: requests that the servers still had, of whomever, when the wait ended; None where nothing tells.
    """

    waited_s: float
    queued: float | None = None


class _PutOff(Struct, frozen=True):
    measured: Measured
    done: Callable[[Measured, AiperfError | None], object]


class Fleet:
    """The processes of a run.  *kept*: those of one plan run the next one, too.

    They do only where a new process would find the same: environment, working directory, mask of new files, channel, engine and
    its options.  Sites are kept with what they have; shards that an engine plugin starts on this machine never are.

    kept: as given.  resting: whether no plan is under way, and processes wait for the next one.  keeps: whether those of the
    plan will.  prepare, last_message: the first and the last message of a plan to each of its processes.
    sites: of a run that has some, while it goes on, and while they wait.
    companions: those that wait.  watchers: displays and live views of all plans; they end with :meth:`close`.

    A study runs its plans so, between them nothing of a plan but what :meth:`settle` waits for::

        measured = measure(settings, registry, signals, fleet, console=..., later=True)
        fleet.files_of(measured, done)
        fleet.settle(cooldown_s, pause)
        ...
        fleet.finish_files()  # behind the last one
    """

    board: control.Switchboard | SiteSwitchboard
    children: Children
    sites: RemoteSites | None = None

    def __init__(self, *, kept: bool = False) -> None:
        self.kept = kept
        self._stack = contextlib.ExitStack()
        self._surroundings: Any = None
        self._put_off: list[_PutOff] = []
        self._builder: Builder | None = None
        self.companions, self.watchers = Resting(), Watchers()
        self.resting = self.keeps = False

    def builder_of(
        self, plan: Plan, kernel: KernelOptions, secret_texts: Sequence[str], say: Callable[[str], None],
        asking: Secrets | None = None,
    ) -> Builder | None:  # fmt: skip
        """The builder of the plan before, which makes the data set of this one; None where another one is needed.

        To be called before :meth:`begin`: processes that can't serve the plan end here.  *say*: prints a line of its log.
        *asking*: as of :class:`Builder`.
        """
        surroundings = _surroundings(plan, kernel)
        enough = self.resting and len(plan.load.phases) <= self.children.shared.phases
        if not enough or surroundings != self._surroundings or not self._sites_wake(plan):
            self.end()
        self._surroundings = surroundings
        again = self._builder is not None and self._builder.again(plan, secret_texts, say, asking)
        if not again and self.sites is not None:
            self.end()  # a fork would keep the standard input of their commands open
        return self._builder if again else None

    def _sites_wake(self, plan: Plan) -> bool:
        """Whether the sites of the plan before, if it had some, take part in this one."""
        if self.sites is None or not self.sites.large_enough(plan):
            return self.sites is None
        signals = self.watchers.signals
        if (why := self.sites.wake(lambda: signals is not None and signals.count > 0)) is not None:
            log.warning("%s; all sites are started anew", why)
        return why is None

    def missing(self, plan: Plan) -> int:
        """How many processes of this machine :meth:`begin` will start."""
        have = self.children.of if self.resting else {}
        return sum(max(0, number - len(have.get(role, ()))) for role, number in counts(plan).items())

    def keep(self, builder: Builder) -> None:
        """The *builder* is that of the plan; it ends with the other processes."""
        self._builder = builder

    def forked(self, directories: Directories, secret_texts: Sequence[str]) -> None:
        """In a builder: let go of what belongs to the process that it was forked from.  *directories*: of its first plan."""
        self._let_go()
        if self.kept:
            # A lock ends with the last process that has it open, and this one outlives the plan.
            directories.close()
            for put_off in self._put_off:
                put_off.measured.close()
        logs.scrub_output(secret_texts)

    def begin(self, plan: Plan, kernel: KernelOptions, directories: Directories, clock: RunClock) -> None:
        """Make channel and processes ready for the plan.  *clock*: of the run.

        Raises:
            AiperfError: The channel or the engine can't be used.
        """
        paths = directories.journal, directories.log_file
        if self.resting:
            self._await_released()
            if not isinstance(self.board, control.Switchboard) and self.sites is not None:
                self.sites.begin(plan, clock, *paths)
                self.board.go_out()
            self.children.begin(plan, *paths)
        else:
            board = self._stack.enter_context(switchboard(kernel.zmq_host, kernel.zmq_ipc_path))
            self.board = board
            if plan.run.sites:
                self.sites, self.board = self._sites_started(plan, clock, paths, board)
            self.children = Children(plan, board.address, *paths, kept=self.kept, sites=self.sites)
            self._stack.callback(self.children.end, _END_S)
        self.resting = False
        self.keeps = again = self.kept and (self.children.local or self.sites is not None)
        self.prepare = control.Prepare(str(directories.journal), str(directories.log_file) if again else "")
        self.last_message = control.Release() if again else control.Exit()

    def _sites_started(
        self, plan: Plan, clock: RunClock, paths: tuple[Path, Path], board: control.Switchboard
    ) -> tuple[RemoteSites, SiteSwitchboard]:  # fmt: skip
        from aiperf.run.site_switchboard import SiteSwitchboard, started
        from aiperf.sites.commands import Keeping

        keeping = None
        if self.kept:
            phases, logs = fewest_phases(plan), self._stack.enter_context(temporary.private_directory(what="logs"))
            keeping = Keeping(phases, logs)
        sites = started(plan, clock, *paths, keeping)
        self._stack.callback(sites.close)
        return sites, SiteSwitchboard(board, sites)

    def come_home(self, mailbox: Mailbox) -> None:
        """The sites are over: what is left of the plan is done on this machine, by processes that *mailbox* tells of it."""
        if not isinstance(self.board, control.Switchboard):
            self.board.come_home()
        mailbox.come_home()

    def _await_released(self) -> None:
        """Wait until every process has dropped the plan before; one that does not is replaced."""
        until_s = time.monotonic() + _RELEASE_S
        while any(child.busy for child in self.children.all) and time.monotonic() < until_s:
            message = self.board.receive(1)
            if isinstance(message, control.Released):
                self.children.of[message.role][message.index].released = True

    def rest(self) -> None:
        """The plan is over, and each of its processes has got :attr:`last_message`."""
        self.resting = isinstance(self.last_message, control.Release) and (self.sites is None or self.sites.resting)

    def _let_go(self) -> None:
        """In a forked process: the others end with the process that started them, even where this one lives on."""
        if self.resting:
            self.children.let_go()
        if self._builder is not None:
            self._builder.let_go()
        let_all_go()

    def files_of(self, measured: Measured, done: Callable[[Measured, AiperfError | None], object]) -> None:
        """Let the files of a plan that was measured with *later* be written: at once behind a long load, else with the build of
        the next plan, or by :meth:`finish_files`.

        *done*: called when they are, with the error where they can't be; ``measured.code`` has the exit code.
        """
        self._put_off.append(_PutOff(measured, done))
        if measured.finished or measured.load_s >= _LONG_S:
            self.finish_files()

    def finish_files(self) -> None:
        """Write the files that were put off.

        Raises:
            Interruption: A second signal.
        """
        while self._put_off:
            put_off = self._put_off.pop(0)
            try:
                put_off.measured.finish_files()
            except AiperfError as error:
                put_off.done(put_off.measured, error)
            else:
                put_off.done(put_off.measured, None)

    def settle(self, cooldown_s: float, pause: Callable[[float], bool], queue_s: float = QUEUE_S) -> Settled:
        """Wait until nothing of the plan before is in flight, for 60 s at most, and, where that is known, the servers have no
        request in work or in their queue, for *queue_s* at most; then for *cooldown_s*.

        *pause*: waits for so many seconds; False ends the wait.
        """
        began_s = time.monotonic()
        queued = self.companions.queued()
        while self._waits(time.monotonic() - began_s, queued, queue_s) and pause(_LOOK_S):
            queued = self.companions.queued()
        settled = Settled(time.monotonic() - began_s, queued)
        if cooldown_s > 0:
            pause(cooldown_s)
        return settled

    def _waits(self, waited_s: float, queued: float | None, queue_s: float) -> bool:
        return waited_s < QUEUE_S and (self._in_flight() or bool(queued and waited_s < queue_s))

    def _in_flight(self) -> bool:
        """Whether a worker may have requests in flight: one that has dropped its plan has closed its connections."""
        return self.resting and any(child.busy for child in self.children.workers)

    def end(self) -> None:
        """End all processes, and close the channel; files that were put off may still be written.  May be called again."""
        self.resting = False
        builder, self._builder = self._builder, None
        if builder is not None:
            builder.end()
        self.companions.close()
        self._stack.close()
        self.sites = None

    def close(self) -> None:
        """End all processes.  Files that were put off stay unwritten.  May be called again."""
        for put_off in self._put_off:
            put_off.measured.drop()
        self._put_off.clear()
        self.end()
        self.watchers.close()


def _surroundings(plan: Plan, kernel: KernelOptions) -> Any:
    """What a process keeps from its start on."""
    mask, here = os.umask(0o077), Path().stat()
    os.umask(mask)
    channel, engine = (kernel.zmq_host, kernel.zmq_ipc_path), plan.plugins.engine
    options = msgspec.json.encode(None if engine is None else plan.plugins.options.get(engine.key))
    at = engine, options, plan.run.sites
    return at, channel, environment.for_children(sends=True), mask, here.st_dev, here.st_ino
