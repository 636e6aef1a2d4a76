"""Ceilings and counters that several processes share."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest
from aiperf.worker.slots import LocalCounter, LocalSlots, SharedCounter, SharedSlots, make_counter_fd, make_slots_fd

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="eventfd and memfd are Linux")


def test_five_processes_draw_every_number_exactly_once(tmp_path: Path) -> None:
    fd = make_counter_fd()
    pids = []
    for child in range(5):
        pid = os.fork()
        if pid == 0:
            counter = SharedCounter(fd)
            drawn = [counter.next() for _ in range(2000)]
            (tmp_path / str(child)).write_text(" ".join(map(str, drawn)))
            os._exit(0)
        pids.append(pid)
    for pid in pids:
        os.waitpid(pid, 0)
    os.close(fd)
    numbers = [int(word) for child in range(5) for word in (tmp_path / str(child)).read_text().split()]
    assert sorted(numbers) == list(range(10_000))


def test_a_shared_ceiling_never_gives_more_than_its_limit() -> None:
    loop = asyncio.new_event_loop()
    fd = make_slots_fd(3)
    several = [SharedSlots(fd, loop, [0], 0) for _ in range(5)]
    assert [slots.take() for slots in several] == [True, True, True, False, False]
    several[4].give()
    assert several[0].take()
    assert not several[1].take()
    os.close(fd)
    loop.close()


def test_who_waits_for_a_shared_slot_is_called_when_one_frees() -> None:
    async def wait() -> bool:
        loop = asyncio.get_running_loop()
        fd = make_slots_fd(1)
        holder, waiter = SharedSlots(fd, loop, [0], 0), SharedSlots(fd, loop, [0], 0)
        assert holder.take()
        woken = loop.create_future()

        def call() -> None:
            if waiter.take():
                waiter.notify(None)
                woken.set_result(True)

        waiter.notify(call)
        loop.call_soon(holder.give)
        result = await asyncio.wait_for(woken, 60)
        os.close(fd)
        return bool(result)

    assert asyncio.run(wait())


@pytest.mark.parametrize(("limit", "taken"), [(2, [True, True, False]), (None, [True, True, True])])
def test_a_lone_worker_counts_its_own_slots(limit: int | None, taken: list[bool]) -> None:
    loop = asyncio.new_event_loop()
    slots = LocalSlots(limit)
    assert [slots.take() for _ in range(3)] == taken
    slots.give()
    assert slots.take()
    loop.close()


def test_a_lone_worker_counts_from_zero() -> None:
    counter = LocalCounter([0], 0)
    assert [counter.next() for _ in range(3)] == [0, 1, 2]
