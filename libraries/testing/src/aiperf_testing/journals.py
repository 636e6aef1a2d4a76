"""Journals of made-up runs with chosen stamps, for tests of readers; they need no worker and no server.

Times are in ns since the run's start; both clocks start at odd values, so that no equality is accidental.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
from aiperf.errors import BadResponse
from aiperf.rundir import journal
from aiperf.rundir.store_writer import StoreWriter
from aiperf.sdk.descriptor import PluginRef
from aiperf.sdk.endpoint import Capabilities, Endpoint
from aiperf.sdk.model import Conversation, Delta, HttpRequest, Turn
from aiperf.sdk.plan import Plan
from aiperf.sdk.transport import STREAMED

from aiperf_testing.plans import sample_plan

CLOCK = journal.RunClock(started_mono_ns=5_000_000_000_007, started_wall_ns=1_700_000_000_000_000_123)

_read = msgspec.json.Decoder(Delta).decode


class Plain(Endpoint):
    """A dialect whose events are deltas as JSON, an ``{"error": text}``, or ``[DONE]``."""

    capabilities = Capabilities(path="/plain", streaming=True, produces_tokens=True, tokenizes_input=True)

    def encode(self, turn: Turn) -> HttpRequest:
        return HttpRequest("/plain", turn.text.encode())

    def decode(self, event: bytes) -> Delta | None:
        if event == b"[DONE]":
            return None
        if event.startswith(b'{"error"'):
            raise BadResponse(msgspec.json.decode(event)["error"], raw=event, code=503, kind="overloaded")
        try:
            return _read(event)
        except msgspec.DecodeError as error:
            raise BadResponse("plain: not JSON", raw=event, unreadable=True) from error


class Words:
    """A tokenizer and its source: a word is a token."""

    name = "words"
    size = 1

    def __init__(self, options: object = None) -> None:
        self.options = options

    def recognises(self, name: str) -> bool:
        return name == self.name

    def open(self, name: str) -> Words:
        return self

    def encode(self, text: str) -> list[int]:
        return [0] * len(text.split())

    def decode(self, ids: Sequence[int]) -> str:
        return " ".join("word" for _ in ids)

    def count(self, text: str) -> int:
        return len(text.split())


def event(**delta: Any) -> bytes:
    """One server-sent event of :class:`Plain`."""
    return b"data: " + msgspec.json.encode(delta) + b"\n\n"


def plan_for(directory: Path, **changes: Any) -> Plan:
    """A streamed run of one burst phase by one worker; *changes* replace fields of the plan."""

    def ref(category: str, value: str) -> PluginRef:
        return PluginRef(category, value.rpartition(":")[2].lower(), f"aiperf_testing.journals:{value}", "aiperf-core", "0")

    plain = {
        "path": "/plain", "streaming": True, "entries": 2, "tokenizer_name": "words", "version": "0.1.0",
        "endpoint": ref("endpoints", "Plain"), "tokenizer": ref("tokenizers", "Words"),
    }  # fmt: skip
    return sample_plan(directory, **{**plain, **changes})


class Recording:
    """Writes a run's directory: plan, data set and segments.

    Rows are collected like in a worker; :meth:`flush` writes them as frames.  *step_ns*: shift of the wall clock for later
    rows.
    """

    def __init__(self, directory: Path, **changes: Any) -> None:
        self.directory = directory
        self.plan = plan_for(directory, **changes)
        self.journal = Path(self.plan.output.journal)
        self.journal.mkdir(parents=True, exist_ok=True)
        self.step_ns = 0
        self._segment: dict[int, int] = {}
        self._frames: dict[int, int] = {}
        self._sent: dict[int, list[int]] = {}
        self._chunks: dict[int, list[int]] = {}
        self._bodies: dict[int, list[bytes]] = {}
        self._done: dict[int, list[int]] = {}
        self._texts: dict[int, list[tuple[int, str, Any]]] = {}
        self.data_set(
            Conversation("first", (Turn(("one two three",), max_tokens=4),)), Conversation("second", (Turn(("one",)),))
        )
        journal.save_run(self.journal, self.plan, CLOCK)

    def data_set(self, *conversations: Conversation) -> None:
        endpoint, tokens = Plain(), Words()
        with StoreWriter(self.journal) as store:
            for conversation in conversations:
                requests = [[endpoint.encode(turn)] for turn in conversation.turns]
                store.add(conversation, requests, [tokens.count(turn.text) for turn in conversation.turns])

    def sent(
        self, request: int, started_ns: int, *, n: int | None = None, due_ns: int | None = None, phase: int = 0,
        session: int | None = None, turn: int = 0, entry: int = 0, shard: int = 0,
        held_ns: int = 0, after: int = -1, lane: int = -1, held_by: int = -1,
    ) -> None:  # fmt: skip
        n = request if n is None else n
        due = -1 if due_ns is None else due_ns + CLOCK.started_mono_ns
        started = started_ns + CLOCK.started_mono_ns
        of = phase, n if session is None else session, turn, entry
        row = (request, n, *of, 0, 0, due, started, held_ns, after, lane, held_by)
        self._sent.setdefault(shard, []).extend(row)

    def read(
        self,
        request: int,
        at_ns: int,
        body: bytes,
        *,
        late_ns: int = 1_000,
        hidden: int = 0,
        stamped: bool = True,
        shard: int = 0,
    ) -> None:
        """Bytes that the kernel received at *at_ns* and the worker read *late_ns* later."""
        kernel = at_ns + CLOCK.started_wall_ns + self.step_ns if stamped else 0
        row = (request, kernel, at_ns + late_ns + CLOCK.started_mono_ns, len(body), hidden)
        self._chunks.setdefault(shard, []).extend(row)
        self._bodies.setdefault(shard, []).append(body)

    def text(self, request: int, kind: str, value: Any, *, shard: int = 0) -> None:
        self._texts.setdefault(shard, []).append((request, kind, value))

    def done(
        self, request: int, ended_ns: int, *, outcome: int = journal.COMPLETED, status: int = 200,
        flags: int = STREAMED, sent_ns: int | None = None, ack_ns: int | None = None, shard: int = 0,
    ) -> None:  # fmt: skip
        zero = CLOCK.started_mono_ns
        row = (
            request,
            outcome,
            status,
            flags,
            0,
            0 if sent_ns is None else sent_ns + zero,
            0,
            0 if ack_ns is None else ack_ns + zero,
            ended_ns + zero,
            10,
            20,
            0,
            0,
            0,
        )
        self._done.setdefault(shard, []).extend(row)

    def answered(self, request: int, started_ns: int, *pieces: tuple[int, bytes], shard: int = 0, **sent: Any) -> None:
        """A whole request: sent at *started_ns*, each of *pieces* read at its time, ended with the last one."""
        self.sent(request, started_ns, shard=shard, **sent)
        for at_ns, body in pieces:
            self.read(request, at_ns, body, shard=shard)
        self.done(request, max([started_ns, *(at for at, _ in pieces)]) + 2_000, shard=shard)

    def flush(self, at_ns: int, *, shard: int = 0) -> None:
        """Write the collected rows as frames, closed at *at_ns*."""
        chunks, bodies = self._chunks.pop(shard, []), self._bodies.pop(shard, [])
        sent, done, texts = self._sent.pop(shard, []), self._done.pop(shard, []), self._texts.pop(shard, [])
        if sent:
            self.frame(journal.SENT, array("q", sent).tobytes(), at_ns, len(sent) // len(journal.SENT_FIELDS), shard=shard)
        if chunks:
            rows = array("q", chunks).tobytes()
            self.frame(journal.CHUNKS, b"".join((rows, *bodies)), at_ns, len(bodies), shard=shard)
        if texts:
            self.frame(journal.TEXT, msgspec.msgpack.encode(texts), at_ns, len(texts), shard=shard)
        if done:
            self.frame(journal.DONE, array("q", done).tobytes(), at_ns, len(done) // len(journal.DONE_FIELDS), shard=shard)

    def event(self, kind: int, value: dict[str, Any], at_ns: int, *, shard: int = 0) -> None:
        """A PHASE or LOOP frame."""
        self.frame(kind, msgspec.msgpack.encode(value), at_ns, shard=shard)

    def phase(self, event: str, at_ns: int, *, phase: int = 0, shard: int = 0, **more: object) -> None:
        value = {"phase": phase, "event": event, "at_ns": at_ns + CLOCK.started_mono_ns, **more}
        self.event(journal.PHASE, value, at_ns, shard=shard)

    def frame(self, kind: int, payload: bytes, at_ns: int, count: int = 0, *, shard: int = 0) -> None:
        wall, number = at_ns + CLOCK.started_wall_ns + self.step_ns, self._frames.get(shard, 0)
        self._frames[shard] = number + 1
        with self.path(shard).open("ab") as file:
            file.write(journal.pack(kind, payload, at_ns + CLOCK.started_mono_ns, wall, count, number))

    def restart(self, *, shard: int = 0) -> None:
        """Number the frames from 0 on, as another worker does."""
        self._frames[shard] = 0

    def skip_frame(self, *, shard: int = 0) -> None:
        """Number the next frame as if one before it were lost."""
        self._frames[shard] = self._frames.get(shard, 0) + 1

    def ended(self, **changes: Any) -> None:
        """Record the end of the run; *changes* replace fields of the record."""
        requests = dict.fromkeys(range(self.plan.run.workers), 0)
        end = journal.RunEnd(**{"requests": requests, **changes})
        journal.save_run(self.journal, self.plan, CLOCK, end)

    def roll(self, *, shard: int = 0) -> None:
        """Begin a new segment."""
        self._segment[shard] = self._segment.get(shard, 0) + 1
        self.path(shard).touch()

    def path(self, shard: int = 0) -> Path:
        """The current segment."""
        return journal.segment_path(self.journal, shard, self._segment.get(shard, 0))
