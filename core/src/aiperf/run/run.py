"""A plan from start to artifacts: the parent process of ``aiperf profile``."""

from __future__ import annotations

import contextlib
import io
import json
import logging
import sys
import time
from collections.abc import Callable, Collection
from time import monotonic_ns
from typing import TYPE_CHECKING

import msgspec

from aiperf import environment, logs
from aiperf.errors import AiperfError
from aiperf.planning import configure
from aiperf.planning.phases import target
from aiperf.planning.problems import Settings
from aiperf.processes import control
from aiperf.registry.hooks import Hooks
from aiperf.run.children import Child, Children, Mailbox, no_messages
from aiperf.run.display import Display, display
from aiperf.run.start import Builder, Directories, Interruption, Outcome, Signals, raise_open_files_limit, switchboard
from aiperf.run.steps import Far, step, unknown, watched
from aiperf.rundir.journal import RunClock, RunEnd, numbered, save_run
from aiperf.rundir.store import made
from aiperf.sdk.fetch import Servers
from aiperf.sdk.model import names
from aiperf.sdk.plan import PhasePlan, Plan, Secrets
from aiperf.sdk.ui import NoUi, Snapshot
from aiperf.telemetry.process import BEGIN, END, Sources
from aiperf.worker.clock import NS_PER_S, read_clocks

if TYPE_CHECKING:
    from aiperf.registry.registry import Registry
    from aiperf.sdk.summary import Summary

log = logging.getLogger(__name__)

_BUILD_POLL_MS = 10
_POLL_MS = 100
_REDUCE_POLL_MS = 25
_EXIT_WAIT_S = 10.0
_END_S = 2.0
_LEAD_NS = 3_000_000
"""From the message that begins a phase to its start: every worker has it by then."""
_SHOW_S = 0.25
_CANCEL_DRAIN_NS = 5 * NS_PER_S
"""Longest time for requests in flight to finish after a signal."""
_UNREACHABLE_S = 10.0
"""A run ends when it never reached the server for so long."""
_FEWEST_TO_JUDGE = 10
"""The share of failed requests is judged from so many on."""


def profile(settings: Settings, registry: Registry) -> int:
    """Run what the settings ask for; returns the exit code.

    Raises:
        AiperfError: The run can't be started; nothing was sent.
    """
    with Signals().caught() as signals:
        try:
            return execute(settings, registry, signals, console=True)[1]
        except Interruption:
            return signals.code


def execute(settings: Settings, registry: Registry, signals: Signals, *, console: bool) -> tuple[Summary, int]:
    """Run what the settings ask for; the summary and the exit code.  *console*: log, remarks and results are printed.

    Raises:
        AiperfError: The run can't be started; nothing was sent.
        Interruption: A signal before the load, or a second one after it.
    """
    if console:
        logs.to_console(settings.log_level)
    environment.check()
    plan, secrets = configure.plan(settings, registry)
    display = _display(plan, registry)
    if console:
        logs.to_console(settings.log_level, display.log)
    try:
        return _execute(plan, secrets, settings, Outcome(signals, console=console), display, registry.hooks())
    finally:
        display.close()


def _display(plan: Plan, registry: Registry) -> Display:
    ref = plan.plugins.ui
    if ref is None:
        return Display(NoUi(), "")
    in_process = bool(registry.descriptor("uis", ref.name).capabilities.get("in_process"))
    return display(ref, plan.plugins.options.get(ref.key), in_process=in_process)


def _execute(
    plan: Plan, secrets: Secrets, settings: Settings, outcome: Outcome, display: Display, hooks: Hooks
) -> tuple[Summary, int]:
    """Run the plan.  A run that ends before its first phase leaves the directory as it was."""
    hooks.report = outcome.warn
    raise_open_files_limit(plan)
    directories = Directories(plan.output)
    with directories.restored_unless_begun():
        clock = RunClock(*read_clocks())
        save_run(directories.journal, plan, clock)
        with (
            contextlib.closing(Builder(plan)) as builder,  # forks: before any thread
            switchboard(settings.kernel.zmq_host, settings.kernel.zmq_ipc_path) as board,
            contextlib.closing(Run(plan, secrets, clock, settings, outcome, display, hooks, directories, board)) as run,
        ):
            return run.execute(builder)


