"""A plan from start to artifacts: the parent process of ``aiperf profile``."""

from __future__ import annotations

import contextlib
import json
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from aiperf import environment, logs
from aiperf.errors import AiperfError
from aiperf.planning import configure
from aiperf.planning.problems import Settings
from aiperf.processes import control
from aiperf.registry.hooks import Hooks
from aiperf.run.children import Children, Mailbox
from aiperf.run.display import Display, display
from aiperf.run.outcome import Interruption, Outcome, Signals
from aiperf.run.phase import Phase
from aiperf.run.start import Builder, Directories, raise_open_files_limit, switchboard
from aiperf.rundir.journal import RunClock, save_run
from aiperf.sdk.plan import Plan, Secrets
from aiperf.sdk.ui import NoUi
from aiperf.telemetry.process import Sources
from aiperf.worker.clock import read_clocks

if TYPE_CHECKING:
    from aiperf.registry.registry import Registry
    from aiperf.sdk.summary import Summary

_BUILD_POLL_MS = 10
_POLL_MS = 100
_REDUCE_POLL_MS = 25
_EXIT_WAIT_S = 10.0
_END_S = 2.0


def profile(settings: Settings, registry: Registry) -> int:
    """Run what the settings ask for; returns the exit code.

    Raises:
        AiperfError: The run can't be started; nothing was sent.
    """
    kernel = settings.kernel
    level = logs.level_of(kernel.log_level, verbose=kernel.verbose, extra_verbose=kernel.extra_verbose)
    logs.to_console(level)
    environment.check()
    with Signals().caught() as signals:
        plan, secrets = configure.plan(settings, registry)
        display = _display(plan, registry)
        logs.to_console(level, display.log)
        try:
            return _execute(plan, secrets, settings, Outcome(signals), display, registry.hooks())
        except Interruption:
            return signals.code
        finally:
            display.close()


def _display(plan: Plan, registry: Registry) -> Display:
    ref = plan.plugins.ui
    if ref is None:
        return Display(NoUi(), "")
    in_process = bool(registry.descriptor("uis", ref.name).capabilities.get("in_process"))
    return display(ref, plan.plugins.options.get(ref.key), in_process=in_process)


def _execute(plan: Plan, secrets: Secrets, settings: Settings, outcome: Outcome, display: Display, hooks: Hooks) -> int:
    """Run the plan, and return the exit code.  A run that ends before its first phase leaves the directory as it was."""
    hooks.report = outcome.warn
    raise_open_files_limit()
    directories = Directories(plan.output)
    with directories.restored_unless_begun():
        clock = RunClock(*read_clocks())
        save_run(directories.journal, plan, clock)
        with (
            contextlib.closing(Builder(plan)) as builder,  # forks: before any thread
            switchboard(settings.kernel.zmq_host, settings.kernel.zmq_ipc_path) as board,
            contextlib.closing(Run(plan, clock, settings, outcome, display, hooks, directories, board)) as run,
        ):
            return run.execute(builder, secrets)


