"""A worker process: one loop, one core, one share of the plan.

    python -m aiperf.engine.worker ADDRESS INDEX WORKERS FDS

It imports neither typer, pydantic, numpy nor a tokenizer.  Standard input is a pipe that the parent holds open: when it ends
the parent is gone, and the worker stops, drains briefly and leaves a whole journal behind.
"""

from __future__ import annotations

import asyncio
import gc
import mmap
import os
import resource
import signal
import sys
from collections.abc import Callable, MutableSequence
from functools import partial
from pathlib import Path
from time import monotonic_ns, process_time_ns
from typing import Any

from aiperf import environment, journal
from aiperf.engine import control
from aiperf.engine.clock import NS_PER_S
from aiperf.engine.contract import Transport, TransportSettings
from aiperf.engine.drivers import BurstDriver, Driver, PacedDriver, SessionsDriver
from aiperf.engine.engine import Engine, Prepare
from aiperf.engine.gate import Gate, Rise
from aiperf.engine.logbook import Logbook
from aiperf.engine.slots import Counter, LocalCounter, LocalSlots, SharedCounter, SharedSlots
from aiperf.engine.standing import ARRIVALS, PREFILLS, SESSIONS, SLOTS, Standing, make_standing_fd
from aiperf.errors import AiperfError
from aiperf.model import HttpRequest, Turn
from aiperf.plan import PhasePlan, Plan, Secrets
from aiperf.rundir import load_run
from aiperf.store import Store
from aiperf.strangers import blamed, load, made, why

_TICK_S = 0.05
_SWEEP_TICKS = 5
_LOOP_TICKS = 20
_ORPHAN_DRAIN_NS = 5 * NS_PER_S
_STUMBLED = 70
"""Exit code of a worker that ends itself because of an error nobody expected: EX_SOFTWARE of sysexits.h."""


