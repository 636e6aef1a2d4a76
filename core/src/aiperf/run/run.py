"""A plan from start to artifacts: the parent process of ``aiperf profile``."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from aiperf import environment, logs
from aiperf.cores import machine
from aiperf.errors import AiperfError
from aiperf.planning import configure
from aiperf.planning.problems import ReadingInterrupted, Settings
from aiperf.processes import control
from aiperf.processes.spare import SPARES
from aiperf.processes.title import hide
from aiperf.redaction import owner_alone, scrubbed
from aiperf.registry.imports import IMPORTS
from aiperf.registry.patience import calls, no_exit
from aiperf.run.builder import Builder, asking_of, built, entries_made
from aiperf.run.children import POLL_MS, Child, Children, Mailbox
from aiperf.run.companions import Companions, processes
from aiperf.run.display import Display
from aiperf.run.diverted import diverted
from aiperf.run.failing import Failing
from aiperf.run.fleet import Fleet
from aiperf.run.haste import Haste
from aiperf.run.look import looked
from aiperf.run.measured import Measured, load_exporters, small_rows
from aiperf.run.phase import Phase
from aiperf.run.place import Executed, Place, tell_closed
from aiperf.run.progress import log_every_s
from aiperf.run.reach import Reach
from aiperf.run.showing import Showing, told_of_end
from aiperf.run.site_steps import gather, supply
from aiperf.run.start import (
    Directories,
    Interruption,
    Outcome,
    Signals,
    check_open_files,
    save_first,
    told,
    without_room,
)
from aiperf.run.steps import Far, step, unknown, watched
from aiperf.rundir.journal import RunClock, RunEnd, numbered, save_run
from aiperf.sdk.engine import SiteClock
from aiperf.sdk.fetch import Servers
from aiperf.sdk.live import LiveEnd
from aiperf.sdk.plan import Plan, Secrets
from aiperf.worker.clock import read_clocks

if TYPE_CHECKING:
    from aiperf.registry.registry import Registry
    from aiperf.rundir.artifacts import RowFiles

log = logging.getLogger(__name__)

_BUILD_POLL_MS = 10
_BUILT_S = 0.03
"""A kept data set is there in less."""
_REDUCE_POLL_MS = 25
_EXIT_WAIT_S = 10.0


def profile(settings: Settings, registry: Registry) -> int:
    """Run what the settings ask for; returns the exit code.

    Raises:
        AiperfError: The run can't be started; nothing was sent.
    """
    with Signals().caught() as signals, contextlib.closing(Fleet()) as fleet:
        try:
            return measure(settings, registry, signals, fleet, console=True).code
        except Interruption:
            return signals.code


def execute(
    settings: Settings, registry: Registry, signals: Signals, fleet: Fleet, *, console: bool, place: Place | None = None
) -> Executed:
    """Run what the settings ask for, with all of its files; the summary and the exit code.  As :func:`measure`."""
    measured = measure(settings, registry, signals, fleet, console=console, place=place)
    return Executed(measured.summary, measured.code, measured.fault)


def measure(
    settings: Settings, registry: Registry, signals: Signals, fleet: Fleet, *, console: bool, place: Place | None = None,
    later: bool = False,
) -> Measured:  # fmt: skip
    """Run what the settings ask for.  *console*: log, remarks and results are printed.

    *later*: files that are made of journal and summary are not written: :meth:`Measured.finish_files` writes them, between two
    loads.

    *place*: of the run in a study, of whose runs results are printed with ``-v`` alone.

    Raises:
        AiperfError: The run can't be started; nothing was sent.  Or it could not be reported; then the journal is kept.
        Interruption: A signal before the load, or a second one after it.
    """
    quiet, level = settings.kernel.quiet, settings.log_level
    printed, said = place is None or level < logging.INFO, None if place is None else place.said
    if place is not None and "log_level" not in settings.kernel.fields_set and not printed:
        level = logging.WARNING  # the files of the runs have the rest
    with contextlib.ExitStack() as stack:

        def hide_own(texts: Sequence[str]) -> None:
            if console:
                hide(texts)
                stack.enter_context(logs.errors_scrubbed(texts))

        if console:
            logs.to_console(level, quiet=quiet, said=said)
        stack.enter_context(no_exit(log.warning))
        try:
            plan, secrets = configure.plan(settings, registry, hide_own)
            if place is not None:
                plan = plan.replacing(carried_over=place.carried_over, study_id=place.study_id)
        except ReadingInterrupted:
            signals.check()
            raise
        kept = fleet.kept and not (console and printed)
        display = fleet.watchers.display_of(plan, in_process=in_process(plan, registry), kept=kept)
        stack.enter_context(diverted(display.screen))
        stack.callback(display.close)
        signals.say, signals.loaded, fleet.watchers.signals = display.interject, False, signals
        if console:
            logs.to_console(level, display.log, quiet=quiet, said=said)
        try:
            outcome = Outcome(signals, console=console and printed, secret_texts=secrets.texts)
            with owner_alone(plan.output.private), told_of_end(display, signals):
                measured = _measure(plan, secrets, settings, outcome, display, registry, fleet, place, later=later)
                display.end(LiveEnd(str(measured.directory.absolute()), measured.files, measured.code))
                return measured
        except AiperfError as error:
            error.message = scrubbed(error.message, secrets.texts)
            raise
        except OSError as error:
            raise without_room(error, plan.output) from error


def in_process(plan: Plan, registry: Registry) -> bool:
    """Whether the run's own process calls the display that the plan names."""
    ref = plan.plugins.ui
    return ref is not None and bool(registry.descriptor("uis", ref.name).capabilities.get("in_process"))


