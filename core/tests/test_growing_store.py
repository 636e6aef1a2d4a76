"""A data set that is read while it is made: the store, the worker's requests, and the builder."""

from __future__ import annotations

import asyncio
import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from aiperf.rundir.ahead import write_ahead
from aiperf.rundir.store import Store
from aiperf.rundir.store_form import made
from aiperf.rundir.store_writer import StoreWriter
from aiperf.sdk.model import Conversation, HttpRequest, Turn
from aiperf.sdk.trees import Branch, Stream, TreeOutline
from worker_fakes import FakeStore, make_engine, make_plan

BODY = b"x" * 3000


def add(writer: StoreWriter, number: int, path: str = "/a") -> None:
    turn = Turn((f"t{number}",), max_tokens=number, expected="yes" if number == 3 else None)
    writer.add(Conversation(f"c{number}", (turn,)), [[HttpRequest(path, b"%d" % number + BODY)]], number=number)


def seen(store: Store, entry: int) -> tuple[Any, ...]:
    return store.id(entry), store.turns(entry), store.body(entry, 0)[:-3000], store.max_tokens(entry, 0)


# The store


def test_readers_see_all_but_the_last_entry_and_in_the_end_that_one(tmp_path: Path) -> None:
    with StoreWriter(tmp_path) as writer:
        add(writer, 0)
        writer.publish()
        store = Store(tmp_path)
        assert store.entries == 0
        for number in range(1, 1000):  # some maps are too short on the way
            add(writer, number)
            if number % 100 == 0:
                writer.publish()
                assert store.grow()
                assert store.entries == number
                assert [seen(store, entry) for entry in (0, number - 1)] == [
                    ("c0", 1, b"0", 0), (f"c{number - 1}", 1, b"%d" % (number - 1), number - 1)
                ]  # fmt: skip
        assert not Store(tmp_path).grow()
    assert store.grow()
    assert [seen(whole, 999) for whole in (store, Store(tmp_path))] == [("c999", 1, b"999", 999)] * 2
    assert store.conversation(3).turns[0].expected == "yes"
    assert store.graded
    assert not store.grow()


def test_trees_are_known_before_they_are_made(tmp_path: Path) -> None:
    streams = (Stream("t1", 0, 1, (Branch((1,), 0),)), Stream("c", 1, 1, parent=0, depth=1))
    trees = [TreeOutline("t0", (), (None,), (None,)), TreeOutline("t1", streams, (None, 2.0), ((1.0, 2.0), None))]
    with StoreWriter(tmp_path) as writer:
        writer.trees = True
        write_ahead(tmp_path, 2, trees.__getitem__, 1.5)
        writer.publish()
        store = Store(tmp_path)
        assert [store.streams(entry) for entry in (0, 1)] == [(), streams]
        assert (store.id(1), store.turns(1), store.delay_ns(1, 1), store.has(1)) == ("t1", 2, 3_000_000, False)
        assert [store.recorded_ns(1, turn) for turn in (0, 1)] == [(1_000_000, 2_000_000), None]
        for number in (0, 1):
            add(writer, number)
    assert (store.turns(1), store.id(1), store.streams(1)) == (1, "c1", ())
    assert not (tmp_path / "dataset.ahead").exists()


def test_a_reader_that_asks_for_a_later_entry_looks_for_it(tmp_path: Path) -> None:
    with StoreWriter(tmp_path) as writer:
        add(writer, 0)
        writer.publish()
        store = Store(tmp_path)
        add(writer, 1)
        add(writer, 2)
        writer.publish()
        assert (store.body(0, 0)[:1], store.id(1), store.turns(7)) == (b"0", "c1", 0)


def test_new_shapes_reach_readers(tmp_path: Path) -> None:
    with StoreWriter(tmp_path) as writer:
        add(writer, 0)
        writer.publish()
        store = Store(tmp_path)
        shapes = store.shapes
        for number, path in enumerate(("/b", "/c", "/a"), 1):
            add(writer, number, path)
            writer.publish()
            store.grow()
        assert [shape.path for shape in shapes] == ["/a", "/b", "/c"]
        assert [store.shape(entry, 0) for entry in range(3)] == [0, 1, 2]


