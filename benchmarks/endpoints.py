"""What endpoint types cost: encoding a turn, and reading an answer of 256 chunks as the reducer does.

usage: endpoints.py [TYPE ...]

Every installed type whose dialect the simulator speaks; the simulator writes the answers.  The figures are CPU time of one call
in µs, the least of several rounds: on a busy machine every other figure is another process's.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec
from aiperf import Endpoint, Media, Message, Turn
from aiperf.registry.registry import Registry
from aiperf_command_simulate.dialect import AskError, Dialect, Opened, Piece, Usage
from aiperf_command_simulate.dialects import Routes, found, pick
from aiperf_command_simulate.faults import Faults
from aiperf_command_simulate.http1 import Request
from aiperf_command_simulate.jobs import Jobs
from aiperf_command_simulate.truth import Record
from aiperf_command_simulate.words import Wording
from aiperf_reducer_columns.reduce.answer import read_answer

CHUNKS = 256
ROUNDS = 100
TOOL = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "The weather at a place at a time, with temperature, wind and rain.",
        "parameters": {"type": "object", "properties": {name: {"type": "string", "description": "One of the usual forms."}
                                                        for name in ("place", "time", "unit", "language")}},
    },
}  # fmt: skip


def least_us(call: Callable[[], Any], repeats: int) -> float:
    """CPU time of one call in µs."""
    best = float("inf")
    for _ in range(ROUNDS):
        began = time.process_time_ns()
        for _ in range(repeats):
            call()
        best = min(best, (time.process_time_ns() - began) / repeats)
    return best / 1000


def turns(can_media: bool, verbatim: bool, *, system: bool) -> dict[str, Turn]:
    """The turns to encode, by name: of 1,000 tokens, with 20 tools, with 1 MB of picture."""
    text = Wording(1).text(0, 1000)
    history = (Message("system", ("Be terse.",)),) if system else ()
    plain = Turn((text,), model="m1", stream=True, max_tokens=100, history=history)
    made = {"1,000 tokens": plain}
    if verbatim:
        made["20 tools"] = msgspec.structs.replace(plain, tools=(TOOL,) * 20)
    if can_media:
        made["1 MB picture"] = msgspec.structs.replace(
            plain, media=(Media("image", f"data:image/png;base64,{'A' * 1_000_000}"),)
        )
    return made


def stream(endpoint: Endpoint[Any], routes: Routes) -> list[bytes] | None:
    """The events of a streamed answer of 256 tokens, a read each; None where the simulator can't say it."""
    turn = Turn(("Hello there",), model="m1", stream=True, max_tokens=CHUNKS)
    sent = endpoint.encode(turn)
    at, variables = routes.at(sent.path.replace("{model}", "m1"))
    request = Request("POST", sent.path, {}, {}, sent.body, True, True, 0, 0, variables)
    dialect = pick(at, request)
    if not isinstance(dialect, Dialect):
        return None
    try:
        ask = dialect.read(request)
    except AskError:
        return None
    frame, wording = dialect.framing("lf", Faults()), Wording(3)
    record = Record(1, 1, sent.path, None, None, 0, 0)
    writer = dialect.writer(Opened(1, 1_800_000_000, "m1", ask, Faults(), frame, record, Jobs(0, 0)))
    usage = Usage(5, CHUNKS)
    reads = [writer.begin(5) + writer.opening(0)]
    for n in range(CHUNKS):
        finish = "length" if n == CHUNKS - 1 else None
        piece = Piece(0, wording.text(n, n + 1), finish=finish, made=n + 1)
        reads.append(writer.event(piece, usage if ask.continuous_usage else None))
    reads.append(writer.closing(usage) + (frame(dialect.done) if dialect.done is not None else b""))
    return [read for read in reads if read]


def measured(endpoint: Endpoint[Any], routes: Routes) -> list[str]:
    """The figures of one type."""
    can, cells = endpoint.capabilities, []
    for kind, turn in turns("image" in can.media_in, can.verbatim, system=can.system_message).items():
        took = least_us(partial(endpoint.encode, turn), 200 if turn.media == () else 20)
        cells.append(f"encode {kind} {took:.1f} µs")
    events = stream(endpoint, routes) if can.streaming else None
    if events is not None:
        reads = [(at + 1, at + 1, 0, body) for at, body in enumerate(events)]
        repeats, framing = endpoint.repeats_envelope, endpoint.framing
        read = partial(read_answer, reads, endpoint.reader, streamed=True, repeats=repeats, framing=framing)
        answer = read()
        assert answer.error is None and len(answer.stamps) == CHUNKS, (answer.error, len(answer.stamps))
        cells.append(f"read {CHUNKS} chunks {least_us(read, 5):.0f} µs")
    return cells


def main() -> int:
    registry, routes = Registry.discover(), Routes(found())
    for name in sys.argv[1:] or registry.names("endpoints"):
        endpoint: Endpoint[Any] = registry.load("endpoints", name)(None)
        try:
            print(f"{name}: {', '.join(measured(endpoint, routes))}")
        except Exception as error:  # noqa: BLE001  # a type that needs options, or another turn
            print(f"{name}: not measured: {error}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
