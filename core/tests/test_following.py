"""Several exchanges for one request: which answer is the request's, and what is kept of the others."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from aiperf.rundir.observations import Observation, observations
from aiperf.sdk.descriptor import PluginRef
from aiperf.sdk.exchanges import DRAINED_START, Answered, Done, Drained, Follow
from aiperf.sdk.model import Delta, ErrorDetails, HttpRequest
from aiperf.sdk.transport import STREAMED, Exchange
from aiperf.worker.draining import DrainingSink
from aiperf.worker.following import Following
from worker_fakes import FakeStore, Spoken, make_engine, make_plan

FILM = b"film" * 5000


class Filming(Spoken):
    """A job, one poll, and a film behind the answer of the poll."""

    def follow(self, answer: Answered) -> Follow | Done:
        if answer.number == 0:
            return Follow(HttpRequest("/jobs/1", b"", method="GET"), 1e-3, state="asked")
        if answer.number == 1:
            assert answer.state == "asked" and answer.url.endswith("/jobs/1")
            request = HttpRequest(f"{answer.url}/film", b"", method="GET")
            return Follow(request, keep=True, drain=True, failure="DownloadError", state=answer.body)
        assert (answer.body, answer.state) == (FILM[:DRAINED_START], b"done")
        return Done()

    def drained(self, start: bytes, received: int) -> Drained:
        return Drained(Delta(items=1))


FILMING = PluginRef("endpoints", "filming", "test_following:Filming", "aiperf-core", "0")


class Open:
    """A transport whose exchanges stay open until the test ends them."""

    def __init__(self) -> None:
        self.sent: list[Exchange] = []

    def send(self, exchange: Exchange) -> None:
        self.sent.append(exchange)


def answer(sink: Any, exchange: Exchange, *reads: bytes, status: int = 200, error: ErrorDetails | None = None) -> None:
    exchange.status, exchange.ack_ns = status, 5
    for at, body in enumerate(reads):
        exchange.bytes_received += len(body)
        sink.chunk(exchange, body, 1000 + at, 10 + at, 0)
    sink.done(exchange, error)


def played(tmp_path: Path, film: Callable[[Following, Exchange], None]) -> Observation:
    """The request of a job whose film is answered by *film*."""

    async def play() -> None:
        loop = asyncio.get_running_loop()
        plan = make_plan(tmp_path, endpoint=FILMING)
        engine = make_engine(plan, loop)
        following, transport = Following(engine, loop), Open()
        following.transport = transport  # type: ignore[assignment]
        engine.send_through(following)
        engine.send(engine.session(engine.phase, 0, 0), 0, -1)
        (first,) = transport.sent
        answer(following, first, b"job")
        while len(transport.sent) < 2:
            await asyncio.sleep(0.001)
        transport.sent[1].flags |= STREAMED
        answer(following, transport.sent[1], b"do", b"ne")
        assert transport.sent[2].shape.url.endswith("/jobs/1/film") and transport.sent[2].shape.drain
        film(following, transport.sent[2])
        assert sum(exchange.shape.method == "GET" for exchange in transport.sent) == 2
        engine.logbook.close()

    asyncio.run(play())
    *_, observation = observations(tmp_path, 0)
    return observation


def test_a_kept_answer_is_the_request_s(tmp_path: Path) -> None:
    def film(sink: Following, exchange: Exchange) -> None:
        answer(sink, exchange, *(FILM[at : at + 100] for at in range(0, len(FILM), 100)))

    request = played(tmp_path, film)
    assert [body for _, body in request.reads] == [b"do", b"ne", b""]
    assert request.done["status"] == 200 and request.done["flags"] & STREAMED, "those of the answer that was kept"
    assert request.done["bytes_received"] == 3 + 4 + len(FILM)
    assert [leg[3:] for leg in request.texts["legs"]] == [[200, False], [200, True], [200, False]]
    assert "drained" not in request.texts, "the answer itself is whole"


def test_the_latency_ends_with_the_last_exchange(tmp_path: Path) -> None:
    request = played(tmp_path, lambda sink, exchange: answer(sink, exchange, FILM, b"end"))
    assert request.reads[-1][0] > request.reads[-2][0] - 1
    assert request.texts["legs"][-1][2] == 11, "the last read of the film"


def test_a_refused_download_has_the_error_of_its_type(tmp_path: Path) -> None:
    request = played(tmp_path, lambda sink, exchange: answer(sink, exchange, b"no such film", status=404))
    error = request.texts["error"]
    assert (error["type"], error["code"]) == ("DownloadError", 404)
    assert error["message"] == "HTTP 404: no such film"
    assert request.done["status"] == 404


def test_a_download_cut_off_has_the_error_of_its_type(tmp_path: Path) -> None:
    cut = ErrorDetails("the server closed the connection", type="ConnectionResetError")
    request = played(tmp_path, lambda sink, exchange: answer(sink, exchange, FILM[:9000], error=cut))
    assert (request.texts["error"]["type"], request.texts["error"]["message"]) == ("DownloadError", cut.message)
    assert request.done["bytes_received"] == 7 + 9000
    assert sum(len(body) for _, body in request.reads) == 4, "none of the film"


@pytest.mark.parametrize("sizes", [(20,), (10, 5000, 7000), (4096,), (4096, 1)])
def test_a_drained_answer_leaves_its_start_and_its_number_of_bytes(tmp_path: Path, sizes: tuple[int, ...]) -> None:
    loop = asyncio.new_event_loop()
    try:
        plan = make_plan(tmp_path)
        store: Any = FakeStore()
        store.shapes = [type(store.shapes[0])("/v1/x", drain=True)]
        engine, transport = make_engine(plan, loop, store=store, kind=DrainingSink), Open()
        engine.send_through(transport)  # type: ignore[arg-type]
        engine.send(engine.session(engine.phase, 0, 0), 0, -1)
        answer(engine.sink, transport.sent[0], *(bytes(size) for size in sizes))
        engine.logbook.close()
    finally:
        loop.close()
    *_, request = observations(tmp_path, 0)
    assert request.texts["drained"] == request.done["bytes_received"] == sum(sizes)
    assert sum(len(body) for _, body in request.reads) == min(sum(sizes), DRAINED_START)
    assert len(request.reads) <= 3
