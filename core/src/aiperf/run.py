"""A plan from start to artifacts: the parent process of ``aiperf profile``."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import resource
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from time import monotonic_ns
from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn

import msgspec

from aiperf import configure, environment, logs
from aiperf.children import Child, Children
from aiperf.display import Display, display
from aiperf.earlier import Earlier
from aiperf.engine import control
from aiperf.engine.clock import NS_PER_S, read_clocks
from aiperf.errors import AiperfError, ConfigError
from aiperf.phases import target
from aiperf.plan import PhasePlan, Plan, Secrets
from aiperf.progress import Snapshot
from aiperf.rundir import RunClock, hold, save_run
from aiperf.selection import key_of
from aiperf.settings import Settings
from aiperf.telemetry.sources import Sources
from aiperf.ui import NoUi

if TYPE_CHECKING:
    from aiperf.readiness import Wait
    from aiperf.registry import Registry
    from aiperf.summary import Summary

log = logging.getLogger(__name__)

_LEAD_NS = 3_000_000
_POLL_MS = 100
_DISPLAY_S = 0.25
_CANCEL_DRAIN_NS = 5 * NS_PER_S
_ABORT_WAIT_S = 10.0
_RESTARTS = 3
_LEAST_FILES = 256
_FEWEST_TO_JUDGE = 10


class Interruption(Exception):  # noqa: N818  # the user's wish, not an error
    """Ctrl-C or SIGTERM before there was anything to drain."""


class Signals:
    """SIGINT and SIGTERM, counted; *code* is the exit code they ask for, 0 while there was none."""

    def __init__(self) -> None:
        self.count = 0
        self.code = 0
        self.impatient: Callable[[], None] | None = None

    @contextlib.contextmanager
    def caught(self) -> Iterator[Signals]:
        before = {number: signal.signal(number, self._note) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield self
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.count += 1
        self.code = self.code or (130 if number == signal.SIGINT else 143)
        if self.count == 1:
            print("\naiperf: stopping; results so far will be written. Press Ctrl-C again to drop them.", file=sys.stderr)


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
    if plan.ui is None:
        return Display(NoUi(), "")
    near = bool(registry.descriptor("uis", plan.ui.name).capabilities.get("in_process"))
    return display(plan.ui, plan.options.get(key_of(plan.ui)), in_process=near)


class Run:
    """One run.  Owns every process, directory and socket it makes."""

    def __init__(
        self,
        plan: Plan,
        secrets: Secrets,
        registry: Registry,
        settings: Settings,
        signals: Signals,
        shown: Display,
    ) -> None:
        self.plan, self.secrets, self.registry, self.settings = plan, secrets, registry, settings
        self.signals, self.display = signals, shown
        self.journal = Path(plan.journal)
        self.artifacts = Path(plan.artifacts)
        self.warnings: list[str] = []
        self.incomplete: str | None = None
        self.times: dict[str, int] = {"begun_ns": monotonic_ns()}
        self.board: control.Switchboard
        self.children: Children
        self._counters: dict[int, control.Counters] = {}
        self._live: dict[int, control.Live] = {}
        self._ended: set[int] = set()
        self._lost: set[int] = set()
        self._troubles: list[str] = []
        self._finished: dict[int, str | None] = {}
        self._restarts = self._replaced = 0
        self._begun: control.Begin | None = None  # for a worker in the place of one that dies in the phase
        self._began = False
        self._finishing = False
        self._summarize: control.Summarize | None = None
        self._again: set[int] = set()
        self._shown_s = self._logged_s = 0.0

    def execute(self) -> int:
        """Run, and return the exit code.  A run that doesn't come to its first phase leaves the directory as it was."""
        self._prepare_directories()
        try:
            return self._execute()
        finally:
            if not self._began:
                self.earlier.restore()

    def _execute(self) -> int:
        mono_ns, wall_ns = read_clocks()
        self.clock = RunClock(mono_ns, wall_ns)
        save_run(self.journal, self.plan, self.clock)
        with contextlib.closing(Builder(self.plan)) as builder, self._switchboard() as self.board:
            log_file = self.artifacts / "logs" / "aiperf.log"
            self.children = Children(self.plan, self.board.address, self.journal, log_file)
            self.sources = Sources(self.plan, log_file, self._warn)
            try:
                waiting = self._ask_readiness()  # while the data set is built
                self.plan = self._await_build(builder)
                save_run(self.journal, self.plan, self.clock)
                self._await_readiness(waiting)
                self._load()
                self._call("aiperf_run_configured", plan=self.plan)
                self.earlier.replace(None if self.plan.source is None else Path(self.plan.source))
                self._began = True
                for phase in self.plan.phases:
                    if self.signals.count or self.incomplete:
                        break
                    self._phase(phase)
                self.sources.close()
                return self._export(self._reduce())
            finally:
                self.display.close()
                self.sources.close()
                self.children.end(2.0)
                self._call("aiperf_teardown")

    # Before load

    def _prepare_directories(self) -> None:
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if hard < _LEAST_FILES:
            raise ConfigError(f"the limit of open files is {hard}; {_LEAST_FILES} are needed", "raise it: ulimit -n 4096")
        if soft < hard:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        try:
            self.earlier = Earlier(self.artifacts)
            try:
                self.journal.mkdir(parents=True)
            except OSError:
                if not self.journal.exists():  # else somebody was quicker, and it is theirs
                    self.earlier.restore()
                raise
            try:
                self._lock = hold(self.journal)
                logs.to_file(self.artifacts / "logs" / "aiperf.log")
            except (OSError, AiperfError):
                self.earlier.restore()
                raise
        except OSError as error:
            raise ConfigError(
                f"{self.artifacts} can't be written: {error.strerror or error}", "choose another directory with --artifact-dir"
            ) from error

    @contextlib.contextmanager
    def _switchboard(self) -> Iterator[control.Switchboard]:
        kernel = self.settings.kernel
        with contextlib.ExitStack() as stack:
            if kernel.zmq_host is not None:
                address = f"tcp://{kernel.zmq_host}:*"
                if not kernel.zmq_host.startswith("127.") and kernel.zmq_host not in ("localhost", "::1", "[::1]"):
                    log.warning(
                        "%s is not this machine's loopback: whoever reaches the port can steer the run, and read its API key",
                        kernel.zmq_host,
                    )
            else:
                parent = kernel.zmq_ipc_path
                if parent is not None:
                    parent.mkdir(parents=True, exist_ok=True)
                # Private to this user: whoever can write to the socket can steer the run.
                directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="aiperf-", dir=parent))
                address = f"ipc://{directory}/control"
            try:
                board = control.Switchboard(address)
            except OSError as error:
                raise ConfigError(
                    f"control messages can't use {address}: {error.strerror or error}", "check --zmq-host or --zmq-ipc-path"
                ) from error
            stack.callback(board.close)
            yield board

    def _await_build(self, builder: Builder) -> Plan:
        while not builder.poll():
            self._receive(_POLL_MS // 10)
            self._check_interrupted()
        self.times["built_ns"] = monotonic_ns()
        return builder.result()

    def _ask_readiness(self) -> Wait | None:
        kernel = self.settings.kernel
        if not kernel.ready_timeout_s:
            return None
        from aiperf.readiness import Wait

        return Wait(self.plan, self.secrets, kernel.ready_mode, kernel.ready_timeout_s, kernel.ready_interval_s)

    def _await_readiness(self, waiting: Wait | None) -> None:
        while waiting is not None and not waiting.over():
            self._receive(_POLL_MS)
            self._check_interrupted()
        if waiting is not None:
            waiting.settle()

    def _load(self) -> None:
        """Hand the plan to everybody and wait until they are ready."""
        for child in self.children.all:
            if child.up:
                self._send_plan(child)
        ready_s = environment.start_s()
        until = time.monotonic() + ready_s
        while not all(child.ready for child in self.children.all):
            self._receive(_POLL_MS)
            self._check_interrupted()
            for child in self.children.all:
                if child.process.poll() is not None:
                    raise AiperfError(
                        f"{child.identity} {child.fate()} before it was ready", f"see {self.artifacts / 'logs' / 'aiperf.log'}"
                    )
            if self._troubles:
                raise AiperfError("; ".join(self._troubles))
            if time.monotonic() > until:
                waiting = ", ".join(child.identity for child in self.children.all if not child.ready)
                raise AiperfError(f"{waiting} did not get ready within {ready_s:g} s")

    def _check_interrupted(self) -> None:
        if self.signals.count:
            raise Interruption

    # Phases

    def _phase(self, phase: PhasePlan) -> None:
        self._counters.clear()
        self._ended = set(self._lost)
        self._logged_s = time.monotonic()
        self.sources.begin(phase.index)
        start_ns = monotonic_ns() + _LEAD_NS
        self.times.setdefault("begin_ns", start_ns)
        self._begun = control.Begin(phase.index, start_ns, resumed=True)
        log.info("Phase %s (%s) started | %s", phase.name, phase.kind, target(phase))
        for child in self.children.workers:
            if child.index not in self._lost:
                self.board.send(child.identity, control.Begin(phase.index, start_ns))
        self._call("aiperf_phase_started", plan=self.plan, phase=phase)
        stopped = 0
        kill_at = 0.0
        while len(self._ended) < self.plan.workers:
            self._receive(_POLL_MS)
            self._watch(phase)
            self._check_failures(phase)
            self._show(phase, start_ns)
            if self.signals.count > stopped or (self.incomplete and not stopped):
                stopped = max(1, self.signals.count)
                drain = 0 if self.signals.count > 1 else self._drain(phase)
                self._stop(drain)
                kill_at = time.monotonic() + drain / NS_PER_S + environment.abort_wait_s()
            if kill_at and time.monotonic() > kill_at:
                self._give_up()
        self._begun = None
        self.sources.end(phase.index)
        self._check_failures(phase)
        counters = list(self._counters.values())
        log.info(
            "Phase %s (%s) complete | completed=%d, errors=%d | %.2f s elapsed",
            phase.name, phase.kind, sum(c.completed for c in counters), sum(c.errors for c in counters),
            (monotonic_ns() - start_ns) / NS_PER_S,
        )  # fmt: skip
        if phase.kind == "warmup" and counters and not any(c.completed for c in counters) and any(c.errors for c in counters):
            self._warn("every warmup request failed")
        self._call("aiperf_phase_ended", plan=self.plan, phase=phase)

    def _check_failures(self, phase: PhasePlan) -> None:
        """End a run of which too large a share fails: there is no more to learn from it."""
        most = self.plan.failed_threshold
        if most is None or phase.kind != "profiling" or self.incomplete:
            return
        failed = sum(c.errors for c in self._counters.values())
        finished = failed + sum(c.completed for c in self._counters.values())
        if finished >= max(_FEWEST_TO_JUDGE, phase.concurrency or 0) and failed > most * finished:
            flag = self.settings.flag("failed_threshold", "--failed-request-threshold")
            self.incomplete = f"{failed} of {finished} requests failed, a larger share than {flag} {most:g}"
            self._warn(self.incomplete)

    def _drain(self, phase: PhasePlan) -> int:
        grace = phase.grace_ns
        return _CANCEL_DRAIN_NS if grace is None else min(grace, _CANCEL_DRAIN_NS)

    def _stop(self, drain_ns: int) -> None:
        for child in self.children.workers:
            if child.index not in self._ended:
                self.board.send(child.identity, control.Stop(drain_ns))

    def _give_up(self) -> None:
        """Workers that don't even answer an abort."""
        for child in self.children.workers:
            if child.index not in self._ended:
                child.process.kill()

    def _watch(self, phase: PhasePlan) -> None:
        """Notice processes that died."""
        for child in list(self.children.workers):
            if child.index not in self._ended and child.process.poll() is not None:
                while self._receive(0):  # its last words may still be under way
                    pass
                if child.index not in self._ended:
                    self._replace(child, phase)
        self._watch_reducers()

    def _replace(self, child: Child, phase: PhasePlan) -> None:
        """Another worker in the place of one that died; after too many, or while the run ends, none.

        What it held of the limits goes back.  Its loss is named: it had sessions under way that nobody can take up.
        """
        self.children.shared.release(child.index, phase)
        died = f"worker {child.index} {child.fate()}; what it had in flight is counted as unfinished"
        if self._replaced >= _RESTARTS or self.signals.count or self.incomplete or not self.children.replaceable:
            self._lost.add(child.index)
            self._ended.add(child.index)
            self.incomplete = self.incomplete or died
            self._warn(died)
            return
        self._replaced += 1
        self._warn(f"{died}, and another one goes on where it stood")
        self.children.restart(child)

    def _watch_reducers(self) -> None:
        for child in list(self.children.reducers):
            if child.process.poll() is None or child.ended:
                continue
            if self._restarts >= _RESTARTS:
                raise AiperfError(
                    f"{child.identity} {child.fate()} again and again; nothing is lost",
                    f"make the report with: aiperf report {self.artifacts}",
                )
            self._restarts += 1
            log.warning("%s %s; another one goes on from what it had written", child.identity, child.fate())
            self.children.restart(child)

    # The control channel

    def _receive(self, wait_ms: int) -> bool:
        """Handle one message; False if none came."""
        news = self.board.receive(wait_ms)
        if news is None:
            return False
        identity, message = news
        match message:
            case control.Hello():
                child = self._child(message.role, message.index)
                child.up = True
                if "built_ns" in self.times:
                    self._send_plan(child)
            case control.Ready():
                if message.trouble is not None:
                    self._troubles.append(message.trouble)
                child = self._child(message.role, message.index)
                child.ready = True
                if message.role == "worker" and self._begun is not None:  # in the place of one that died
                    self.board.send(identity, self._begun)
                if message.role == "reducer" and (self._finishing or self._summarize is not None):
                    self.board.send(identity, control.Finish())
                    if self._summarize is not None:
                        self._again.add(message.index)
            case control.Counters():
                self._counters[message.index] = message
                for reducer in self.children.reducers:
                    if message.index % self.plan.reducers == reducer.index and reducer.ready:
                        self.board.send(reducer.identity, control.Advance(message.index, message.segment, message.offset))
            case control.PhaseEnded():
                self._ended.add(message.index)
                self.times["last_answer_ns"] = max(self.times.get("last_answer_ns", 0), message.last_answer_ns)
            case control.Trouble():
                self.incomplete = message.message
                self._warn(message.message)
            case control.Notice() if message.message not in self.warnings:
                self._warn(message.message)
            case control.Live():
                self._live[message.index] = message
            case control.Finished() if message.index in self._again and message.trouble is None:
                # It died while it made the summary, and has its folds again.
                self._again.discard(message.index)
                self.board.send(identity, self._summarize or control.Exit())
            case control.Finished():
                self._finished[message.index] = message.trouble
            case _:
                pass
        return True

    def _child(self, role: str, index: int) -> Child:
        return (self.children.workers if role == "worker" else self.children.reducers)[index]

    def _send_plan(self, child: Child) -> None:
        # Reducers send nothing, and need no header.
        secrets = self.secrets if child.role == "worker" else Secrets(options=self.secrets.options)
        self.board.send(child.identity, control.Load(str(self.journal), secrets))

    def _show(self, phase: PhasePlan, start_ns: int) -> None:
        now = time.monotonic()
        if now - self._shown_s < _DISPLAY_S:
            return
        self._shown_s = now
        snapshot = self._snapshot(phase, (monotonic_ns() - start_ns) / NS_PER_S)
        self._call("aiperf_snapshot", snapshot=snapshot)
        every_s = self.settings.kernel.stats_interval_s
        if not every_s and phase.kind == "warmup":
            every_s = environment.warmup_log_s()
        if every_s and now - self._logged_s >= every_s:
            self._logged_s = now
            log.info("%s", "  ".join(snapshot.lines()))
        self.display.show(snapshot)

    def _snapshot(self, phase: PhasePlan, elapsed_s: float) -> Snapshot:
        counters = [c for c in self._counters.values() if c.phase == phase.index]
        completed = sum(c.completed for c in counters)
        errors = sum(c.errors for c in counters)
        shares = []
        if phase.turns is not None:
            shares.append((completed + errors) / phase.turns)
        if phase.duration_ns is not None:
            shares.append(elapsed_s * NS_PER_S / phase.duration_ns)
        share = max(shares, default=None)
        eta = elapsed_s * (1 - share) / share if share and share < 1 else None
        done = sum(live.done for live in self._live.values())
        return Snapshot(
            phase.name, phase.kind, max(0.0, elapsed_s), sum(c.sent for c in counters), completed, errors,
            sum(c.in_flight for c in counters), (completed + errors) / elapsed_s if elapsed_s > 0 else 0.0, share, eta,
            _mean([(live.ttft_ms, live.done) for live in self._live.values()], done),
            _mean([(live.itl_ms, live.done) for live in self._live.values()], done),
        )  # fmt: skip

    # After load

    def _reduce(self) -> Summary:
        """Let workers go, let reducers finish, and have the summary made."""
        for child in self.children.workers:
            if child.index not in self._lost:
                self.board.send(child.identity, control.Exit())
        until = time.monotonic() + _ABORT_WAIT_S
        while any(child.process.poll() is None for child in self.children.workers) and time.monotonic() < until:
            self._receive(1)
        if self.signals.count > 1:
            self._leave_journal()
        cancelled = self.signals.count > 0
        if cancelled:
            self.incomplete = self.incomplete or "the run was cancelled before it was complete"
        self._finishing = True
        for child in self.children.reducers:
            if child.ready:
                self.board.send(child.identity, control.Finish())
        self._await_finished({child.index for child in self.children.reducers})
        self.times["reduced_ns"] = monotonic_ns()
        self._finishing = False
        self._finished.clear()
        self._summarize = control.Summarize(cancelled, self.incomplete, tuple(self.warnings))
        self.board.send("reducer-0", self._summarize)
        self._await_finished({0})
        from aiperf.summary import Summary

        summary = msgspec.msgpack.decode((self.journal / "summary.msgpack").read_bytes(), type=Summary)
        for child in self.children.reducers:
            child.ended = True
            self.board.send(child.identity, control.Exit())
        self.times["summarized_ns"] = monotonic_ns()
        return summary

    def _await_finished(self, wanted: set[int]) -> None:
        while not wanted <= set(self._finished):
            self._receive(_POLL_MS // 4)
            self._watch_reducers()
            if self.signals.count > 1:
                self._leave_journal()
        troubles = [trouble for trouble in self._finished.values() if trouble is not None]
        if troubles:
            raise AiperfError(*troubles[0].split("\n"), f"the journal is kept; try again with: aiperf report {self.artifacts}")

    def _leave_journal(self) -> NoReturn:
        print(f"aiperf: dropped; make the report from the journal with: aiperf report {self.artifacts}", file=sys.stderr)
        raise Interruption

    def _export(self, summary: Summary) -> int:
        from aiperf import artifacts

        self.display.close()
        self._call("aiperf_summary_made", summary=summary)
        target = artifacts.target_for(self.plan, self.clock)
        written, failures = artifacts.export(summary, self.plan, self.journal, target)
        failures += summary.extra.get("failures", [])
        for found in self._call("aiperf_export", summary=summary, target=target):
            written += found or []
        artifacts.print_footer(written, self.artifacts / "logs" / "aiperf.log")
        artifacts.mark_ready(target, written, cancelled=summary.cancelled, partial=bool(failures))
        self.times["exported_ns"] = monotonic_ns()
        (self.journal / "run-times.json").write_text(json.dumps(self.times, indent=2) + "\n")
        self._call("aiperf_run_ended", summary=summary)
        if self.signals.code:
            return self.signals.code
        if summary.incomplete_reason is not None:
            print(f"aiperf: results are partial: {summary.incomplete_reason}", file=sys.stderr)
        if summary.valid == 0:
            print("aiperf: no request succeeded; the errors are counted above", file=sys.stderr)
        return 1 if failures or self._lost or self._replaced or self.incomplete or summary.valid == 0 else 0

    # Odds

    def _warn(self, sentence: str) -> None:
        log.warning("%s", sentence)
        self.warnings.append(sentence)

    def _call(self, hook: str, **arguments: Any) -> list[Any]:
        """Call a hook; a plugin that raises is isolated and reported."""
        if not self.plan.hooks:
            return []
        results = []
        for found in getattr(self.registry.hooks().hook, hook).get_hookimpls():
            try:
                results.append(found.function(**{name: arguments[name] for name in found.argnames}))
            except Exception as error:  # noqa: BLE001  # strangers' code
                self._warn(f"hook plugin {found.plugin_name}: {hook} failed: {type(error).__name__}: {error}")
        return results


class Builder:
    """Builds the data set in a forked child: the tokenizer and numpy never burden this process.

    Where there is no fork it happens here.
    """

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._pid = 0
        self._data = b""
        self._pipe = -1
        if not hasattr(os, "fork"):
            return
        read, write = os.pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        self._pid = os.fork()
        if self._pid == 0:
            os.close(read)
            self._work(write)
        os.close(write)
        os.set_blocking(read, False)
        self._pipe = read

    def _work(self, write: int) -> NoReturn:
        """The child.  Leaves without unwinding: the stack belongs to the parent."""
        code = 0
        try:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            outcome = _built(self._plan)
            with os.fdopen(write, "wb") as pipe:
                pipe.write(msgspec.json.encode(outcome))
        except BaseException:  # noqa: BLE001
            import traceback

            traceback.print_exc()
            code = 1
        finally:
            sys.stderr.flush()
            os._exit(code)

    def poll(self) -> bool:
        """Whether the outcome is there."""
        if self._pid == 0:
            return True
        while True:
            try:
                piece = os.read(self._pipe, 65536)
            except BlockingIOError:
                return False
            if not piece:
                os.waitpid(self._pid, 0)
                self._pid = -1
                os.close(self._pipe)
                self._pid = 0
                return True
            self._data += piece

    def result(self) -> Plan:
        """The plan, filled in.  Raises what the child raised."""
        outcome: dict[str, Any] = msgspec.json.decode(self._data) if self._pipe >= 0 and self._data else {}
        if self._pipe < 0:
            outcome = msgspec.json.decode(msgspec.json.encode(_built(self._plan)))
        if "plan" in outcome:
            return msgspec.convert(outcome["plan"], Plan)
        if "lines" in outcome:
            error = AiperfError(outcome["lines"][0], *(line.strip() for line in outcome["lines"][1:]))
            error.exit_code = outcome["code"]
            raise error
        raise AiperfError("the data set could not be built: its process ended without a word")

    def close(self) -> None:
        """End the child, where it is still at work."""
        if self._pid > 0:
            os.kill(self._pid, signal.SIGKILL)
            os.waitpid(self._pid, 0)
            self._pid = 0


def _built(plan: Plan) -> dict[str, Any]:
    from aiperf.build import build

    try:
        return {"plan": msgspec.to_builtins(build(plan))}
    except AiperfError as error:
        return {"lines": error.lines(), "code": error.exit_code}


def _mean(pairs: list[tuple[float | None, int]], total: int) -> float | None:
    known = [(value, weight) for value, weight in pairs if value is not None and weight]
    weight = sum(count for _, count in known)
    return sum(value * count for value, count in known) / weight if weight and total else None


__all__ = ["Run", "profile"]