def _measure(
    plan: Plan, secrets: Secrets, settings: Settings, outcome: Outcome, display: Display, registry: Registry,
    fleet: Fleet, place: Place | None, *, later: bool,
) -> Measured:  # fmt: skip
    """Run the plan.  A run that ends before its first phase leaves the directory as it was."""
    registry.hooks().report = outcome.blame

    check_open_files(plan)
    say = display.log if place is None else logs.once(display.log, place.said)
    directories = Directories(plan.output)
    with directories.restored_unless_begun():
        clock = RunClock(*read_clocks())
        logs.scrub(secrets.texts)
        logs.file_held()
        save_first(directories, plan, clock)
        beside = 0 if fleet.companions else processes(plan)  # those of the plan before go on
        beside += fleet.watchers.views.missing(plan)
        asking = asking_of(plan, secrets)
        IMPORTS.rest()
        with (
            contextlib.closing(  # forks: before any thread
                fleet.builder_of(plan, settings.kernel, secrets.texts, say, asking)
                or Builder(plan, partial(fleet.forked, directories, secrets.texts), say, kept=fleet.kept, asking=asking)
            ) as builder,
            SPARES.forked(beside + fleet.missing(plan)),  # likewise, and behind the builder, which would keep their pipes open
            calls.watched(environment.plugin_s()),
            no_exit(outcome.warn),
            contextlib.closing(
                PlannedRun(plan, secrets, clock, settings, outcome, display, registry, directories, fleet, place)
            ) as run,
        ):
            fleet.keep(builder)
            measured = run.measure(builder, later=later)
        measured.code = measured.code or int(outcome.plugin_failed)  # the last hook is called after the last file
        if measured.finished:
            measured.close()
        return measured