class Worker:
    """The process around the engine: control channel, phases, ticks."""

    def __init__(self, line: control.Line, index: int, workers: int, fds: list[int]) -> None:
        self.line, self.index, self.workers = line, index, workers
        self.loop = asyncio.get_running_loop()
        self.ended: asyncio.Future[None] = self.loop.create_future()
        self.engine: Engine | None = None
        self.plan: Plan | None = None
        self.logbook: Logbook | None = None
        # Of the latter four a phase: both ceilings, arrivals, sessions.  An engine that shares no memory gives none of them.
        self._standing_fd, *self._fds = fds or [-1]
        self._standing: Standing
        self._rises: list[Rise] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._handles: list[asyncio.TimerHandle] = []
        self._lags: list[int] = []
        self._ticks = 0
        self._tick_due_ns = 0
        self._born_ns = monotonic_ns()
        self._reported: tuple[int, ...] = ()
        self._troubled = False
        self._orphan = False
        self._phase_open = False

    def start(self) -> None:
        self.loop.set_exception_handler(self._stumbled)
        self.loop.add_reader(self.line.fd, self._news)
        self.loop.add_reader(0, self._parent_gone)
        self.line.send(control.Hello("worker", self.index, os.getpid()))
        self._tick_due_ns = monotonic_ns() + int(_TICK_S * NS_PER_S)
        self.loop.call_later(_TICK_S, self._tick)
        self._news()

    # The control channel

    def _news(self) -> None:
        while (message := self.line.receive()) is not None:
            match message:
                case control.Load():
                    task = self.loop.create_task(self._load(message))
                    self._tasks.add(task)
                    task.add_done_callback(self._tasks.discard)
                case control.Begin():
                    self._begin(message)
                case control.Stop():
                    self._stop(message.drain_ns)
                case control.Exit():
                    self._exit()
                case _:
                    continue

    def _tell(self, message: control.Message) -> None:
        self.line.send(message)
        self.loop.call_soon(self._news)  # the channel's descriptor is edge-triggered: a send may swallow an edge

    def _warn(self, sentence: str) -> None:
        self._tell(control.Notice("worker", self.index, sentence))

    def _parent_gone(self) -> None:
        if os.read(0, 4096):
            return
        self.loop.remove_reader(0)
        self._orphan = True
        if self._phase_open:
            self._stop(_ORPHAN_DRAIN_NS)
        else:
            self._exit()

    async def _load(self, message: control.Load) -> None:
        directory = Path(message.journal)
        try:
            secrets = message.secrets or Secrets()
            plan = secrets.restored(load_run(directory)[0])
            store = Store(directory)
            about = {"run_id": plan.run_id, "shard": self.index, "shards": self.workers, "pid": os.getpid()}
            logbook = Logbook(directory, self.index, {**about, "started_mono_ns": monotonic_ns()})
            prepare, make_transport = _hooked(plan, self._warn)
            standing_fd = self._standing_fd if self._standing_fd >= 0 else make_standing_fd(len(plan.phases), self.workers)
            self._standing = Standing(standing_fd, len(plan.phases), self.workers)
            engine = Engine(
                plan, secrets, store, logbook, self.index, prepare,
                loop=self.loop, numbered=self._standing.requests(self.index), warn=self._warn,
            )  # fmt: skip
            settings = TransportSettings(
                urls=plan.urls,
                tls=plan.tls,
                reuse=plan.reuse,
                sticky=plan.sticky,
                keep_heads=plan.keeps_requests,
                family=environment.ip_version(),
                trust_env=environment.trust_env(),
            )
            engine.transport = make_transport(settings, engine, self.loop)
            await engine.transport.open()
            await engine.transport.warm(self._connections(plan))
        except AiperfError as error:
            self._tell(control.Ready("worker", self.index, error.message))
            return
        except Exception as error:  # noqa: BLE001  # a stranger's transport may have opened connections
            self._tell(control.Ready("worker", self.index, why(error)))
            return
        self.plan, self.engine, self.logbook = plan, engine, logbook
        gc.collect()
        gc.freeze()
        gc.disable()
        self._tell(control.Ready("worker", self.index))

    def _connections(self, plan: Plan) -> int:
        """Connections to open ahead: as many as this worker will use at once, so that the first wave is not measured while
        it connects."""
        counts = []
        for phase in plan.phases:
            most = [limit for limit in (phase.request_count, phase.session_count) if limit is not None]
            counts.append(min([phase.concurrency or 0, *most]))
        return -(-max(counts) // (self.workers * len(plan.urls)))

    # Phases

    def _begin(self, message: control.Begin) -> None:
        engine, plan, logbook = self.engine, self.plan, self.logbook
        if engine is None or plan is None or logbook is None or self._orphan:
            return
        phase = plan.phases[message.phase]
        engine.phase = phase
        engine.sent = engine.completed = engine.errors = 0
        engine.driver = self._driver(engine, phase)
        engine.driver.on_complete = self._sending_complete
        engine.on_idle = partial(self._phase_ended, phase.index)
        self._phase_open = True
        logbook.frame(journal.PHASE, {"phase": phase.index, "event": "begin", "at_ns": message.start_ns})
        if phase.duration_ns is not None:
            self._at(message.start_ns + phase.duration_ns, engine.driver.stop)
            if phase.grace_ns is not None:
                self._at(message.start_ns + phase.duration_ns + phase.grace_ns, self._abort)
        for rise in self._rises:
            rise.begin(message.start_ns, skip=message.resumed and bool(self._fds))
        engine.driver.begin(message.start_ns)

    def _driver(self, engine: Engine, phase: PhasePlan) -> Driver:
        """What sends the phase's share, behind the phase's limits."""
        standing = self._standing.of(self.index, phase.index)
        sessions_fd, prefill_fd, *counters = self._fds[4 * phase.index : 4 * phase.index + 4] or (-1, -1)
        sessions = self._slots(sessions_fd, phase.concurrency, phase.limits_file, standing, SLOTS)
        limited = phase.prefill_concurrency is not None
        prefill = self._slots(prefill_fd, phase.prefill_concurrency, phase.prefill_limits_file, standing, PREFILLS)
        gate = Gate(sessions, prefill if limited else None)

        def counter(cell: int) -> Counter:
            return SharedCounter(counters[cell]) if counters else LocalCounter(standing, cell)

        if phase.due_file is None:
            numbers = counter(SESSIONS) if engine.store.max_turns > 1 else None
            share = None if phase.concurrency is None else -(-phase.concurrency // self.workers)
            return BurstDriver(engine, phase, gate, self.loop, claims=counter(ARRIVALS), sessions=numbers, share=share)
        due, own = _mapped(phase.due_file), {"shard": self.index, "of": self.workers}
        if phase.sessions_file is None:
            return PacedDriver(engine, phase, gate, self.loop, due=due, standing=standing, **own)
        rows = _mapped(phase.sessions_file)
        return SessionsDriver(engine, phase, gate, self.loop, due=due, rows=rows, standing=standing, **own)

    def _slots(
        self, fd: int, limit: int | None, levels: str | None, held: MutableSequence[int], cell: int
    ) -> SharedSlots | LocalSlots:
        """A limit: of this worker alone, or one that all share; *levels* names the file of its rise, if it has one."""
        slots = LocalSlots(1 if levels is not None else limit) if fd < 0 else SharedSlots(fd, self.loop, held, cell)
        if levels is not None and (fd < 0 or self.index == 0):  # of what all share one worker sees to the rise
            self._rises.append(Rise(_mapped(levels), slots, self.loop))
        return slots

    def _at(self, at_ns: int, call: Callable[[], None]) -> None:
        self._handles.append(self.loop.call_later(max(0, at_ns - monotonic_ns()) / NS_PER_S, call))

    def _sending_complete(self) -> None:
        engine, logbook = self.engine, self.logbook
        if engine is None or logbook is None:
            return
        index = engine.phase.index
        about = {"phase": index, "event": "sending_complete", "at_ns": monotonic_ns(), "sent": engine.sent}
        logbook.frame(journal.PHASE, about)
        self._tell(control.SendingComplete(self.index, index))
        if not engine.open:
            # Not from inside: the driver may still be in the middle of starting what completed it.
            self.loop.call_soon(self._phase_ended, index)

    def _phase_ended(self, index: int) -> None:
        engine, logbook = self.engine, self.logbook
        if engine is None or logbook is None or not self._phase_open or engine.open:
            return
        if engine.phase.index != index:  # said already, and the next phase has begun since
            return
        self._phase_open = False
        for handle in self._handles:
            handle.cancel()
        self._handles.clear()
        for rise in self._rises:
            rise.stop()
        self._rises.clear()
        self._loop_frame()
        logbook.frame(journal.PHASE, {"phase": engine.phase.index, "event": "end", "at_ns": monotonic_ns()})
        self._count()
        self._tell(control.PhaseEnded(self.index, engine.phase.index, engine.last_answer_ns))
        if self._orphan:
            self._exit()

    def _stop(self, drain_ns: int) -> None:
        engine = self.engine
        if engine is None or not self._phase_open:
            return
        engine.driver.stop()
        if drain_ns <= 0:
            self._abort()
        else:
            self._at(monotonic_ns() + drain_ns, self._abort)

    def _abort(self) -> None:
        if self.engine is not None:
            self.engine.driver.stop()
            self.engine.abort_all()

    # Ticks

    def _tick(self) -> None:
        now = monotonic_ns()
        self._lags.append(max(0, now - self._tick_due_ns))
        self._ticks += 1
        if self.logbook is not None:
            self.logbook.flush()
            if self._phase_open and self.logbook.trouble is not None and not self._troubled:
                self._troubled = True
                self._tell(control.Trouble("worker", self.index, self.logbook.trouble))
                self._stop(_ORPHAN_DRAIN_NS)
        if self.engine is not None and self._ticks % _SWEEP_TICKS == 0:
            self.engine.sweep(now)
            self._count()
        if self._ticks % _LOOP_TICKS == 0:
            self._loop_frame()
        self._tick_due_ns = monotonic_ns() + int(_TICK_S * NS_PER_S)
        self.loop.call_later(_TICK_S, self._tick)

    def _count(self) -> None:
        engine, logbook = self.engine, self.logbook
        if engine is None or logbook is None or not hasattr(engine, "phase"):
            return
        row = (engine.phase.index, engine.sent, engine.completed, engine.errors, len(engine.open), *logbook.position)
        if row != self._reported:
            self._reported = row
            self._tell(control.Counters(self.index, *row))

    def _loop_frame(self) -> None:
        if self.logbook is not None and self.engine is not None and self._phase_open | bool(self._lags):
            about = {"lag_ns": self._lags, "cpu_ns": process_time_ns(), "wall_ns": monotonic_ns() - self._born_ns}
            statistics = {"reads": self.logbook.reads} | self.engine.transport.statistics
            about |= {"statistics": statistics, "in_phase": self._phase_open}
            self.logbook.frame(journal.LOOP, about)
            self._lags = []

    def _stumbled(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """A callback of the measuring loop raised what nobody expected: a timer, a socket or a plugin is dead from then on, and
        the phase might never end.  So this process ends, named with its cause; the run treats it as any that dies."""
        error = context.get("exception")
        loop.default_exception_handler(context)  # with its traceback, into the log
        if "handle" not in context or not isinstance(error, Exception):
            return  # no callback: a task's result that nobody fetched, or a warning
        self._warn(f"worker {self.index} failed: {why(error)}")
        try:
            if self.logbook is not None:
                self.logbook.close()
            self.line.close()
            sys.stderr.flush()
        finally:
            os._exit(_STUMBLED)

    def _exit(self) -> None:
        if not self.ended.done():
            self.ended.set_result(None)


def _mapped(path: str) -> memoryview:
    """A file of int64 as a view; pages come as they are needed."""
    if Path(path).stat().st_size == 0:
        return memoryview(b"").cast("q")
    with Path(path).open("rb") as file:
        return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)).cast("q")


def _hooked(plan: Plan, report: Callable[[str], None]) -> tuple[Prepare | None, Callable[..., Transport]]:
    """The plan's hook plugins bound to plain calls, once; None where nobody implements a hook.

    *report* is told of each plugin's first failure.
    """
    make = partial(made, plan.transport)
    if not plan.hooks:
        return None, make
    from pluggy import PluginManager

    from aiperf import hooks
    from aiperf.hookcalls import equipped
    from aiperf.hooktrace import trace

    manager = PluginManager("aiperf")
    manager.add_hookspecs(hooks)
    for ref, options in plan.hooked():
        manager.register(equipped(load(ref), options), f"hooks:{ref.name}")
    trace(manager)
    found: list[Any] = list(manager.hook.aiperf_request_prepared.get_hookimpls())
    calls = [(one.plugin_name, one.function, "turn" in one.argnames, "request" in one.argnames) for one in found]
    failed: set[str] = set()

    def prepare(request: HttpRequest, turn: Turn) -> HttpRequest:
        for name, call, wants_turn, wants_request in calls:
            arguments: dict[str, Any] = {"request": request} if wants_request else {}
            if wants_turn:
                arguments["turn"] = turn
            try:
                changed: HttpRequest | None = call(**arguments)
            except Exception as error:  # noqa: BLE001  # strangers' code: the request goes out as it was
                if name not in failed:
                    failed.add(name)
                    report(f"hook plugin {name}: aiperf_request_prepared failed: {type(error).__name__}: {error}")
                continue
            request = request if changed is None else changed
        return request

    def make_transport(settings: TransportSettings, sink: Engine, loop: asyncio.AbstractEventLoop) -> Transport:
        given: dict[str, Any] = {"settings": settings, "sink": sink, "loop": loop}
        theirs: Any = None
        for one in reversed(manager.hook.aiperf_make_transport.get_hookimpls()):  # the last registered first, as pluggy does
            with blamed(f"hook plugin {one.plugin_name}", "can't make a transport"):
                theirs = one.function(**{name: given[name] for name in one.argnames})
            if theirs is not None:
                break
        transport: Transport = make(settings, sink, loop) if theirs is None else theirs
        return transport

    return prepare if calls else None, make_transport


def raise_file_limit() -> None:
    """As many open files as the machine allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


async def _run(address: str, index: int, workers: int, fds: list[int]) -> None:
    line = control.Line(address, f"worker-{index}")
    worker = Worker(line, index, workers, fds)
    worker.start()
    await worker.ended
    if worker.engine is not None:
        await worker.engine.transport.close()
    if worker.logbook is not None:
        worker.logbook.close()
    worker.loop.remove_reader(line.fd)
    line.close()


def main(arguments: list[str]) -> None:
    address, index, workers, fds = arguments
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides what Ctrl-C means
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise_file_limit()
    work = _run(address, int(index), int(workers), [int(fd) for fd in fds.split(",") if fd])
    if environment.uvloop_wanted():
        import uvloop

        uvloop.run(work)
    else:
        asyncio.run(work)
    sys.stderr.flush()
    os._exit(0)  # everything is written and closed


if __name__ == "__main__":
    main(sys.argv[1:])
