"""A plan from start to artifacts: the parent process of ``aiperf profile``."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING

from aiperf import environment, logs
from aiperf.errors import AiperfError
from aiperf.planning import configure
from aiperf.planning.problems import Settings
from aiperf.processes import control
from aiperf.run.children import Children, Mailbox, Supervisor
from aiperf.run.display import Display, display
from aiperf.run.outcome import Interruption, Outcome, Signals
from aiperf.run.stages import Finish, Parts, Phase
from aiperf.run.start import Builder, Directories, raise_open_files_limit, switchboard
from aiperf.rundir.directory import RunClock, save_run
from aiperf.sdk.plan import Plan, Secrets
from aiperf.sdk.ui import NoUi
from aiperf.telemetry.process import Sources
from aiperf.worker.clock import read_clocks

if TYPE_CHECKING:
    from aiperf.registry.registry import Registry

_BUILD_POLL_MS = 10
_POLL_MS = 100
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
            return Run(plan, secrets, registry, settings, signals, display).execute()
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


class Run:
    """One run.  Owns every process, directory and socket that it makes."""

    def __init__(
        self, plan: Plan, secrets: Secrets, registry: Registry, settings: Settings, signals: Signals, display: Display
    ) -> None:
        self._plan, self._secrets, self._settings, self._signals, self._display = plan, secrets, settings, signals, display
        self._outcome = Outcome()
        self._hooks = registry.hooks()
        self._hooks.report = self._outcome.warn

    def execute(self) -> int:
        """Run, and return the exit code.  A run that ends before its first phase leaves the directory as it was."""
        raise_open_files_limit()
        outcome, signals, kernel = self._outcome, self._signals, self._settings.kernel
        directories = Directories(self._plan.output)
        with directories.restored_unless_begun():
            clock = RunClock(*read_clocks())
            save_run(directories.journal, self._plan, clock)
            with (
                contextlib.closing(Builder(self._plan)) as builder,  # forks: before any thread
                switchboard(kernel.zmq_host, kernel.zmq_ipc_path) as board,
            ):
                children = Children(self._plan, board.address, directories.journal, directories.log_file)
                sources = Sources(self._plan, directories.log_file, outcome.warn)
                mailbox = Mailbox(board, children, outcome)
                supervisor = Supervisor(children, mailbox, outcome, signals, directories.artifacts)
                try:
                    plan = self._prepare(builder, mailbox)
                    save_run(directories.journal, plan, clock)
                    self._load(mailbox, children, directories)
                    return self._measure(Parts(
                        plan, self._settings, clock, signals, outcome, directories, self._display, self._hooks,
                        children, mailbox, supervisor, sources,
                    ))  # fmt: skip
                finally:
                    self._display.close()
                    sources.close()
                    children.end(_END_S)
                    self._hooks.call("aiperf_teardown")

    def _prepare(self, builder: Builder, mailbox: Mailbox) -> Plan:
        """The built plan, once the servers are ready."""
        kernel, waiting = self._settings.kernel, None
        if kernel.ready_timeout_s:
            from aiperf.run.readiness import Wait

            waiting = Wait(self._plan, self._secrets, kernel.ready_mode, kernel.ready_timeout_s, kernel.ready_interval_s)
        while not builder.poll():
            self._receive(mailbox, _BUILD_POLL_MS)
        self._outcome.stamp("built_ns")
        plan = builder.result()
        if waiting is not None:
            while not waiting.over():
                self._receive(mailbox, _POLL_MS)
            waiting.settle()
        return plan

    def _receive(self, mailbox: Mailbox, wait_ms: int) -> None:
        mailbox.receive(wait_ms)
        self._signals.check()

    def _load(self, mailbox: Mailbox, children: Children, directories: Directories) -> None:
        """Hand the plan to every worker and reducer, and wait until all are ready.

        Raises:
            AiperfError: One of them died, can't run the plan, or takes too long.
        """
        journal, secrets = str(directories.journal), self._secrets
        reducer_secrets = Secrets(options=secrets.options)  # it sends nothing, and needs no header
        mailbox.send_plan({"worker": control.Load(journal, secrets), "reducer": control.Load(journal, reducer_secrets)})
        limit_s = environment.start_s()
        until = time.monotonic() + limit_s
        while unready := [child.identity for child in children.all if not child.ready]:
            self._receive(mailbox, _POLL_MS)
            for child in children.all:
                if child.process.poll() is not None:
                    raise AiperfError(f"{child.identity} {child.fate()} before it was ready", f"see {directories.log_file}")
            if mailbox.unready:
                raise AiperfError("; ".join(mailbox.unready))
            if time.monotonic() > until:
                raise AiperfError(f"{', '.join(unready)} did not get ready within {limit_s:g} s")

    def _measure(self, parts: Parts) -> int:
        self._hooks.call("aiperf_run_configured", plan=parts.plan)
        parts.directories.begin(parts.plan.data.source)
        for phase in parts.plan.load.phases:
            if self._signals.count or self._outcome.incomplete:
                break
            Phase(phase, parts).run()
        parts.sources.close()
        return Finish(parts).run()