def highest_open_file() -> int:
    return max(int(path.name) for path in Path("/dev/fd").iterdir())


@contextmanager
def open_files_left(left: int) -> Iterator[None]:
    """In the block, this process may open so many files more."""
    limits, held = resource.getrlimit(resource.RLIMIT_NOFILE), [os.open(os.devnull, os.O_RDONLY)]
    while held[-1] < highest_open_file() - 1:  # numbers below are free
        held.append(os.open(os.devnull, os.O_RDONLY))
    resource.setrlimit(resource.RLIMIT_NOFILE, (highest_open_file() + left, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        for descriptor in held:
            os.close(descriptor)


def test_a_process_without_open_files_sees_new_entries_later(tmp_path: Path) -> None:
    with StoreWriter(tmp_path) as writer:
        add(writer, 0)
        add(writer, 1)
        writer.publish()
        store, grown, tries = Store(tmp_path), False, 0
        add(writer, 2, "/b")
        writer.publish()
        while not grown:
            with open_files_left(tries):
                grown = store.grow()
            assert (seen(store, 0)[:3], store.turns(1) if grown else 1) == (("c0", 1, b"0"), 1)
            tries += 1
    assert tries > 2 and seen(store, 1)[0] == "c1"


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_files_do_not_tell_whether_a_data_set_was_published(tmp_path: Path) -> None:
    """On a busy machine a load begins before its data set is whole, and on an idle one it does not."""
    at_once, grown = tmp_path / "at once", tmp_path / "grown"
    for folder in (at_once, grown):
        folder.mkdir()
        with StoreWriter(folder) as writer:
            add(writer, 0)
            if folder == grown:
                writer.publish()
                early = Store(folder)
                assert not early.complete and "dataset.ready" in names(folder)
            add(writer, 1)
    assert names(grown) == names(at_once)
    assert early.grow() and early.entries == 2
    assert Store(grown).complete and [seen(Store(grown), entry) for entry in (0, 1)] == [seen(early, 0), seen(early, 1)]


def test_a_build_that_ends_early_leaves_what_it_made(tmp_path: Path) -> None:
    with StoreWriter(tmp_path) as writer:
        writer.out_of_order(5)
        for number in (4, 2):
            add(writer, number)
        writer.publish()
    store = Store(tmp_path)
    assert (list(store.readable()), seen(store, 4), store.entries) == ([2, 4], ("c4", 1, b"4", 4), 0)


def test_what_a_dead_writer_published_can_be_read(tmp_path: Path) -> None:
    writer = StoreWriter(tmp_path)
    for number in range(3):
        add(writer, number)
    writer.publish()
    add(writer, 3)
    store = Store(tmp_path)
    assert (store.entries, seen(store, 1)) == (2, ("c1", 1, b"1", 1))


def test_a_new_data_set_leaves_nothing_of_a_dead_one(tmp_path: Path) -> None:
    writer = StoreWriter(tmp_path)
    for number in range(9):
        add(writer, number)
    writer.publish()
    with StoreWriter(tmp_path) as writer:
        add(writer, 0)
    assert Store(tmp_path).entries == 1


def test_entries_made_in_another_order_are_found_by_their_numbers(tmp_path: Path) -> None:
    with StoreWriter(tmp_path) as writer:
        writer.out_of_order(1000)
        add(writer, 500)
        add(writer, 3)
        writer.publish()
        store = Store(tmp_path)
        assert (store.entries, list(store.readable()), store.turns(3)) == (0, [500], 0)
        for number in [*range(3), *range(4, 500), *range(501, 1000)]:  # some maps are too short on the way
            add(writer, number)
        writer.publish()
        assert (store.grow(), store.has(3), store.has(999)) == (True, True, False)
        assert [seen(store, entry) for entry in (3, 500, 998)] == [
            (f"c{number}", 1, b"%d" % number, number) for number in (3, 500, 998)
        ]
    assert store.grow()
    for whole in (store, Store(tmp_path)):
        assert (whole.entries, seen(whole, 999), seen(whole, 0)) == (1000, ("c999", 1, b"999", 999), ("c0", 1, b"0", 0))
        numbers = whole.numbers(np.array([999, 0, 3]), np.zeros(3, dtype=np.int64))
        assert numbers[1].tolist() == [999, 0, 3]
    with StoreWriter(tmp_path) as writer:
        add(writer, 0)
    assert seen(Store(tmp_path), 0) == ("c0", 1, b"0", 0)


def test_of_entries_in_another_order_a_dead_writer_leaves_those_it_published(tmp_path: Path) -> None:
    writer = StoreWriter(tmp_path)
    writer.out_of_order(5)
    for number in (4, 2, 0):
        add(writer, number)
    writer.publish()
    store = Store(tmp_path)
    assert (list(store.readable()), seen(store, 4)) == ([2, 4], ("c4", 1, b"4", 4))


# The worker


class Growing(FakeStore):
    """Has *entries* entries, and *more* at the next look."""

    entries = more = 0

    def grow(self) -> bool:
        grown, self.entries = self.more > self.entries, self.more
        return grown

    def turns(self, entry: int) -> int:
        return self._turns if self.has(entry) else 0


def test_requests_wait_for_their_entries_and_leave_in_order(tmp_path: Path) -> None:
    async def check() -> None:
        store = Growing()
        engine = make_engine(make_plan(tmp_path), asyncio.get_running_loop(), store=store)
        transport: Any = engine.transport
        engine.driver.begin(1)
        assert (len(transport.sent), bool(engine.unready), engine.unready.count) == (0, True, 2)
        store.more = 3
        while engine.unready:
            await asyncio.sleep(0.001)
        assert [exchange.body for exchange in transport.sent] == [b"entry 0 turn 0 model 0", b"entry 1 turn 0 model 0"]
        while transport.open:
            transport.answer()
        engine.logbook.close()
        assert (engine.in_flight.sent, engine.unready.count) == (10, 2)

    asyncio.run(check())


def test_a_session_has_its_turns_once_its_conversation_is_made(tmp_path: Path) -> None:
    async def check() -> None:
        store = Growing(turns=3)
        engine = make_engine(make_plan(tmp_path), asyncio.get_running_loop(), turns=3, store=store)
        transport: Any = engine.transport
        engine.driver.begin(1)
        assert transport.sent == []
        store.more = 3
        while engine.unready:
            await asyncio.sleep(0.001)
        assert {exchange.owner.turns for exchange in transport.sent} == {3}
        while transport.open or engine.in_flight.open:
            if transport.open:
                transport.answer()
            await asyncio.sleep(0)
        engine.logbook.close()
        assert engine.in_flight.sent == 10

    asyncio.run(check())


def test_new_shapes_are_known_to_whoever_looks_first(tmp_path: Path) -> None:
    async def check() -> None:
        with StoreWriter(tmp_path) as writer:
            add(writer, 0)
            writer.publish()
            store = Store(tmp_path)
            engine = make_engine(make_plan(tmp_path), asyncio.get_running_loop(), store=store)
            for number, path in enumerate(("/b", "/c", "/a"), 1):
                add(writer, number, path)
            writer.publish()
            assert store.turns(1) == 1
            transport: Any = engine.transport
            engine.driver.begin(1)
            assert [exchange.shape.url[-2:] for exchange in transport.sent] == ["/a", "/b"]

    asyncio.run(check())


@pytest.mark.parametrize("complete", [False, True])
def test_a_stop_drops_requests_without_entries(tmp_path: Path, complete: bool) -> None:
    async def check() -> None:
        store = Growing()
        engine = make_engine(make_plan(tmp_path), asyncio.get_running_loop(), store=store)
        engine.driver.begin(1)
        told = list[bool]()
        engine.unready.on_empty = lambda: told.append(bool(engine.unready))
        if complete:
            engine.driver.stop()
            assert told == []
        engine.stop()
        store.more = 3
        await asyncio.sleep(0.01)
        assert (told, engine.in_flight.sent) == ([False], 0)

    asyncio.run(check())


def test_entries_on_the_disk_are_counted_without_the_room_behind_them(tmp_path: Path) -> None:
    assert made(tmp_path) == 0
    with StoreWriter(tmp_path) as writer:
        for number in range(3):
            add(writer, number)
        writer.flush()
        assert made(tmp_path) == 3
        writer.publish()
        assert (tmp_path / "dataset.entries").stat().st_size > 1 << 19
        assert made(tmp_path) == 3
