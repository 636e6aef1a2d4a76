"""The worker around the engine: phases end once, and in their own name."""

from __future__ import annotations

import asyncio
from pathlib import Path
from time import monotonic_ns
from typing import Any

import msgspec
import pytest
from aiperf.processes import control
from aiperf.rundir import journal
from aiperf.sdk.plan import PhasePlan
from aiperf.worker import process
from aiperf.worker.share import Share, WorkerPlace
from aiperf.worker.slots import Progress, make_progress_fd
from worker_fakes import make_engine, make_plan


class FakeLine:
    """The control channel's child end, with nobody at the other."""

    fd = 0

    def __init__(self) -> None:
        self.sent: list[control.Message] = []
        self.waiting: list[control.Message] = []
        self.closed = False

    def send(self, message: control.Message) -> None:
        assert not self.closed
        self.sent.append(message)

    def receive(self) -> control.Message | None:
        assert not self.closed
        return self.waiting.pop(0) if self.waiting else None

    def close(self) -> None:
        self.closed = True


async def make_worker(directory: Path) -> tuple[process.Worker, FakeLine, Any]:
    phases = tuple(
        PhasePlan(name, name, index, "burst", request_count=2, concurrency=2, entries=3, driver="burst")
        for index, name in enumerate(("warmup", "profiling"))
    )
    plan = make_plan(directory, phases=phases)
    line: Any = FakeLine()
    fd = make_progress_fd(len(phases), 1)
    made = process.Worker(line, 0, [fd], directory)
    requests = make_engine(plan, made.loop)
    requests.transport.statistics = {}  # type: ignore[misc]
    made.share = Share(plan, WorkerPlace(0, 1, [fd]), requests.logbook, requests, Progress(fd, len(phases), 1))
    return made, line, requests.transport


def ended(line: FakeLine) -> list[int]:
    return [message.phase for message in line.sent if isinstance(message, control.PhaseEnded)]


def test_a_late_callback_does_not_end_the_next_phase(tmp_path: Path) -> None:
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
        made.share.logbook.close()  # type: ignore[union-attr]

    asyncio.run(check())


def test_a_phase_of_no_time_has_its_lag_and_its_processor_time(tmp_path: Path) -> None:
    async def check() -> None:
        made, _, transport = await make_worker(tmp_path)
        made._begin(control.Begin(0, 1))
        made._tick_due_ns = monotonic_ns() - 3_300_000_000  # the loop stands still until the phase ends
        while transport.open:
            transport.answer()
        made.share.logbook.close()  # type: ignore[union-attr]

    asyncio.run(check())
    frames = journal.frames(journal.segment_path(tmp_path, 0, 0))
    told = [msgspec.msgpack.decode(frame.payload) for frame in frames if frame.kind in (journal.PHASE, journal.LOOP)]
    assert [value.get("event") or value["in_phase"] for value in told] == [False, "begin", "sending_complete", True, "end"]
    before, last = told[0], told[3]
    assert max(last["lag_ns"]) >= 3_300_000_000
    assert last["wall_ns"] > before["wall_ns"]
    assert last["disk_ns"] >= before["disk_ns"] >= 0 <= last["waited_ns"]


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
        made.share.logbook.close()  # type: ignore[union-attr]

    asyncio.run(check())


def test_a_closed_worker_uses_its_control_line_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "_TICK_S", 0.0)
    monkeypatch.setattr(process, "_SWEEP_TICKS", 1)
    faults: list[object] = []

    async def check() -> None:
        made, _, _ = await make_worker(tmp_path)
        made.loop.set_exception_handler(lambda _, context: faults.append(context))
        made._begin(control.Begin(0, 1))
        made._tick()
        made.share.requests.in_flight.sent += 1  # type: ignore[union-attr]  # the next tick has counters to send
        await made.close()
        for _ in range(5):
            await asyncio.sleep(0.001)

    asyncio.run(check())
    assert faults == []
