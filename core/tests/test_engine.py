"""The request's life cycle on a worker, with a transport that answers when told to."""

from __future__ import annotations

import asyncio
import gc
import itertools
import time
from array import array
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest
from aiperf.rundir import journal
from aiperf.sdk.driver import Session
from aiperf.sdk.endpoint import Endpoint
from aiperf.sdk.model import ErrorDetails, HttpRequest, Turn
from aiperf.sdk.plan import PhasePlan, Secrets
from aiperf.sdk.transport import EXHAUSTED, MESSAGES, REFUSED, STREAMED, Shape
from aiperf.worker.requests import Requests
from aiperf_testing.plans import sample_ref
from worker_fakes import ECHOED, SPOKEN, FakeTransport, make_engine, make_plan


def rows(directory: Path, kind: int, width: int) -> list[list[int]]:
    table: list[list[int]] = []
    for frame in journal.frames(journal.segment_path(directory, 0, 0)):
        if frame.kind == kind:
            flat = array("q", frame.payload).tolist()
            table += [flat[i : i + width] for i in range(0, len(flat), width)]
    return table


def run_to_end(engine: Requests) -> FakeTransport:
    transport: Any = engine.transport
    engine.driver.begin(1)
    while transport.open:
        transport.answer()
    return transport  # type: ignore[no-any-return]


def reach(engine: Requests, now_ns: int) -> tuple[int, int, bool, float]:
    return engine.in_flight.connecting.reach(engine.in_flight.completed + engine.in_flight.errors, now_ns)


def test_every_arrival_has_a_sent_row_and_a_done_row(tmp_path: Path) -> None:
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
        assert engine.in_flight.completed == engine.in_flight.sent == 10

    asyncio.run(check())


def test_a_request_names_the_one_whose_slot_it_took(tmp_path: Path) -> None:
    async def check() -> None:
        engine = make_engine(make_plan(tmp_path), asyncio.get_running_loop())
        run_to_end(engine)
        engine.logbook.close()
        wave = engine.phase.concurrency or 0
        sent = rows(tmp_path, journal.SENT, len(journal.SENT_FIELDS))
        assert [row[11] for row in sent] == [-1] * wave + list(range(10 - wave))

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
        assert (engine.in_flight.completed, engine.in_flight.errors) == (0, 1)
        assert rows(tmp_path, journal.DONE, len(journal.DONE_FIELDS))[0][1] == journal.ERROR
        texts = [f for f in journal.frames(journal.segment_path(tmp_path, 0, 0)) if f.kind == journal.TEXT]
        assert [msgspec.msgpack.decode(f.payload) for f in texts] == (
            [] if error is None else [[[0, "error", {"message": "gone", "type": "ConnectionResetError"}]]]
        )

    asyncio.run(check())


class Clock:
    """A loop whose time stands still until the test moves it."""

    def __init__(self) -> None:
        self.now = 100.0
        self.later: list[tuple[float, Any, tuple[Any, ...]]] = []

    def time(self) -> float:
        return self.now

    def call_later(self, delay_s: float, call: Any, *arguments: Any) -> None:
        self.later.append((self.now + delay_s, call, arguments))

    def wake(self) -> float:
        """Go to the end of the pause; gives its length."""
        before, self.now = self.now, min(at for at, _, _ in self.later)
        due, self.later = self.later, []
        for _, call, arguments in due:
            call(*arguments)
        return round(self.now - before, 6)


def test_a_message_is_an_event_for_a_prefill_slot_and_for_the_next_turn(tmp_path: Path) -> None:
    async def check() -> None:
        engine = make_engine(make_plan(tmp_path, endpoint=ECHOED, streaming=True), asyncio.get_running_loop(), turns=2)
        transport, opened = cast(Any, engine.transport), list[Session]()

        def first_token(session: Session) -> None:
            session.prefilling = False
            opened.append(session)

        engine.driver.first_token = first_token  # type: ignore[method-assign]
        session = engine.session(engine.phase, 0)
        session.prefilling = True
        engine.send(session, 0, -1)
        (exchange,) = transport.open
        engine.sink.message(exchange, b"", 0, 2)
        assert opened == [], "an empty message shows nothing"
        engine.sink.message(exchange, b"data: Hi", 0, 3)
        assert opened == [session]
        engine.sink.message(exchange, b"\n\nthere", 0, 4)
        engine.sink.trailers(exchange, [("status", "0")])
        exchange.status = 200
        transport.open.clear()
        engine.sink.done(exchange, None)
        assert exchange.flags == MESSAGES | STREAMED
        assert session.script.answers[-1][-1].texts == ("data: Hi\n\nthere",)
        engine.logbook.close()
        chunks = [frame for frame in journal.frames(journal.segment_path(tmp_path, 0, 0)) if frame.kind == journal.CHUNKS]
        assert [array("q", frame.payload[: frame.count * 40]).tolist()[4::5] for frame in chunks] == [[journal.MESSAGE] * 3]
        texts = [frame for frame in journal.frames(journal.segment_path(tmp_path, 0, 0)) if frame.kind == journal.TEXT]
        assert [0, "trailers", [["status", "0"]]] in msgspec.msgpack.decode(texts[0].payload)

    asyncio.run(check())


