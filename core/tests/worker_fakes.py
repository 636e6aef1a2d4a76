"""An engine with a transport that answers when told to."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
from aiperf.registry.hooks import Prepare
from aiperf.rundir.outline import Outline
from aiperf.rundir.shapes import StoredShape
from aiperf.sdk.descriptor import PluginRef
from aiperf.sdk.driver import ARRIVALS, SESSIONS, DriverContext
from aiperf.sdk.endpoint import Endpoint
from aiperf.sdk.model import Conversation, Delta, ErrorDetails, HttpRequest, Turn
from aiperf.sdk.plan import PhasePlan, Plan, Secrets
from aiperf.sdk.transport import Exchange
from aiperf.sdk.trees import Stream
from aiperf.worker.clock import LoopTimer
from aiperf.worker.logbook import Logbook
from aiperf.worker.request_sink import RequestSink
from aiperf.worker.requests import Requests
from aiperf.worker.slots import LocalCounter, LocalSlots, SlotGate
from aiperf_testing.plans import sample_plan
from schedule_fakes import SLOTS, SlotDriver

ENDPOINT = PluginRef("endpoints", "bare", "aiperf.sdk.endpoint:Endpoint", "aiperf-core", "0")
ECHOED = PluginRef("endpoints", "echoed", "worker_fakes:Echoed", "aiperf-core", "0")
SPOKEN = PluginRef("endpoints", "spoken", "worker_fakes:Spoken", "aiperf-core", "0")


class Spoken(Endpoint):
    """Encodes a turn as its texts."""

    def encode(self, turn: Turn) -> HttpRequest:
        return HttpRequest("/v1/x", " ".join(text for message in turn.messages for text in message.texts).encode())


class Echoed(Spoken):
    """Reads each event as its text."""

    def decode(self, event: bytes) -> Delta | None:
        return Delta(text=event.decode())


class FakeStore:
    """Every entry is one conversation of *turns* turns."""

    entries = 1 << 30
    trees = False

    def streams(self, entry: int) -> tuple[Stream, ...]:
        return ()

    def __init__(self, turns: int = 1) -> None:
        self._turns = turns
        self.max_turns = turns
        self.shapes = [StoredShape("/v1/x")]

    def grow(self) -> bool:
        return False

    def has(self, entry: int) -> bool:
        return entry < self.entries

    def turns(self, entry: int) -> int:
        return self._turns

    def body(self, entry: int, turn: int, model: int = 0) -> bytes:
        return b"entry %d turn %d model %d" % (entry, turn, model)

    def shape(self, entry: int, turn: int, model: int = 0) -> int:
        return 0

    def delay_ns(self, entry: int, turn: int) -> int:
        return 0

    def id(self, entry: int) -> str:
        return f"c{entry}"

    def recorded_ns(self, entry: int, turn: int) -> tuple[int, int] | None:
        return None

    def conversation(self, entry: int) -> Conversation:
        return Conversation(f"c{entry}", tuple(Turn((f"t{turn}",)) for turn in range(self._turns)))

    def outline(self, entry: int) -> Outline:
        return msgspec.msgpack.decode(msgspec.msgpack.encode(self.conversation(entry)), type=Outline)

    def part(self, outline: Outline, index: int) -> Conversation:
        return outline.part(index)


class FakeTransport:
    changing_bodies = True

    def __init__(self, engine: Requests) -> None:
        self.engine = engine
        self.sent: list[Exchange] = []
        self.open: list[Exchange] = []

    def send(self, exchange: Exchange) -> None:
        self.sent.append(exchange)
        self.open.append(exchange)

    def answer(self, status: int = 200, error: ErrorDetails | None = None) -> None:
        exchange = self.open.pop(0)
        exchange.status = status
        self.engine.sink.chunk(exchange, b"hello", 1, 2, 0)
        self.engine.sink.done(exchange, error)

    async def close(self) -> None:
        self.open.clear()

    def abort(self, exchange: Exchange, error: ErrorDetails | None) -> None:
        self.open.remove(exchange)
        self.engine.sink.done(exchange, error)


def make_plan(directory: Path, **changes: Any) -> Plan:
    phase = PhasePlan("profiling", "profiling", 0, "burst", request_count=10, concurrency=2, entries=3)
    plain = {
        "phases": (phase,), "endpoint": ENDPOINT, "entries": 3, "timeout_ns": 10**9, "journal": str(directory),
        "drivers": {"burst": SLOTS},
    }  # fmt: skip
    return sample_plan(directory, **{**plain, **changes})


def make_engine(
    plan: Plan,
    loop: asyncio.AbstractEventLoop,
    *,
    secrets: Secrets | None = None,
    turns: int = 1,
    prepare: Prepare | None = None,
    store: Any = None,
    warn: Callable[[str], None] = lambda _: None,
    kind: type[RequestSink] = RequestSink,
) -> Requests:
    store = store or FakeStore(turns)
    logbook = Logbook(Path(plan.output.journal), 0, {})
    engine = Requests(
        plan, secrets or Secrets(), store, logbook, 0, prepare, loop=loop, numbered=[0], warn=warn, kind=kind
    )
    engine.send_through(FakeTransport(engine))  # type: ignore[arg-type]
    phase, cells = plan.load.phases[0], [0, 0]
    context = DriverContext(
        phase, engine, SlotGate(LocalSlots(phase.concurrency)), loop, partial(LoopTimer, loop), LocalCounter(cells, ARRIVALS),
        LocalCounter(cells, SESSIONS), cells, share=2, max_turns=turns,
    )  # fmt: skip
    engine.begin(phase, SlotDriver(None, context))
    return engine