class Run:
    """One run: what happens in which order.  Owns the processes.  *plan*: the built one, once the data set is there."""

    def __init__(
        self, plan: Plan, secrets: Secrets, clock: RunClock, settings: Settings, outcome: Outcome, display: Display,
        hooks: Hooks, directories: Directories, board: control.Switchboard,
    ) -> None:  # fmt: skip
        self.plan, self.secrets, self.clock, self.settings = plan, secrets, clock, settings
        self.outcome, self.display, self.hooks, self.directories = outcome, display, hooks, directories
        self.children = Children(plan, board.address, directories.journal, directories.log_file)
        self.sources = Sources(plan, directories.log_file, outcome.warn, secrets.headers)
        self.mailbox = Mailbox(board, self.children, outcome, directories.artifacts)
        self.servers = Servers(plan.target, secrets.headers, self._pause)

    def execute(self, builder: Builder) -> tuple[Summary, int]:
        """From the build of the data set to the summary and the exit code.

        Raises:
            AiperfError: The run can't begin, or a reducer failed; then the journal is kept.
            Interruption: A signal before the load, or a second one after it.
        """
        self.builder, self.plan = builder, self._prepare(builder)
        save_run(self.directories.journal, self.plan, self.clock)
        self._load()
        self.hooks.call("aiperf_run_configured", plan=self.plan, servers=self.servers)
        self.directories.begin(self.plan.data.source)
        for phase in self.plan.load.phases:
            if self.outcome.signals.count or self.outcome.incomplete:
                break
            Phase(phase, self).run()
        self.sources.close()
        self._end_workers()
        builder.stop()
        self._reduce()
        summary = self._summarize()
        # Exporters and hooks print as they like; a calling program's standard output is its own.
        with contextlib.nullcontext() if self.outcome.console else contextlib.redirect_stdout(io.StringIO()):
            return summary, self._export(summary)

    def close(self) -> None:
        """End every process."""
        self.display.close()
        self.sources.close()
        self.children.end(_END_S)
        self.hooks.call("aiperf_teardown")

    def _prepare(self, builder: Builder) -> Plan:
        """The built plan, once the servers are ready."""
        kernel, waiting = self.settings.kernel, None
        with contextlib.ExitStack() as stack:
            if kernel.ready_timeout_s:
                from aiperf.run.readiness import Wait

                waiting = Wait(self.plan, self.secrets, kernel.ready_mode, kernel.ready_timeout_s, kernel.ready_interval_s)
                stack.enter_context(contextlib.closing(waiting))
            with step(self.display, "Making the data set", self._entries) as tell:
                while not builder.poll():
                    self._receive(_BUILD_POLL_MS)
                    tell()
            self.outcome.stamp("built_ns")
            plan = builder.result()
            if waiting is not None:
                with step(self.display, f"Waiting for {names(waiting.shown)}", waiting.far, logged=True) as tell:
                    while not waiting.over():
                        self._receive(_POLL_MS)
                        tell()
                waiting.settle()
        return plan

    def _entries(self) -> Far:
        return made(self.directories.journal), self.plan.data.entries or None, "entries"

    def _reduced(self) -> Far:
        sent = sum(self.children.shared.requests().values()) if self.children.replaceable else None
        return sum(live.done for live in self.mailbox.live.values()), sent, "requests"

    def _pause(self, seconds: float) -> bool:
        """Wait, and go on hearing of the children; False where the run is to end."""
        until_s = time.monotonic() + seconds
        while not self.outcome.signals.count and (left_s := until_s - time.monotonic()) > 0:
            self.mailbox.receive(min(_POLL_MS, max(1, round(left_s * 1000))))
        return not self.outcome.signals.count

    def _receive(self, wait_ms: int) -> None:
        self.mailbox.receive(wait_ms)
        self.outcome.signals.check()

    def _load(self) -> None:
        """Hand the plan to every worker and reducer, and wait until all are ready.

        Raises:
            AiperfError: One of them died, can't run the plan, or takes too long.
        """
        journal, mailbox = str(self.directories.journal), self.mailbox
        reducer_secrets = Secrets(options=self.secrets.options)  # it sends nothing, and needs no header
        loads = {"worker": control.Load(journal, self.secrets), "reducer": control.Load(journal, reducer_secrets)}
        mailbox.send_plan(loads)
        limit_s = environment.start_s()
        until = time.monotonic() + limit_s
        with step(self.display, "Starting the processes of the run") as tell:
            self._wait_until_ready(until, limit_s, tell)

    def _wait_until_ready(self, until: float, limit_s: float, tell: Callable[[], None]) -> None:
        while unready := [child.identity for child in self.children.all if not child.ready]:
            self._receive(_POLL_MS)
            tell()
            for child in self.children.all:
                if child.process.poll() is not None:
                    hint = f"see {self.directories.log_file}"
                    raise AiperfError(f"{child.identity} {child.fate()} before it was ready", hint)
            if self.mailbox.unready:
                raise AiperfError("; ".join(self.mailbox.unready))
            if time.monotonic() > until:
                raise AiperfError(f"{', '.join(unready)} did not get ready within {limit_s:g} s")

    def _end_workers(self) -> None:
        for child in self.children.workers:
            if child.index not in self.outcome.lost:
                self.mailbox.send(child, control.Exit())
        until = time.monotonic() + _EXIT_WAIT_S
        while any(child.process.poll() is None for child in self.children.workers) and time.monotonic() < until:
            self.mailbox.receive(1)

    def _record_end(self) -> None:
        """Note in ``run.json``, without which there is no report, how the run ended and what its files must hold."""
        outcome, children, directory = self.outcome, self.children, self.directories.journal
        if outcome.signals.count:
            outcome.incomplete = outcome.incomplete or "the run was cancelled before it was complete"
        requests = children.shared.requests() if children.replaceable else {}
        columns = {path.name: path.stat().st_size for path in numbered(directory, "columns-*.*")}
        warnings, died = tuple(outcome.warnings), tuple(sorted(outcome.died))
        end = RunEnd(outcome.signals.count > 0, outcome.incomplete, warnings, requests, died, columns)
        with contextlib.suppress(OSError):  # a full disk: the run counts as interrupted
            save_run(directory, self.plan, self.clock, end)

    def _reduce(self) -> None:
        self._record_end()
        self._check_dropped()
        self.mailbox.catch_up = lambda child: [control.Finish()]
        for child in self.children.reducers:
            if child.ready:
                self.mailbox.send(child, control.Finish())
        self._wait(lambda: len(self.mailbox.reduced) == len(self.children.reducers), "Reducing the rest", self._reduced)
        self.outcome.stamp("reduced_ns")

    def _summarize(self) -> Summary:
        from aiperf.sdk.summary import Summary

        outcome, mailbox = self.outcome, self.mailbox
        summarize = control.Summarize()
        self._record_end()  # now with the columns
        mailbox.catch_up = lambda child: [control.Finish(), *([summarize] if child.index == 0 else [])]
        mailbox.send(self.children.reducers[0], summarize)
        self._wait(lambda: mailbox.summarized, "Making the summary")
        summary = msgspec.msgpack.decode((self.directories.journal / "summary.msgpack").read_bytes(), type=Summary)
        for child in self.children.reducers:
            child.ended = True
            mailbox.send(child, control.Exit())
        outcome.stamp("summarized_ns")
        return summary

    def _wait(self, over: Callable[[], bool], what: str, far: Callable[[], Far] = unknown) -> None:
        with step(self.display, what, far) as tell:
            while not over():
                self.mailbox.receive(_REDUCE_POLL_MS)
                self.directories.check()
                self.mailbox.watch_reducers()
                self._check_dropped()
                tell()
        if self.mailbox.failures:
            message, *hints = self.mailbox.failures[0].split("\n")
            again = f"the journal is kept; try again with: aiperf report {self.directories.artifacts}"
            raise AiperfError(message, *hints, again)

    def _check_dropped(self) -> None:
        if self.outcome.signals.count > 1:
            again = f"make the report from the journal with: aiperf report {self.directories.artifacts}"
            print(f"aiperf: dropped; {again}", file=sys.stderr)
            raise Interruption

    def _export(self, summary: Summary) -> int:
        from aiperf.rundir import artifacts

        for phase in summary.phases:
            log.info("Phase %s (%s) | %s succeeded, %s failed", phase.name, phase.kind, phase.valid, phase.failed)
        journal = self.directories.journal
        if not self.display.draws:
            self.display.close()
        self.hooks.call("aiperf_summary_made", summary=summary)
        to = artifacts.target_for(self.plan, self.clock)
        with watched(self.display, "Writing the files"):
            written, failures = artifacts.export(summary, self.plan, journal, to)
        self.display.close()
        failures += summary.extra.get("failures", [])
        for files in self.hooks.call("aiperf_export", summary=summary, target=to) or ():
            written += files or []
        artifacts.print_footer(written, self.directories.log_file)
        artifacts.mark_ready(to, written, cancelled=summary.cancelled, partial=bool(failures))
        self.outcome.stamp("exported_ns")
        (journal / "run-times.json").write_text(json.dumps(self.outcome.times, indent=2) + "\n")
        self.hooks.call("aiperf_run_ended", summary=summary)
        return self._exit_code(summary, failed=bool(failures))

    def _exit_code(self, summary: Summary, *, failed: bool) -> int:
        outcome = self.outcome
        if outcome.signals.code:
            return outcome.signals.code
        if outcome.console and summary.incomplete_reason is not None:
            print(f"aiperf: results are partial: {summary.incomplete_reason}", file=sys.stderr)
        if outcome.console and summary.valid == 0:
            print(f"aiperf: no request succeeded; {_why(summary)}", file=sys.stderr)
        partial = outcome.lost or outcome.replaced or outcome.incomplete or summary.extra.get("lost")
        return 1 if failed or partial or summary.valid == 0 else 0


