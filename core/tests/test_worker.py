"""The worker around the engine: phases end once, and in their own name."""

from __future__ import annotations

import asyncio
from pathlib import Path
from time import monotonic_ns
from typing import Any

import msgspec
import pytest
from aiperf.engine import control, worker
from aiperf.engine.logbook import Logbook
from aiperf.engine.standing import Standing, make_standing_fd
from aiperf.plan import PhasePlan
from worker_fakes import FakeTransport, make_engine, make_plan


class FakeLine:
    """The control channel's child end, with nobody at the other."""

    fd = -1

    def __init__(self) -> None:
        self.sent: list[control.Message] = []
        self.waiting: list[control.Message] = []

    def send(self, message: control.Message) -> None:
        self.sent.append(message)

    def receive(self) -> control.Message | None:
        return self.waiting.pop(0) if self.waiting else None


async def make_worker(directory: Path) -> tuple[worker.Worker, FakeLine, Any]:
    phases = tuple(
        PhasePlan(name, name, index, "burst", request_count=2, concurrency=2, entries=3)
        for index, name in enumerate(("warmup", "profiling"))
    )
    plan = msgspec.structs.replace(make_plan(directory), phases=phases)
    line: Any = FakeLine()
    fd = make_standing_fd(len(phases), 1)
    made = worker.Worker(line, 0, 1, [fd])
    made._standing = Standing(fd, len(phases), 1)
    made.plan, made.engine = plan, make_engine(plan, made.loop)
    made.engine.transport = FakeTransport(made.engine)  # type: ignore[assignment]
    made.engine.transport.statistics = {}  # type: ignore[misc]
    made.logbook = made.engine.logbook
    assert isinstance(made.logbook, Logbook)
    return made, line, made.engine.transport


def ended(line: FakeLine) -> list[int]:
    return [message.phase for message in line.sent if isinstance(message, control.PhaseEnded)]


def test_a_phase_that_begins_before_the_loop_has_caught_up_is_not_ended_by_the_one_before(tmp_path: Path) -> None:
    async def check() -> None:
        made, line, transport = await make_worker(tmp_path)
        made._begin(control.Begin(0, 1))
        # As quick as a parent can be, and for an instant that is still to come.
        line.waiting.append(control.Begin(1, monotonic_ns() + 10_000_000))
        while transport.open:
            transport.answer()
        for _ in range(5):
            await asyncio.sleep(0)
        assert ended(line) == [0]
        while not transport.open:
            await asyncio.sleep(0.001)
        while transport.open:
            transport.answer()
        for _ in range(5):
            await asyncio.sleep(0)
        assert ended(line) == [0, 1]
        made.logbook.close()  # type: ignore[union-attr]

    asyncio.run(check())


@pytest.mark.parametrize("drain_ns", [0, 10**9])
def test_a_stop_without_anything_in_flight_ends_the_phase_once(tmp_path: Path, drain_ns: int) -> None:
    async def check() -> None:
        made, line, transport = await make_worker(tmp_path)
        made._begin(control.Begin(0, 1))
        made._stop(drain_ns)
        while transport.open:
            transport.answer()
        for _ in range(5):
            await asyncio.sleep(0)
        assert ended(line) == [0]
        made.logbook.close()  # type: ignore[union-attr]

    asyncio.run(check())