class Run:
    """One run: what happens in which order.  Owns the processes."""

    def __init__(
        self, plan: Plan, clock: RunClock, settings: Settings, outcome: Outcome, display: Display, hooks: Hooks,
        directories: Directories, board: control.Switchboard,
    ) -> None:  # fmt: skip
        self._plan, self._clock, self._settings = plan, clock, settings
        self._outcome, self._display, self._hooks, self._directories = outcome, display, hooks, directories
        self._children = Children(plan, board.address, directories.journal, directories.log_file)
        self._sources = Sources(plan, directories.log_file, outcome.warn)
        self._mailbox = Mailbox(board, self._children, outcome, directories.artifacts)

    def execute(self, builder: Builder, secrets: Secrets) -> int:
        """From the build of the data set to the exit code.

        Raises:
            AiperfError: The run can't begin, or a reducer failed; then the journal is kept.
            Interruption: A signal before the load, or a second one after it.
        """
        self._plan = self._prepare(builder, secrets)
        save_run(self._directories.journal, self._plan, self._clock)
        self._load(secrets)
        self._hooks.call("aiperf_run_configured", plan=self._plan)
        self._directories.begin(self._plan.data.source)
        for phase in self._plan.load.phases:
            if self._outcome.signals.count or self._outcome.incomplete:
                break
            settings, outcome, hooks = self._settings, self._outcome, self._hooks
            Phase(phase, self._plan, settings, outcome, hooks, self._mailbox, self._sources, self._display).run()
        self._sources.close()
        self._end_workers()
        self._reduce()
        return self._export(self._summarize())

    def close(self) -> None:
        """End every process."""
        self._display.close()
        self._sources.close()
        self._children.end(_END_S)
        self._hooks.call("aiperf_teardown")

    def _prepare(self, builder: Builder, secrets: Secrets) -> Plan:
        """The built plan, once the servers are ready."""
        kernel, waiting = self._settings.kernel, None
        if kernel.ready_timeout_s:
            from aiperf.run.readiness import Wait

            waiting = Wait(self._plan, secrets, kernel.ready_mode, kernel.ready_timeout_s, kernel.ready_interval_s)
        while not builder.poll():
            self._receive(_BUILD_POLL_MS)
        self._outcome.stamp("built_ns")
        plan = builder.result()
        if waiting is not None:
            while not waiting.over():
                self._receive(_POLL_MS)
            waiting.settle()
        return plan

    def _receive(self, wait_ms: int) -> None:
        self._mailbox.receive(wait_ms)
        self._outcome.signals.check()

    def _load(self, secrets: Secrets) -> None:
        """Hand the plan to every worker and reducer, and wait until all are ready.

        Raises:
            AiperfError: One of them died, can't run the plan, or takes too long.
        """
        journal, mailbox = str(self._directories.journal), self._mailbox
        reducer_secrets = Secrets(options=secrets.options)  # it sends nothing, and needs no header
        mailbox.send_plan({"worker": control.Load(journal, secrets), "reducer": control.Load(journal, reducer_secrets)})
        limit_s = environment.start_s()
        until = time.monotonic() + limit_s
        while unready := [child.identity for child in self._children.all if not child.ready]:
            self._receive(_POLL_MS)
            for child in self._children.all:
                if child.process.poll() is not None:
                    hint = f"see {self._directories.log_file}"
                    raise AiperfError(f"{child.identity} {child.fate()} before it was ready", hint)
            if mailbox.unready:
                raise AiperfError("; ".join(mailbox.unready))
            if time.monotonic() > until:
                raise AiperfError(f"{', '.join(unready)} did not get ready within {limit_s:g} s")

    def _end_workers(self) -> None:
        for child in self._children.workers:
            if child.index not in self._outcome.lost:
                self._mailbox.send(child, control.Exit())
        until = time.monotonic() + _EXIT_WAIT_S
        while any(child.process.poll() is None for child in self._children.workers) and time.monotonic() < until:
            self._mailbox.receive(1)

    def _reduce(self) -> None:
        self._check_dropped()
        if self._outcome.signals.count:
            self._outcome.incomplete = self._outcome.incomplete or "the run was cancelled before it was complete"
        self._mailbox.catch_up = lambda child: [control.Finish()]
        for child in self._children.reducers:
            if child.ready:
                self._mailbox.send(child, control.Finish())
        self._wait(lambda: len(self._mailbox.reduced) == len(self._children.reducers))
        self._outcome.stamp("reduced_ns")

    def _summarize(self) -> Summary:
        from aiperf.sdk.summary import Summary

        outcome, mailbox = self._outcome, self._mailbox
        summarize = control.Summarize(outcome.signals.count > 0, outcome.incomplete, tuple(outcome.warnings))
        mailbox.catch_up = lambda child: [control.Finish(), *([summarize] if child.index == 0 else [])]
        mailbox.send(self._children.reducers[0], summarize)
        self._wait(lambda: mailbox.summarized)
        summary = msgspec.msgpack.decode((self._directories.journal / "summary.msgpack").read_bytes(), type=Summary)
        for child in self._children.reducers:
            child.ended = True
            mailbox.send(child, control.Exit())
        outcome.stamp("summarized_ns")
        return summary

    def _wait(self, over: Callable[[], bool]) -> None:
        while not over():
            self._mailbox.receive(_REDUCE_POLL_MS)
            self._mailbox.watch_reducers()
            self._check_dropped()
        if self._mailbox.failures:
            message, *hints = self._mailbox.failures[0].split("\n")
            again = f"the journal is kept; try again with: aiperf report {self._directories.artifacts}"
            raise AiperfError(message, *hints, again)

    def _check_dropped(self) -> None:
        if self._outcome.signals.count > 1:
            again = f"make the report from the journal with: aiperf report {self._directories.artifacts}"
            print(f"aiperf: dropped; {again}", file=sys.stderr)
            raise Interruption

    def _export(self, summary: Summary) -> int:
        from aiperf.rundir import artifacts

        journal = self._directories.journal
        self._display.close()
        self._hooks.call("aiperf_summary_made", summary=summary)
        target = artifacts.target_for(self._plan, self._clock)
        written, failures = artifacts.export(summary, self._plan, journal, target)
        failures += summary.extra.get("failures", [])
        for files in self._hooks.call("aiperf_export", summary=summary, target=target) or ():
            written += files or []
        artifacts.print_footer(written, self._directories.log_file)
        artifacts.mark_ready(target, written, cancelled=summary.cancelled, partial=bool(failures))
        self._outcome.stamp("exported_ns")
        (journal / "run-times.json").write_text(json.dumps(self._outcome.times, indent=2) + "\n")
        self._hooks.call("aiperf_run_ended", summary=summary)
        return self._exit_code(summary, failed=bool(failures))

    def _exit_code(self, summary: Summary, *, failed: bool) -> int:
        outcome = self._outcome
        if outcome.signals.code:
            return outcome.signals.code
        if summary.incomplete_reason is not None:
            print(f"aiperf: results are partial: {summary.incomplete_reason}", file=sys.stderr)
        if summary.valid == 0:
            print("aiperf: no request succeeded; the errors are counted above", file=sys.stderr)
        return 1 if failed or outcome.lost or outcome.replaced or outcome.incomplete or summary.valid == 0 else 0
