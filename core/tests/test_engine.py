"""The request's life cycle on a worker, with a transport that answers when told to."""

from __future__ import annotations

import asyncio
import gc
from array import array
from pathlib import Path
from typing import Any

import msgspec
import pytest
from aiperf import journal
from aiperf.engine.worker import Engine
from aiperf.model import ErrorDetails
from aiperf.plan import Secrets
from worker_fakes import FakeTransport, make_engine, make_plan


def rows(directory: Path, kind: int, width: int) -> list[list[int]]:
    found: list[list[int]] = []
    for frame in journal.frames(journal.segment_path(directory, 0, 0)):
        if frame.kind == kind:
            flat = array("q", frame.payload).tolist()
            found += [flat[i : i + width] for i in range(0, len(flat), width)]
    return found


def run_to_end(engine: Engine) -> FakeTransport:
    transport: Any = engine.transport
    engine.driver.begin(1)
    while transport.open:
        transport.answer()
    return transport  # type: ignore[no-any-return]


def test_every_arrival_has_a_row_when_it_starts_and_one_when_it_is_over(tmp_path: Path) -> None:
    async def check() -> None:
        engine = make_engine(make_plan(tmp_path), asyncio.get_running_loop())
        transport = run_to_end(engine)
        engine.logbook.close()
        assert [exchange.body for exchange in transport.sent[:4]] == [b"entry %d turn 0 model 0" % (i % 3) for i in range(4)]
        sent = rows(tmp_path, journal.SENT, len(journal.SENT_FIELDS))
        done = rows(tmp_path, journal.DONE, len(journal.DONE_FIELDS))
        assert [row[1] for row in sent] == list(range(10))
        assert sorted(row[0] for row in done) == list(range(10))
        assert {row[1] for row in done} == {journal.COMPLETED}
        assert engine.completed == engine.sent == 10

    asyncio.run(check())


@pytest.mark.parametrize(("status", "error"), [(500, None), (200, ErrorDetails("gone", type="ConnectionResetError"))])
def test_failures_are_counted_and_keep_their_cause(tmp_path: Path, status: int, error: ErrorDetails | None) -> None:
    async def check() -> None:
        engine = make_engine(make_plan(tmp_path), asyncio.get_running_loop())
        engine.driver.begin(1)
        transport: Any = engine.transport
        transport.answer(status, error)
        engine.driver.stop()
        engine.logbook.close()
        assert (engine.completed, engine.errors) == (0, 1)
        assert rows(tmp_path, journal.DONE, len(journal.DONE_FIELDS))[0][1] == journal.ERROR
        texts = [f for f in journal.frames(journal.segment_path(tmp_path, 0, 0)) if f.kind == journal.TEXT]
        assert [msgspec.msgpack.decode(f.payload) for f in texts] == (
            [] if error is None else [[[0, "error", {"message": "gone", "type": "ConnectionResetError"}]]]
        )

    asyncio.run(check())


def test_what_is_in_flight_when_the_grace_ends_is_aborted_not_failed(tmp_path: Path) -> None:
    async def check() -> None:
        engine = make_engine(make_plan(tmp_path), asyncio.get_running_loop())
        engine.driver.begin(1)
        engine.driver.stop()
        engine.abort_all()
        engine.logbook.close()
        assert engine.errors == 0
        assert [row[1] for row in rows(tmp_path, journal.DONE, len(journal.DONE_FIELDS))] == [journal.ABORTED] * 2

    asyncio.run(check())


def test_a_request_older_than_the_timeout_becomes_an_error(tmp_path: Path) -> None:
    async def check() -> None:
        engine = make_engine(make_plan(tmp_path), asyncio.get_running_loop())
        engine.driver.begin(1)
        first, second = engine.open.values()
        engine.driver.stop()
        engine.sweep(min(first.deadline_ns, second.deadline_ns) - 1)
        assert engine.errors == 0
        engine.sweep(max(first.deadline_ns, second.deadline_ns))
        assert engine.errors == 2
        engine.logbook.close()

    asyncio.run(check())


def test_ids_are_unique_and_the_user_s_headers_win_without_case(tmp_path: Path) -> None:
    async def check() -> None:
        secrets = Secrets({"authorization": "Bearer k", "ACCEPT": "x/y", "x-correlation-id": "mine"})
        engine = make_engine(make_plan(tmp_path), asyncio.get_running_loop(), secrets=secrets)
        transport = run_to_end(engine)
        engine.logbook.close()
        assert len({exchange.request_id for exchange in transport.sent}) == 10
        assert all(len(exchange.request_id) == len(exchange.session_id) == 36 for exchange in transport.sent)
        headers = transport.sent[0].shape.headers
        assert headers["authorization"] == "Bearer k"
        assert "Accept" not in headers
        assert headers["ACCEPT"] == "x/y"
        assert "x-correlation-id" not in headers  # the session's own id stands under this name
        assert "X-Correlation-ID" in transport.sent[0].shape.session_headers

    asyncio.run(check())


def test_requests_leave_no_reference_cycles_behind(tmp_path: Path) -> None:
    async def check() -> None:
        plan = make_plan(tmp_path)
        phase = msgspec.structs.replace(plan.phases[0], request_count=500)
        engine = make_engine(msgspec.structs.replace(plan, phases=(phase,)), asyncio.get_running_loop())
        gc.collect()
        gc.disable()
        try:
            transport = run_to_end(engine)
            transport.sent.clear()
            assert gc.collect() < 50
        finally:
            gc.enable()
        engine.logbook.close()

    asyncio.run(check())