def _why(summary: Summary) -> str:
    """The finding that explains every failure, where there is one."""
    for finding in summary.measurement.findings:
        if (count := finding.numbers.get("requests")) and count == finding.numbers.get("failed"):
            return finding.sentence
    return "the errors are counted above"


class Phase:
    """Drives the workers through *phase*, shows it four times a second, and ends it early at a signal or after failures."""

    def __init__(self, phase: PhasePlan, run: Run) -> None:
        self._phase, self._run, self._outcome, self._mailbox = phase, run, run.outcome, run.mailbox
        self._start_ns = self._stops = 0
        self._kill_at_s: float | None = None
        # Without an interval the log shows a warmup every 30 s, and other phases not at all.
        warmup_s = environment.warmup_log_s() if phase.kind == "warmup" else 0.0
        self._log_every_s = run.settings.kernel.stats_interval_s or warmup_s
        self._shown_s, self._logged_s = 0.0, time.monotonic()
        self._refused_since_s: float | None = None

    def run(self) -> None:
        """Return when every worker has ended the phase."""
        self._begin()
        while len(self._mailbox.ended) < self._run.plan.run.workers:
            self._mailbox.receive(_POLL_MS)
            self._run.directories.check()
            self._mailbox.watch_workers(self._phase)
            self._mailbox.watch_reducers()
            self._judge_failures()
            self._judge_refusals()
            self._judge_data()
            self._show()
            self._stop_where_asked()
        self._end()

    def _begin(self) -> None:
        phase, mailbox = self._phase, self._mailbox
        mailbox.begin_phase(self._outcome.lost)
        self._run.sources.sample(phase.index, BEGIN)
        self._start_ns = monotonic_ns() + _LEAD_NS
        self._outcome.times.setdefault("begin_ns", self._start_ns)
        resume = control.Begin(phase.index, self._start_ns, resumed=True)
        mailbox.catch_up = lambda child: [resume] if child.role == "worker" else []
        log.info("Phase %s (%s) started | %s", phase.name, phase.kind, target(phase))
        for child in self._running():
            mailbox.send(child, control.Begin(phase.index, self._start_ns))
        self._run.hooks.call("aiperf_phase_started", plan=self._run.plan, phase=phase, servers=self._run.servers)

    def _judge_failures(self) -> None:
        """End the run once too large a share of the requests has failed."""
        phase, most = self._phase, self._run.plan.load.failed_threshold
        if most is None or phase.kind != "profiling" or self._outcome.incomplete:
            return
        completed, failed = self._mailbox.totals()
        finished = completed + failed
        if finished >= max(_FEWEST_TO_JUDGE, phase.concurrency or 0) and failed > most * finished:
            flag = self._run.settings.flag("failed_threshold", "--failed-request-threshold")
            self._outcome.incomplete = f"{failed} of {finished} requests failed, a larger share than {flag} {most:g}"
            self._outcome.warn(self._outcome.incomplete)

    def _judge_refusals(self) -> None:
        """End the run once no worker could open a connection for too long."""
        counters = [counter for counter in self._mailbox.counters.values() if counter.sent]
        if not counters or any(counter.refused is None for counter in counters):
            self._refused_since_s = None
            return
        now_s, limit_s = time.monotonic(), self._run.settings.kernel.unreachable_timeout_s
        self._refused_since_s = self._refused_since_s or now_s
        if limit_s is None:
            limit_s = 0.0 if any(counter.connected for counter in counters) else _UNREACHABLE_S
        if limit_s and now_s - self._refused_since_s >= limit_s and not self._outcome.incomplete:
            flag = self._run.settings.flag("unreachable_timeout_s", "--unreachable-timeout")
            why = f"no connection could be opened for {limit_s:g} s ({counters[0].refused}); {flag} 0 goes on trying"
            self._outcome.incomplete = why
            self._outcome.warn(why)

    def _judge_data(self) -> None:
        """End the run where the rest of a data set that it sends already can't be made."""
        if failure := self._run.builder.failure():
            self._outcome.incomplete = self._outcome.incomplete or failure
            self._outcome.warn(failure)

    def _show(self) -> None:
        """Show the phase on the display, to hooks and in the log, if the last time is long enough ago."""
        now_s = time.monotonic()
        if now_s - self._shown_s < _SHOW_S:
            return
        self._shown_s = now_s
        elapsed_s = (monotonic_ns() - self._start_ns) / NS_PER_S
        snapshot = snapshot_of(self._phase, elapsed_s, self._mailbox.counters.values(), self._mailbox.live.values())
        self._run.hooks.call("aiperf_snapshot", snapshot=snapshot)
        if self._log_every_s and now_s - self._logged_s >= self._log_every_s:
            self._logged_s = now_s
            log.info("%s", "  ".join(snapshot.lines()))
        self._run.display.show(snapshot)

    def _stop_where_asked(self) -> None:
        """Stop the workers at a signal, or once the run is incomplete; kill those that don't obey."""
        if self._outcome.signals.count > self._stops or (self._outcome.incomplete and not self._stops):
            self._stops = max(1, self._outcome.signals.count)
            grace_ns = _CANCEL_DRAIN_NS if self._phase.grace_ns is None else self._phase.grace_ns
            drain_ns = 0 if self._outcome.signals.count > 1 else min(grace_ns, _CANCEL_DRAIN_NS)
            for child in self._running():
                self._mailbox.send(child, control.Stop(drain_ns))
            self._kill_at_s = time.monotonic() + drain_ns / NS_PER_S + environment.abort_wait_s()
        if self._kill_at_s is not None and time.monotonic() > self._kill_at_s:
            for child in self._running():
                child.process.kill()

    def _running(self) -> list[Child]:
        return [child for child in self._mailbox.children.workers if child.index not in self._mailbox.ended]

    def _end(self) -> None:
        phase = self._phase
        self._mailbox.catch_up = no_messages
        self._run.sources.sample(phase.index, END)
        self._judge_failures()
        completed, errors = self._mailbox.totals()
        elapsed_s = (monotonic_ns() - self._start_ns) / NS_PER_S
        ended = completed + errors  # which of them succeeded is known when their answers are read
        log.info("Phase %s (%s) complete | %s requests ended | %.2f s elapsed", phase.name, phase.kind, ended, elapsed_s)
        if phase.kind == "warmup" and errors and not completed:
            self._outcome.warn("every warmup request failed")
        self._run.hooks.call("aiperf_phase_ended", plan=self._run.plan, phase=phase, servers=self._run.servers)


