"""What the next turn repeats of an answer, by the state that its reader keeps."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from aiperf.sdk.descriptor import PluginRef
from aiperf.sdk.endpoint import Reader
from aiperf.sdk.model import Delta, HttpRequest, Message, Turn
from aiperf_testing.journals import Plain, event
from worker_fakes import FakeTransport, Spoken, make_engine, make_plan


class Late(Reader):
    """Numbers the texts, and keeps the last one back until the end."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def feed(self, events: Sequence[bytes], names: Sequence[str | None]) -> Sequence[Delta | None]:
        return [self._one(data) for data in events]

    def _one(self, data: bytes) -> Delta | None:
        delta = Plain().decode(data)
        if delta is None or not delta.text:
            return delta
        self.texts.append(f"{len(self.texts)}{delta.text}")
        return Delta(self.texts[-2]) if len(self.texts) > 1 else None

    def close(self) -> Delta | None:
        return Delta(self.texts[-1]) if self.texts else None

    def replay(self) -> Sequence[Message]:
        return (Message.of({"role": "assistant", "content": "|".join(self.texts)}),)

    def state(self) -> dict[str, Any]:
        return {"seen": len(self.texts)}


class Remembering(Spoken):
    """Sends the state of the answer before, and replayed messages as they are."""

    def encode(self, turn: Turn) -> HttpRequest:
        said = [repr(message.item or message.texts) for message in turn.messages]
        return HttpRequest("/v1/x", f"{turn.state} {' '.join(said)}".encode())

    def reader(self) -> Reader:
        return Late()


class Wandering(Spoken):
    """Sends later turns another way."""

    def encode(self, turn: Turn) -> HttpRequest:
        if not turn.history:
            return HttpRequest("/v1/x", b"")
        return HttpRequest(f"/{{model}}/{turn.state['seen']}", b"", {"X-Seen": "yes"}, method="PUT")

    def reader(self) -> Reader:
        return Late()


class Answering(FakeTransport):
    def answer(self, status: int = 200, error: Any = None) -> None:
        exchange = self.open.pop(0)
        exchange.status = status
        self.engine.sink.chunk(exchange, event(text="x")[6:-2], 1, 2, 0)
        self.engine.sink.done(exchange, error)


def test_the_next_request_has_what_the_reader_repeats(tmp_path: Path) -> None:
    ref = PluginRef("endpoints", "remembering", "test_replayed_answers:Remembering", "aiperf-core", "0")
    engine = make_engine(make_plan(tmp_path, endpoint=ref), asyncio.new_event_loop(), turns=4)
    transport = Answering(engine)
    engine.send_through(transport)  # type: ignore[arg-type]
    session = engine.session(engine.phase, 0, entry=0)
    engine.send(session, 0, -1)
    for turn in range(4):
        transport.answer(status=500 if turn == 1 else 200)
    bodies = [exchange.body.decode() for exchange in transport.sent if exchange.owner is session]
    repeated = str({"role": "assistant", "content": "0x"})
    assert [body.replace(repeated, "REPLAY") for body in bodies[1:]] == [
        "{'seen': 1} ('t0',) REPLAY ('t1',)",
        "{} ('t0',) REPLAY ('t1',) ('t2',)",  # nothing of a failed answer
        "{'seen': 1} ('t0',) REPLAY ('t1',) ('t2',) REPLAY ('t3',)",
    ]


def test_the_next_request_may_go_another_way(tmp_path: Path) -> None:
    ref = PluginRef("endpoints", "wandering", "test_replayed_answers:Wandering", "aiperf-core", "0")
    engine = make_engine(make_plan(tmp_path, endpoint=ref), asyncio.new_event_loop(), turns=2)
    transport = Answering(engine)
    engine.send_through(transport)  # type: ignore[arg-type]
    session = engine.session(engine.phase, 0, entry=0)
    engine.send(session, 0, -1)
    transport.answer()
    first, second = (exchange.shape for exchange in transport.sent if exchange.owner is session)
    assert (first.method, first.url.partition("//")[2].partition("/")[2]) == ("POST", "v1/x")
    assert (second.method, second.url.partition("//")[2].partition("/")[2]) == ("PUT", "m/1")
    assert second.headers["X-Seen"] == "yes" and second.headers["User-Agent"] == first.headers["User-Agent"]
