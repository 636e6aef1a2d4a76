"""An engine with a transport that answers when told to."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec
from aiperf.descriptor import PluginRef
from aiperf.engine.contract import Exchange
from aiperf.engine.drivers import BurstDriver
from aiperf.engine.engine import Engine
from aiperf.engine.gate import Gate
from aiperf.engine.logbook import Logbook
from aiperf.engine.slots import LocalCounter, LocalSlots
from aiperf.model import Conversation, ErrorDetails, HttpRequest, Turn
from aiperf.plan import PhasePlan, Plan, Secrets, TlsPlan

ENDPOINT = PluginRef("endpoints", "bare", "aiperf.endpoint:Endpoint", "aiperf-core", "0")


class FakeStore:
    """Every entry is one conversation of *turns* turns."""

    def __init__(self, turns: int = 1) -> None:
        self._turns = turns
        self.max_turns = turns
        self.shapes = [HttpRequest("/v1/x", b"")]

    def turns(self, entry: int) -> int:
        return self._turns

    def body(self, entry: int, turn: int, model: int = 0) -> bytes:
        return b"entry %d turn %d model %d" % (entry, turn, model)

    def shape(self, entry: int, turn: int) -> int:
        return 0

    def delay_ns(self, entry: int, turn: int) -> int:
        return 0

    def conversation(self, entry: int) -> Conversation:
        return Conversation(f"c{entry}", tuple(Turn((f"t{turn}",)) for turn in range(self._turns)))


class FakeTransport:
    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.sent: list[Exchange] = []
        self.open: list[Exchange] = []

    def send(self, exchange: Exchange) -> None:
        self.sent.append(exchange)
        self.open.append(exchange)

    def answer(self, status: int = 200, error: ErrorDetails | None = None) -> None:
        exchange = self.open.pop(0)
        exchange.status = status
        self.engine.chunk(exchange, b"hello", 1, 2, 0)
        self.engine.done(exchange, error)

    def abort(self, exchange: Exchange, error: ErrorDetails | None) -> None:
        self.open.remove(exchange)
        self.engine.done(exchange, error)


def make_plan(directory: Path, **changes: Any) -> Plan:
    phase = PhasePlan("profiling", "profiling", 0, "burst", request_count=10, concurrency=2, entries=3)
    plan = Plan(
        "0123456789ab", "0", 7, True, "aiperf", (phase,), ("m",), "round_robin", ("http://h",), "/v1/x", ENDPOINT,
        PluginRef("transports", "t", "", "", ""), PluginRef("datasets", "d", "", "", ""), None, None, False, 10**9, True,
        "X-Correlation-ID", TlsPlan(), "sequential", 3, 1, 1, str(directory), str(directory), None, "records", False,
    )  # fmt: skip
    return msgspec.structs.replace(plan, **changes)


def make_engine(plan: Plan, loop: asyncio.AbstractEventLoop, *, secrets: Secrets | None = None, turns: int = 1) -> Engine:
    store: Any = FakeStore(turns)
    logbook, said = Logbook(Path(plan.journal), 0, {}), list[str]()
    engine = Engine(plan, secrets or Secrets(), store, logbook, 0, loop=loop, numbered=[0], warn=said.append)
    engine.transport = FakeTransport(engine)  # type: ignore[assignment]
    engine.phase = plan.phases[0]
    cells = [0, 0]
    sessions = LocalCounter(cells, 1) if turns > 1 else None
    gate = Gate(LocalSlots(engine.phase.concurrency))
    engine.driver = BurstDriver(engine, engine.phase, gate, loop, claims=LocalCounter(cells, 0), sessions=sessions, share=2)
    return engine