def snapshot_of(
    phase: PhasePlan, elapsed_s: float, counters: Collection[control.Counters], live: Collection[control.Live]
) -> Snapshot:
    """The sums of workers and reducers.  Share and time left are unknown in a phase without a size or duration."""
    counters = [counter for counter in counters if counter.phase == phase.index]
    completed = sum(counter.completed for counter in counters)
    errors = sum(counter.errors for counter in counters)
    done = completed + errors
    shares = [] if phase.turns is None else [done / phase.turns]
    if phase.duration_ns is not None:
        shares.append(elapsed_s * NS_PER_S / phase.duration_ns)
    share = max(shares, default=None)
    return Snapshot(
        phase.name, phase.kind, max(0.0, elapsed_s), sum(counter.sent for counter in counters), completed, errors,
        in_flight=sum(counter.in_flight for counter in counters),
        rate=done / elapsed_s if elapsed_s > 0 else 0.0,
        share=share,
        eta_s=elapsed_s * (1 - share) / share if share and share < 1 else None,
        ttft_ms=_mean([(reducer.ttft_ms, reducer.done) for reducer in live]),
        itl_ms=_mean([(reducer.itl_ms, reducer.done) for reducer in live]),
    )  # fmt: skip


def _mean(values: list[tuple[float | None, int]]) -> float | None:
    """The mean of weighted values; None where none is known."""
    known = [(value, weight) for value, weight in values if value is not None and weight]
    total = sum(weight for _, weight in known)
    return sum(value * weight for value, weight in known) / total if total else None
