"""Jobs: one request makes a job, and the same question is asked until it has a result."""

from __future__ import annotations

import msgspec
from aiperf.sdk.endpoint import Answered, Capabilities, Done, Endpoint, Follow, unreadable
from aiperf.sdk.model import Delta, HttpRequest, Turn

POLL_S = 0.1
"""Time between two polls."""


class _Job(msgspec.Struct):
    id: str


class _Result(msgspec.Struct):
    result: str
    file: str | None = None


_read_job = msgspec.json.Decoder(_Job).decode
_read_result = msgspec.json.Decoder(_Result).decode


class Jobs(Endpoint[None]):
    """``POST /jobs`` gives an id; ``GET /jobs/id`` answers 202 until the job is done, and then 200 with its result.

    A file of the result is fetched, and not kept.
    """

    capabilities = Capabilities(path="/jobs", produces_tokens=True, tokenizes_input=True, follows=True)

    def encode(self, turn: Turn) -> HttpRequest:
        return HttpRequest("/jobs", msgspec.json.encode({"model": turn.model, "prompt": turn.text, **turn.extra}))

    def follow(self, answer: Answered) -> Follow | Done:
        if answer.before is None:
            return Follow(HttpRequest(f"/jobs/{_read_job(answer.body).id}", b"", method="GET"), POLL_S, state="polled")
        if answer.status == 202:
            return Follow(answer.before, POLL_S, state="polled")
        file = _read_result(answer.body).file if answer.state == "polled" else None
        if file is None:
            return Done()
        return Follow(HttpRequest(file, b"", method="GET"), keep=True, drain=True, failure="FileError", state="fetched")

    def decode(self, event: bytes) -> Delta | None:
        try:
            return Delta(text=_read_result(event).result)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise unreadable("jobs", event, error) from error