class PlannedRun:
    """One plan: what happens in which order.  *plan*: the built one, once the data set is there."""
    # More than 20 attributes: it joins processes, companions, what watches the run, and its directories, each one object.

    def __init__(
        self, plan: Plan, secrets: Secrets, clock: RunClock, settings: Settings, outcome: Outcome, display: Display,
        registry: Registry, directories: Directories, fleet: Fleet, place: Place | None,
    ) -> None:  # fmt: skip
        self.place, self.plan, self.secrets, self.clock, self.settings = place, plan, secrets, clock, settings
        self.outcome, self.display, self.directories = outcome, display, directories
        self.registry, self.hooks = registry, registry.hooks()
        fleet.begin(plan, settings.kernel, directories, clock)
        self.fleet, self.children = fleet, fleet.children
        resting = fleet.companions if fleet.keeps else None
        self.companions = Companions(plan, secrets, directories.log_file, outcome.warn, outcome.blame, resting)
        self.mailbox = Mailbox(fleet.board, self.children, outcome, directories.artifacts)
        self.mailbox.announce(dict.fromkeys(self.children.of, fleet.prepare))
        self.reach, self.failing, self._looks = Reach(), Failing(), dict[str, str]()
        self._later, self._site_clocks = False, tuple[SiteClock, ...]()
        self.haste = Haste(self.children, directories.journal)
        self.servers = Servers(plan.target, secrets.headers, self._pause)
        self.showing = Showing(self, log_every_s(settings.kernel, plan, console=outcome.console))
        self.showing.begin()

    def measure(self, builder: Builder, *, later: bool) -> Measured:
        """From the build of the data set to the summary, and to the files unless they are for *later*.

        Raises:
            AiperfError: The run can't begin, or a reducer failed; then the journal is kept.
            Interruption: A signal before the load, or a second one after it.
        """
        self.builder, self.plan = builder, self._prepare(builder)
        self.showing.built()
        save_run(self.directories.journal, self.plan, self.clock)
        self._load()
        self.hooks.call("aiperf_run_configured", plan=self.plan, servers=self.servers)
        self.directories.begin(self.plan.data.source)
        for phase in self.plan.load.phases:
            if self.outcome.signals.count or self.outcome.incomplete:
                self.outcome.cut = self.outcome.signals.count > 0
                break
            Phase(phase, self).run()
        self.outcome.signals.loaded = self.place is None  # in a study there is still something to stop
        self.companions.each(lambda each: each.finish())
        self._end_workers()
        builder.stop()
        self._reduce()
        self._look()
        if self.companions:
            self.mailbox.send(self.children.reducers[0], control.PrepareSummary())
            self.companions.rest(partial(load_exporters, self.plan))
        rows = self._summarize(later=later)
        flag = self.settings.flag("failed_threshold", "--failed-request-threshold")
        measured = Measured(self.plan, self.clock, self.outcome, self.directories, self.hooks, flag, rows)
        self.showing.finish(measured.summary)
        self._release_reducers()
        with watched(self.display, "Writing the data set's files"):
            builder.finish()
        if later:
            measured.put_off(self._await_rows())  # the fleet waits for the reducers, before the next plan
            self._later = True
        else:
            measured.write_now(self.display, self._await_rows)
            self._await_ends(self.children.reducers)
        self.fleet.rest()
        return measured

    def close(self) -> None:
        """End every process, but those that wait for another plan."""
        self.display.close()
        self.companions.close()
        if not self.fleet.resting:
            self.fleet.end()
        if not self._later:
            self.hooks.call("aiperf_teardown")
        IMPORTS.rest()

    def _prepare(self, builder: Builder) -> Plan:
        """The built plan, once no companion waits any more, and the files of plans before are written."""
        self.companions.each(lambda each: each.begin(), passing=AiperfError)
        if builder.waits:  # the endpoint asks the server: not before it is ready
            self.companions.await_all(self.display, self._receive)
            builder.go()
        if not builder.poll(0 if builder.anew else _BUILT_S):
            self.fleet.finish_files()  # beside the build, or beside the load of the plan in other processes
        with step(self.display, "Making the data set", partial(entries_made, self.plan)) as tell:
            while not builder.poll():
                self._receive(_BUILD_POLL_MS)
                tell()
        self.outcome.stamp("built_ns")
        plan = built(builder, self.plan, self.settings)
        self.companions.await_all(self.display, self._receive)
        return plan

    def _pause(self, seconds: float) -> bool:
        """Wait, and go on hearing of the children; False where the run is to end."""
        until_s = time.monotonic() + seconds
        while not self.outcome.signals.count and (left_s := until_s - time.monotonic()) > 0:
            self.mailbox.receive(min(POLL_MS, max(1, round(left_s * 1000))))
            self.display.heed(self.outcome.signals)
        return not self.outcome.signals.count

    def _receive(self, wait_ms: int) -> None:
        self.mailbox.receive(wait_ms)
        self.display.heed(self.outcome.signals)
        self.outcome.signals.check()
        if (refused := self.mailbox.refused) is not None:
            raise told(refused.lines, refused.code)

    def _load(self) -> None:
        """Hand the plan to every worker and reducer, and wait until all are ready.

        Raises:
            AiperfError: One of them died, can't run the plan, or takes too long.
        """
        if (sites := self.fleet.sites) is not None:
            with step(self.display, "Sending the data set to the sites") as tell:
                self.clock = supply(sites, self.plan, self.clock, self._receive, tell, self.directories.log_file.parent)
        reducer_secrets = Secrets(options=self.secrets.options, texts=self.secrets.texts)  # it sends nothing
        to_reducers = control.Load(reducer_secrets, self.showing.watched, self.showing.looked, self.showing.lines_s)
        self.mailbox.announce({"worker": control.Load(self.secrets), "reducer": to_reducers})
        self.fleet.finish_files()
        until = time.monotonic() + (limit_s := environment.start_s())
        with step(self.display, "Starting the processes of the run") as tell:
            self._wait_until_ready(until, limit_s, tell)

    def _wait_until_ready(self, until: float, limit_s: float, tell: Callable[[], None]) -> None:
        while unready := [child.identity for child in self.children.all if not child.ready]:
            self._receive(POLL_MS)
            tell()
            for child in self.children.all:
                if child.process.poll() is not None:
                    died = f"{child.identity} {child.fate()} before it was ready"
                    raise AiperfError(died, f"see {self.directories.log_file}")
            if self.mailbox.unready:
                raise AiperfError("; ".join(self.mailbox.unready))
            if time.monotonic() > until:
                raise AiperfError(f"{', '.join(unready)} did not get ready within {limit_s:g} s")

    def _end_workers(self) -> None:
        for child in self.children.workers:
            if child.index not in self.outcome.lost:
                self.mailbox.send(child, self.fleet.last_message)
        self._await_ends(self.children.workers)

    def _await_ends(self, children: list[Child]) -> None:
        """Wait until the children have ended, or have dropped the plan."""
        until = time.monotonic() + _EXIT_WAIT_S
        while any(child.busy for child in children) and time.monotonic() < until:
            self.mailbox.receive(1)

    def _record_end(self) -> None:
        """Note in ``run.json``, without which there is no report, how the run ended and what its files must hold."""
        outcome, children, directory = self.outcome, self.children, self.directories.journal
        if outcome.cut:
            outcome.incomplete = outcome.incomplete or outcome.signals.asked or "the run was cancelled before it was complete"
        requests, begun = children.requests(), self.mailbox.note_gaps()
        columns = {path.name: path.stat().st_size for path in numbered(directory, "columns-*.*")}
        warnings, died = tuple(outcome.warnings), tuple(sorted(outcome.died))
        hurried = outcome.signals.count > 0
        sites, looks, why = self._site_clocks, self._looks, outcome.incomplete
        end = RunEnd(outcome.cut, why, warnings, requests, died, columns, hurried, looks, sites, machine(), begun)
        with contextlib.suppress(OSError):  # a full disk: the run counts as interrupted
            save_run(directory, self.plan, self.clock, end)

    def _reduce(self) -> None:
        self._record_end()
        self._check_dropped()
        if (sites := self.fleet.sites) is not None:
            self._site_clocks, self.clock = gather(sites, self.mailbox, self._wait, self.clock, self.fleet.last_message)
            self.fleet.come_home(self.mailbox)
            self._record_end()
        self.mailbox.catch_up = lambda child: [control.Finish()]
        for child in self.children.reducers:
            if child.ready:
                self.mailbox.send(child, control.Finish())
        far = partial(_reduced, self.children, self.mailbox)
        self._wait(lambda: len(self.mailbox.reduced) == len(self.children.reducers), "Reducing the rest", far)
        self.outcome.stamp("reduced_ns")

    def _look(self) -> None:
        """Let verdicts ask the servers where no request of the load's end succeeded; what they find is in ``run.json``."""
        self.failing.follow(self.mailbox.fresh)
        causes = self.failing.causes()
        if causes and not self.outcome.signals.count:
            with step(self.display, "Asking the servers what they have"):
                found = looked(self.plan, causes, self.servers, self.registry, self.outcome.blame)
            self._looks = {name: scrubbed(text, self.secrets.texts) for name, text in found.items()}

    def _summarize(self, *, later: bool) -> RowFiles | None:
        """Have the summary made.  Small per-request files that would come *later* are made meanwhile, and given back."""
        mailbox, rows = self.mailbox, None
        self._record_end()  # now with the columns
        tell_closed(self.place, self.plan, self.directories.journal, self.outcome)
        mailbox.catch_up = lambda child: [control.Finish(), *([control.Summarize()] if child.index == 0 else [])]
        mailbox.send(self.children.reducers[0], control.Summarize())
        load_exporters(self.plan)
        if later and not mailbox.rows_wait:
            rows = small_rows(self.plan, self.clock)
        self._wait(lambda: mailbox.summarized or mailbox.working is not None, "Making the summary")
        if mailbox.working is None:
            return rows
        self._wait(lambda: mailbox.summarized or self.outcome.signals.count > 0, mailbox.working.what, partial(_work, mailbox))
        if not mailbox.summarized:
            mailbox.send(self.children.reducers[0], control.Hurry())
            self._wait(lambda: mailbox.summarized, "Making the summary")
        return rows

    def _release_reducers(self) -> None:
        """Reducers are done, but for those that have put off rows."""
        for child in self.children.reducers:
            if child.index not in self.mailbox.rows_wait:
                self.mailbox.send(child, self.fleet.last_message)
        self.outcome.stamp("summarized_ns")

    def _await_rows(self) -> list[str]:
        """Let the reducers write the rows that they put off for the summary; sentences on what failed."""
        mailbox, children = self.mailbox, [self.children.reducers[index] for index in sorted(self.mailbox.rows_wait)]
        mailbox.catch_up = lambda child: [control.Finish(), control.WriteRows()]
        for child in children:
            mailbox.send(child, control.WriteRows())
        if children:
            self._wait(lambda: not mailbox.rows_wait, "Writing the per-request files")
        for child in children:
            mailbox.send(child, self.fleet.last_message)
        for sentence in mailbox.row_failures:
            log.error("%s", sentence)
        return mailbox.row_failures

    def _wait(self, over: Callable[[], bool], what: str, far: Callable[[], Far] = unknown) -> None:
        with step(self.display, what, far) as tell:
            while not over():
                self.mailbox.receive(_REDUCE_POLL_MS)
                self.directories.check()
                self.mailbox.watch_reducers()
                self.haste.check()
                self.display.heed(self.outcome.signals)
                self._check_dropped()
                self.showing.show_rest()
                tell()
        if self.mailbox.failures:
            message, *hints = self.mailbox.failures[0].split("\n")
            again = f"the journal is kept; try again with: aiperf report {self.directories.artifacts}"
            raise AiperfError(message, *hints, again)

    def _check_dropped(self) -> None:
        if self.outcome.signals.count > 1:
            again = f"make the report from the journal with: aiperf report {self.directories.artifacts}"
            self.outcome.signals.say(f"aiperf: dropped; {again}")
            raise Interruption

def _work(mailbox: Mailbox) -> Far:
    working = mailbox.working
    return unknown() if working is None else (working.done, working.of, working.unit)


def _reduced(children: Children, mailbox: Mailbox) -> Far:
    sent = sum(children.requests().values()) or None
    return sum(live.done for live in mailbox.live.values()), sent, "requests"
