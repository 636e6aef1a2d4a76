"""Finished requests as the segments have them, with the bodies that were sent."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec import Struct

from aiperf.rundir import journal
from aiperf.rundir.forks import ForkedTurns
from aiperf.rundir.shard_reader import ShardReader, is_merged, last_is_hidden
from aiperf.rundir.store import Store
from aiperf.sdk.plan import RunClock


class Bodies:
    """Bodies of requests, where the journal has the new part of later turns.

    Of each stream that goes on it keeps one, and those from which further streams fork off.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._store: Store | None = None
        self._latest: dict[tuple[int, int, int], tuple[int, bytes]] = {}  # by phase, session and first turn of the stream
        self._forked = ForkedTurns[bytes]()

    def complete(self, sent: dict[str, int], request: dict[str, Any]) -> None:
        """Put the whole body into a TEXT entry ``request``, or take it out where a part of it is lost.

        The requests of a stream come one after the other.
        """
        whole = self._whole(sent, request["body"])
        if whole is None and request["body"] is not None:
            del request["body"]
        else:
            request["body"] = whole

    def _whole(self, sent: dict[str, int], body: bytes | dict[str, Any] | None) -> bytes | None:
        """The body of which the journal has *body*; None where the data set has it, or where a part of it is lost."""
        place = sent["phase"], sent["session"], sent["entry"], sent["turn"]
        if not isinstance(body, dict):
            if self._store is not None:
                self._forked.take(self._store, *place)
            return body
        store = self._store = self._store or Store(self._directory)
        stream = *place[:2], store.span(*place[2:]).start
        number, before = self._forked.take(store, *place) or self._latest.pop(stream, (-1, b""))
        if body["of"] < 0:
            number, before = body["of"], store.body(sent["entry"], 0, sent["model"])
        if number != body["of"]:
            return None
        own = store.body(sent["entry"], sent["turn"], sent["model"])[slice(*body["own"])]
        whole = b"".join((before[: body["keep"]], body["new"], own, before[len(before) - body["end"] :]))
        if not body["last"]:
            self._latest[stream] = sent["request"], whole
        self._forked.keep(store, *place, sent["request"], whole)
        return whole


class Observation(Struct):
    """A finished request.

    sent, done: SENT_FIELDS and DONE_FIELDS of :mod:`aiperf.rundir.journal` by name.  texts: its TEXT entries by kind;
    ``request`` has the whole body, None where the data set has it, and no body where a part of it is lost.  reads: the instant
    of each (monotonic ns; the kernel's receive stamp where there is one) and its body bytes.  merged_since: of a read of merged
    TCP segments, when the socket was last seen empty before it (monotonic ns), else None.  all_merged: of such a read, whether
    its last event may have come earlier, too.
    """

    sent: dict[str, int]
    done: dict[str, int]
    texts: dict[str, Any]
    reads: list[tuple[int, bytes]]
    merged_since: list[int | None] = []
    all_merged: list[bool] = []


def observations(directory: Path, shard: int, clock: RunClock | None = None) -> Iterator[Observation]:
    """Every finished request of the shard, in the order in which they ended, with memory for those in flight alone.

    *directory* is the journal's.  *clock*: of the run, for instants on its monotonic clock where the shard was at a site.
    """
    ahead_ns = 0 if clock is None else clock.ahead_of(shard)
    reader, bodies = ShardReader(directory, shard, ahead_ns=ahead_ns), Bodies(directory)
    reader.skip_dropped()
    for request in reader.finished():
        sent = dict(zip(journal.SENT_FIELDS, request.sent, strict=True))
        if (asked := request.texts.get("request")) is not None:
            bodies.complete(sent, asked)
        done = dict(zip(journal.DONE_FIELDS, request.done, strict=True))
        reads = request.reads
        merged = [is_merged(read[2]) for read in reads]
        empty = request.empty_before(reads, 0) if any(merged) else [None] * len(reads)
        since = [before if hidden else None for before, hidden in zip(empty, merged, strict=True)]
        late = [hidden and last_is_hidden(read[2]) for hidden, read in zip(merged, reads, strict=True)]
        one = Observation(sent, done, request.texts, [(read[0], read[3]) for read in reads], since, late)
        moved_ns = 0 if clock is None else clock.moved_ns(shard, sent["started_ns"])
        yield _earlier(one, moved_ns) if moved_ns else one


def _earlier(one: Observation, by_ns: int) -> Observation:
    """The request with earlier instants."""

    def shifted(row: dict[str, int], names: tuple[str, ...]) -> dict[str, int]:
        return row | {name: row[name] - by_ns for name in names if row[name] > 0}

    return Observation(
        shifted(one.sent, ("due_ns", "started_ns")),
        shifted(one.done, ("connected_ns", "sent_ns", "sent_end_ns", "ack_ns", "ended_ns")),
        one.texts, [(at_ns - by_ns, body) for at_ns, body in one.reads],
        [None if at_ns is None else at_ns - by_ns for at_ns in one.merged_since], one.all_merged,
    )  # fmt: skip