@pytest.mark.parametrize("cause", [REFUSED, EXHAUSTED])
def test_slots_without_a_connection_pause_longer_with_each_wave(tmp_path: Path, cause: str) -> None:
    clock: Any = Clock()
    phase = PhasePlan("profiling", "profiling", 0, "burst", request_count=40, concurrency=2, entries=3)
    engine = make_engine(make_plan(tmp_path, phases=(phase,)), clock)
    transport: Any = engine.transport
    engine.driver.begin(1)
    pauses = []
    for wave in range(1, 10):
        assert len(transport.sent) == 2 * wave, "both slots try again together"
        for _ in range(2):
            transport.answer(0, ErrorDetails("nobody", type="ConnectionRefusedError", cause=cause))
        assert not transport.open
        pauses.append(clock.wake())
    assert pauses == [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.0, 1.0]
    refusals = 18 if cause == REFUSED else 0
    assert (engine.in_flight.errors, reach(engine, 1)[:3]) == (18, (refusals, 0, False))
    assert engine.in_flight.connecting.refused == ("nobody" if cause == REFUSED else None)
    transport.answer()
    transport.answer(0, ErrorDetails("nobody", type="ConnectionRefusedError", cause=cause))
    assert clock.wake() == 0.01, "an answer ends the series"
    assert reach(engine, 1)[1] == 1
    engine.driver.stop()
    engine.logbook.close()


def test_a_server_with_a_request_on_its_way_is_reached(tmp_path: Path) -> None:
    engine = make_engine(make_plan(tmp_path), Clock())  # type: ignore[arg-type]
    transport: Any = engine.transport
    engine.driver.begin(1)
    transport.answer(0, ErrorDetails("nobody", type="ConnectionRefusedError", cause=REFUSED))
    assert engine.in_flight.connecting.refused == "nobody"
    oldest = next(iter(engine.in_flight.open.values()))
    assert reach(engine, oldest.started_ns + 2_500_000_000) == (1, 0, False, 2.5)
    oldest.connect_ns = 1  # TCP is open, and the handshake of TLS is not over
    assert engine.in_flight.connecting.refused == "TCP connects, but nothing answers TLS: the server may speak plain http"
    oldest.connected_ns = 2
    assert engine.in_flight.connecting.refused == "nobody"
    transport.open[0].sent_ns = 1
    assert engine.in_flight.connecting.refused is None
    assert reach(engine, oldest.started_ns + 2_500_000_000) == (1, 0, True, 0.0)
    engine.driver.stop()
    engine.logbook.close()


def test_refused_arrivals_with_due_times_hold_nothing_up(tmp_path: Path) -> None:
    clock: Any = Clock()
    phase = PhasePlan("profiling", "profiling", 0, "request_rate", request_count=40, concurrency=2, entries=3, rate=5.0)
    engine = make_engine(make_plan(tmp_path, phases=(phase,)), clock)
    transport: Any = engine.transport
    engine.driver.begin(1)
    for _ in range(5):
        transport.answer(0, ErrorDetails("nobody", type="ConnectionRefusedError", cause=REFUSED))
    assert (len(transport.sent), clock.later) == (7, [])
    engine.driver.stop()
    engine.logbook.close()


def test_requests_in_flight_after_the_grace_are_aborted_not_failed(tmp_path: Path) -> None:
    async def check() -> None:
        engine = make_engine(make_plan(tmp_path), asyncio.get_running_loop())
        engine.driver.begin(1)
        engine.driver.stop()
        engine.abort_all()
        engine.logbook.close()
        assert engine.in_flight.errors == 0
        assert [row[1] for row in rows(tmp_path, journal.DONE, len(journal.DONE_FIELDS))] == [journal.ABORTED] * 2

    asyncio.run(check())


