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
from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import monotonic_ns, process_time_ns
from typing import Any

import msgspec

from aiperf import __version__, environment, journal
from aiperf.engine import control
from aiperf.engine.clock import NS_PER_S
from aiperf.engine.contract import Exchange, Shape, Transport, TransportSettings
from aiperf.engine.drivers import BurstDriver, Driver, PacedDriver
from aiperf.engine.logbook import Logbook
from aiperf.engine.session import Session
from aiperf.engine.slots import Counter, LocalCounter, LocalSlots, SharedCounter, SharedSlots, Slots
from aiperf.errors import AiperfError, BadResponse
from aiperf.ids import request_prefix, session_prefix
from aiperf.model import ErrorDetails, HttpRequest, Message, Turn, join_url
from aiperf.plan import PhasePlan, Plan, Secrets
from aiperf.rundir import load_run
from aiperf.schedule import uniform
from aiperf.sse import Splitter
from aiperf.store import Store

_TICK_S = 0.05
_SWEEP_TICKS = 5
_LOOP_TICKS = 20
_ORPHAN_DRAIN_NS = 5 * NS_PER_S

Prepare = Callable[[HttpRequest, Turn], HttpRequest]


class Engine:
    """The request's life cycle on this worker: from a driver's word to a ``done`` row.  Also the transport's sink."""

    def __init__(
        self,
        plan: Plan,
        secrets: Secrets,
        store: Store,
        logbook: Logbook,
        shard: int,
        prepare: Prepare | None = None,
    ) -> None:
        self.plan, self.store, self.logbook, self.shard = plan, store, logbook, shard
        self.transport: Transport
        self.driver: Driver
        self.phase: PhasePlan
        self.open: dict[int, Exchange] = {}
        self.sent = self.completed = self.errors = 0
        self.last_answer_ns = 0
        self.on_idle: Callable[[], None] = lambda: None
        self._request = 0
        self._ending: int | None = None
        self._endpoint = plan.endpoint.load()(plan.plugin_options(plan.endpoint))
        self._log_chunk = logbook.chunk
        self._models, self._urls = len(plan.models), len(plan.urls)
        self._request_prefix = request_prefix(plan.run_id, shard)
        self._session_prefixes = [session_prefix(plan.run_id, phase.index) for phase in plan.phases]
        self._sampler = plan.sampler()
        self._prepare = prepare
        self._shapes = self._make_shapes(secrets)

    def _make_shapes(self, secrets: Secrets) -> list[list[Shape]]:
        """Per URL, per shape of the store, the request's unchanging part."""
        accept = "text/event-stream" if self.plan.streaming else "application/json"
        sessions = [self.plan.session_header, *environment.affinity_headers()]
        shapes = []
        for url in self.plan.urls:
            row = []
            for shape in self.store.shapes:
                headers = {"User-Agent": f"aiperf/{__version__}", "Content-Type": shape.content_type, "Accept": accept}
                for extra in (shape.headers, secrets.headers):
                    headers = _merged(headers, extra)
                headers = {name: value for name, value in headers.items() if name.lower() not in map(str.lower, sessions)}
                row.append(Shape(join_url(url, self.plan.path), headers, tuple(sessions), shape.method))
            shapes.append(row)
        return shapes

    # What drivers ask

    def session(self, phase: PhasePlan, number: int) -> Session:
        plan, index = self.plan, phase.index
        entry = phase.first_entry + self._sampler(plan.seed, number, phase.entries)
        model = self._model(phase, number) if self._models > 1 else 0
        identity = f"{self._session_prefixes[index]}{number:012x}"
        return Session(index, number, entry, self.store.turns(entry), model, number % self._urls, identity)

    def _model(self, phase: PhasePlan, number: int) -> int:
        """Which of several models a session uses."""
        plan = self.plan
        if plan.model_strategy == "round_robin":
            return number % self._models
        return int(uniform(plan.seed, f"model:{phase.name}", number) * self._models)

    def delay_ns(self, session: Session) -> int:
        return self.store.delay_ns(session.entry, session.turn)

    def send(self, session: Session, n: int, due_ns: int) -> None:
        entry, turn = session.entry, session.turn
        if turn == 0 and self._prepare is None:
            body = self.store.body(entry, 0, session.model)
            shape = self._shapes[session.url][self.store.shape(entry, 0)]
        else:
            body, shape = self._encode(session)
        request = self._request
        self._request = request + 1
        started_ns = monotonic_ns()
        exchange = Exchange(request, shape, body, f"{self._request_prefix}{request:012x}", session.id, started_ns)
        exchange.n = n
        exchange.due_ns = due_ns
        exchange.deadline_ns = started_ns + self.plan.timeout_ns
        exchange.owner = session
        self.open[request] = exchange
        self.sent += 1
        self.logbook.sent(
            (request, n, session.phase, session.number, turn, entry, session.url, session.model, due_ns, started_ns)
        )
        self.transport.send(exchange)

    def _encode(self, session: Session) -> tuple[bytes, Shape]:
        """A later turn: history with the live answers.  Also every turn that a hook may change."""
        conversation = self.store.conversation(session.entry)
        authored = conversation.turns[session.turn]
        turn = msgspec.structs.replace(
            authored,
            model=authored.model or self.plan.models[session.model],
            stream=self.plan.streaming,
            history=(*conversation.prelude, *session.history),
            extra={**self.plan.extra, **authored.extra},
        )
        request: HttpRequest = self._endpoint.encode(turn)
        if session.turn:
            prompt = " ".join(text for message in turn.messages for text in message.texts)
            self.logbook.text(self._request, "prompt", prompt)
        shape = self._shapes[session.url][self.store.shape(session.entry, session.turn)]
        if self._prepare is not None:
            changed = self._prepare(request, turn)
            if changed is not request:
                headers = _merged({**shape.headers, "Content-Type": changed.content_type}, changed.headers)
                url = shape.url if changed.path == request.path else join_url(self.plan.urls[session.url], changed.path)
                shape = Shape(url, headers, shape.session_headers, changed.method)
                request = changed
        return request.body, shape

    # What the transport says

    def chunk(self, exchange: Exchange, body: bytes, kernel_ns: int, read_ns: int, hidden: int) -> None:
        self._log_chunk(exchange.request, kernel_ns, read_ns, body, hidden)
        collect = exchange.owner.collect  # type: ignore[attr-defined]  # the owner is always the session
        if collect is not None:
            collect.append(body)

    def head(self, exchange: Exchange, status: int, reason: str, headers: list[tuple[str, str]]) -> None:
        self.logbook.text(exchange.request, "head", {"status": status, "reason": reason, "headers": headers})

    def done(self, exchange: Exchange, error: ErrorDetails | None) -> None:
        if self.open.pop(exchange.request, None) is None:
            return
        ended_ns = monotonic_ns()
        good = error is None and 200 <= exchange.status < 300
        if self._ending is not None:
            outcome = self._ending
        elif good:
            outcome = journal.COMPLETED
            self.completed += 1
        else:
            outcome = journal.ERROR
            self.errors += 1
        if error is not None:
            self.logbook.text(exchange.request, "error", error)
        self.last_answer_ns = ended_ns
        self.logbook.done(
            (
                exchange.request, outcome, exchange.status, exchange.flags, exchange.connected_ns, exchange.sent_ns,
                exchange.sent_end_ns, exchange.ack_ns, ended_ns, len(exchange.body), exchange.bytes_received,
                exchange.dns_ns, exchange.connect_ns, exchange.tls_ns,
            )
        )  # fmt: skip
        session: Any = exchange.owner
        if session.collect is not None and not session.last:
            self._remember(session, exchange, good)
        self.driver.over(session)
        if self.driver.complete and not self.open:
            self.on_idle()

    def _remember(self, session: Session, exchange: Exchange, good: bool) -> None:
        """Keep the turn and its live answer for the next one; a failed turn adds no answer."""
        authored = self.store.conversation(session.entry).turns[session.turn]
        session.history.append(Message(authored.role, authored.texts, authored.media))
        pieces, session.collect = session.collect or [], []
        if good:
            answer = self._answer(pieces, streamed=bool(exchange.flags & journal.STREAMED))
            if answer:
                session.history.append(Message("assistant", (answer,)))

    def _answer(self, pieces: list[bytes], *, streamed: bool) -> str:
        """The answer's text; reasoning only where there was nothing else."""
        if streamed:
            splitter = Splitter()
            events = [event.data for piece in pieces for event in splitter.feed(piece)]
            events += [event.data for event in splitter.close()]
        else:
            events = [b"".join(pieces)]
        text, reasoning = [], []
        for event in events:
            try:
                delta = self._endpoint.decode(event)
            except BadResponse:  # the reducer reports it; here it only means that there is nothing to repeat
                continue
            if delta is not None:
                text.append(delta.text)
                reasoning.append(delta.reasoning)
        return "".join(text) or "".join(reasoning)

    # Ending

    def abort_all(self) -> None:
        """Drop everything in flight: the grace is over."""
        self._ending = journal.ABORTED
        for exchange in list(self.open.values()):
            self.transport.abort(exchange, None)
        self._ending = None

    def sweep(self, now_ns: int) -> None:
        """End requests that take longer than the timeout; they were started in order of their deadlines."""
        late = []
        for exchange in self.open.values():
            if exchange.deadline_ns > now_ns:
                break
            late.append(exchange)
        for exchange in late:
            message = f"no whole answer within {self.plan.timeout_ns / NS_PER_S:g} s"
            self.transport.abort(exchange, ErrorDetails(message, type="TimeoutError", code=504))