def test_a_request_older_than_the_timeout_becomes_an_error(tmp_path: Path) -> None:
    async def check() -> None:
        engine = make_engine(make_plan(tmp_path), asyncio.get_running_loop())
        engine.driver.begin(1)
        first, second = engine.in_flight.open.values()
        engine.driver.stop()
        engine.early_ends.sweep(min(first.deadline_ns, second.deadline_ns) - 1)
        assert engine.in_flight.errors == 0
        engine.early_ends.sweep(max(first.deadline_ns, second.deadline_ns))
        assert engine.in_flight.errors == 2
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
        requests = 5000  # what pytest and threads leave behind meanwhile is little beside a cycle in every tenth request
        phase = msgspec.structs.replace(plan.load.phases[0], request_count=requests)
        engine = make_engine(plan.replacing(phases=(phase,)), asyncio.get_running_loop())
        for _ in range(3):  # finalizers may leave more
            gc.collect()
        gc.disable()
        try:
            transport = run_to_end(engine)
            transport.sent.clear()
            assert gc.collect() < requests / 10
        finally:
            gc.enable()
        engine.logbook.close()

    asyncio.run(check())


def test_headers_that_a_hook_changes_are_not_kept(tmp_path: Path) -> None:
    numbers = itertools.count()

    def numbered(request: HttpRequest, turn: Turn) -> HttpRequest:
        return HttpRequest(request.path, request.body, {"X-Number": str(next(numbers))})

    async def check() -> None:
        plan = make_plan(tmp_path, endpoint=SPOKEN)
        phase = msgspec.structs.replace(plan.load.phases[0], request_count=500)
        engine = make_engine(plan.replacing(phases=(phase,)), asyncio.get_running_loop(), prepare=numbered)
        transport = run_to_end(engine)
        assert len({exchange.shape.headers["X-Number"] for exchange in transport.sent}) == 500
        transport.sent.clear()
        gc.collect()
        assert sum(isinstance(thing, Shape) for thing in gc.get_objects()) < 10
        engine.logbook.close()
        assert engine.contents.encode_ns > 0  # what hooks take is told in the verdict
        assert engine.logbook.write_ns > 0

    asyncio.run(check())


class Mistyped(Endpoint):
    """Reads every event as a str, which is no Delta."""

    def encode(self, turn: Turn) -> HttpRequest:
        return HttpRequest("/v1/x", b"{}")

    def decode(self, event: bytes) -> Any:
        return event.decode()


def test_a_wrong_type_from_decode_leaves_the_next_turn_going(tmp_path: Path) -> None:
    async def check() -> None:
        ref = sample_ref("endpoints", f"{__name__}:Mistyped")
        engine = make_engine(make_plan(tmp_path, endpoint=ref), asyncio.get_running_loop(), turns=2)
        run_to_end(engine)
        assert engine.in_flight.completed == 10

    asyncio.run(check())


@pytest.mark.parametrize("stamped", [True, False])
def test_a_turn_is_due_from_the_stamp_of_the_answer_not_from_its_handling(tmp_path: Path, stamped: bool) -> None:
    async def check() -> None:
        engine = make_engine(make_plan(tmp_path), asyncio.get_running_loop(), turns=2)
        engine.driver.begin(1)
        exchange: Any = engine.transport.open.pop(0)  # type: ignore[attr-defined]
        wall_ns, read_ns = time.time_ns(), time.monotonic_ns()
        exchange.status = 200
        engine.sink.chunk(exchange, b"a", wall_ns - 10, read_ns, 0)
        engine.sink.chunk(exchange, b"b", wall_ns if stamped else 0, read_ns, 0)
        time.sleep(0.005)
        engine.sink.done(exchange, None)
        assert abs(exchange.owner.answered_ns - read_ns) < (1_000_000 if stamped else 1)

    asyncio.run(check())


def test_a_turn_behind_a_failed_request_is_due_from_its_end(tmp_path: Path) -> None:
    async def check() -> None:
        engine = make_engine(make_plan(tmp_path), asyncio.get_running_loop(), turns=2)
        engine.driver.begin(1)
        exchange: Any = engine.transport.open[0]  # type: ignore[attr-defined]
        engine.sink.chunk(exchange, b"a", 0, time.monotonic_ns(), 0)
        before_ns = time.monotonic_ns()
        engine.transport.abort(exchange, ErrorDetails("gone"))
        assert exchange.owner.answered_ns >= before_ns

    asyncio.run(check())