class Worker:
    """The process around the engine: control channel, phases, ticks."""

    def __init__(self, line: control.Line, index: int, workers: int, fds: list[int]) -> None:
        self.line, self.index, self.workers = line, index, workers
        self.loop = asyncio.get_running_loop()
        self.ended: asyncio.Future[None] = self.loop.create_future()
        self.engine: Engine | None = None
        self.plan: Plan | None = None
        self.logbook: Logbook | None = None
        self._fds = fds  # per phase: ceiling, arrivals, sessions
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
            prepare, make_transport = _hooked(plan, lambda said: self._tell(control.Notice("worker", self.index, said)))
            engine = Engine(plan, secrets, store, logbook, self.index, prepare)
            settings = TransportSettings(
                urls=plan.urls,
                tls=plan.tls,
                reuse=plan.reuse,
                keep_heads=plan.export_level == "raw",
                family=environment.ip_version(),
                trust_env=environment.trust_env(),
            )
            engine.transport = make_transport(settings, engine, self.loop)
            await engine.transport.open()
            await engine.transport.warm(self._connections(plan))
        except (OSError, AiperfError, ImportError, AttributeError) as error:
            self._tell(control.Ready("worker", self.index, f"{type(error).__name__}: {error}"))
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
        engine.driver.begin(message.start_ns)

    def _driver(self, engine: Engine, phase: PhasePlan) -> Driver:
        fds = self._fds[3 * phase.index : 3 * phase.index + 3]
        shared = bool(fds) and fds[0] >= 0
        slots: Slots = SharedSlots(fds[0], self.loop) if shared else LocalSlots(phase.concurrency, self.loop)
        if phase.due_file is not None:
            return PacedDriver(engine, phase, slots, self.loop, due=_mapped(phase.due_file), shard=self.index, of=self.workers)
        claims: Counter = SharedCounter(fds[1]) if fds else LocalCounter()
        sessions: Counter | None = None
        if engine.store.max_turns > 1:
            sessions = SharedCounter(fds[2]) if fds else LocalCounter()
        share = -(-(phase.concurrency or 1) // self.workers)
        return BurstDriver(engine, phase, slots, self.loop, claims=claims, sessions=sessions, share=share)

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

    def _exit(self) -> None:
        if not self.ended.done():
            self.ended.set_result(None)


def _merged(headers: dict[str, str], extra: dict[str, str]) -> dict[str, str]:
    """*extra* over *headers*, names compared without case."""
    names = {name.lower() for name in extra}
    return {name: value for name, value in headers.items() if name.lower() not in names} | extra


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
    make: Callable[..., Transport] = plan.transport.load()
    if not plan.hooks:
        return None, make
    from pluggy import PluginManager

    from aiperf import hooks
    from aiperf.hooktrace import trace

    manager = PluginManager("aiperf")
    manager.add_hookspecs(hooks)
    for ref in plan.hooks:
        plugin = ref.load()
        manager.register(plugin() if isinstance(plugin, type) else plugin, f"hooks:{ref.name}")
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
        made: Transport | None = manager.hook.aiperf_make_transport(settings=settings, sink=sink, loop=loop)
        return made if made is not None else make(settings, sink, loop)

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
