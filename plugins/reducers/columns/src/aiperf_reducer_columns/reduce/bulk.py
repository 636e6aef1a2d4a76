"""Rows of good answers, many at a time.

Most requests end well, with an answer of a usual form.  Reading it takes a few calls, and none per chunk; instants and numbers
of many such requests are then computed by columns.  All others are left to
:meth:`aiperf_reducer_columns.reduce.rows.RowMaker.finish_request`, which makes the same rows one at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, groupby, repeat
from typing import Any, NamedTuple

import numpy as np
from aiperf.parts import journal
from aiperf.parts.journal import Store
from aiperf.parts.segments import DRAINED_BYTES, HIDDEN_MOST, READ_BYTES, JournalRequest
from aiperf.sdk.columns import ABSENT, NUMBERS, Floats, Ints, JournalColumns
from aiperf.sdk.endpoint import DecodingReader, Endpoint, Reader
from aiperf.sdk.framing import ServerSentEvents
from aiperf.sdk.model import HIDDEN, Delta
from aiperf.sdk.plan import PhasePlan
from aiperf.sdk.transport import END_MARKER, HIDDEN_BITS, LAST_HIDDEN, RECONNECTED, RESENT, REUSED, STREAMED
from msgspec.structs import astuple

from aiperf_reducer_columns.reduce.answer import ITEM, MARKED, REASONING, SHARED, TEXT, TOOL
from aiperf_reducer_columns.reduce.batches import Rows
from aiperf_reducer_columns.reduce.envelopes import read_envelopes
from aiperf_reducer_columns.reduce.usage import Usage, counted, merged_usage, plain_counts

_BETWEEN = b"\n\ndata: "
_SAME = JournalColumns.__struct_fields__
_REACHED = ("connected_ns", "sent_ns", "sent_end_ns")
_MOST_ENDS = 65_536
"""Requests that nothing has followed yet, of which the ends are remembered: more than are in flight."""
_MIXED = 8
"""Where more than a part of this size must be made one at a time, all are."""


class Content(NamedTuple):
    """What an answer says.

    kinds: of each event, what content it has; sizes: bytes of each, less those of _BETWEEN.  events: those of a stream
    up to the last that says more than usage, 0 otherwise.  finish: the column.  usage: the first columns; others are absent.
    reason: why it ended.
    """

    output_tokens: float
    reasoning_tokens: float
    kinds: bytes
    sizes: list[int]
    events: int
    finish: float
    usage: tuple[float | None, ...]
    reason: str | None


class Ends:
    """When requests of closed loops ended, for the turnaround of the request that takes the slot.

    closed: of each phase, whether its requests leave behind free slots.
    """

    def __init__(self, phases: Sequence[PhasePlan]) -> None:
        self.closed = np.array([not phase.paced for phase in phases])
        self._ends: dict[tuple[int, int], float] = {}  # by shard and request, of answers that nothing has followed yet

    def add(self, shard: int, requests: Sequence[int], at_ns: Sequence[float]) -> None:
        self._ends.update(zip(zip(repeat(shard), requests), at_ns, strict=False))
        while len(self._ends) > _MOST_ENDS:
            del self._ends[next(iter(self._ends))]

    def take(self, shard: int, requests: Sequence[int]) -> list[float]:
        """The ends; ABSENT where none is known.  Only one request follows each."""
        return list(map(self._ends.pop, zip(repeat(shard), requests), repeat(ABSENT)))


class _Group:
    """The journal's rows of some requests by column.  Those of reads stand one request after the other."""

    def __init__(self, requests: Sequence[JournalRequest]) -> None:
        rows = [b"".join(request.read_rows) for request in requests]
        self.sent = _columns(journal.SENT_FIELDS, [request.sent_row for request in requests])
        self.done = _columns(journal.DONE_FIELDS, [request.done_row for request in requests])
        self.stamps, self.read_at, hidden, self.sizes = np.frombuffer(b"".join(rows), np.int64).reshape(-1, 4).T
        self.hidden = np.where(hidden < 0, hidden, hidden & HIDDEN_MOST)
        self._ages = np.maximum(hidden, 0) >> HIDDEN_BITS
        self.reads = np.array(list(map(len, rows))) // READ_BYTES
        self.ends = np.cumsum(self.reads)
        self.begins = self.ends - self.reads

    def usual(self) -> tuple[list[bool], list[int], list[bool]]:
        """For each request: whether it ended well, with reads that are neither messages nor of a shared connection, and whose
        stamps never go back; its flags; whether it has merged reads."""
        usual = (self.done["outcome"] == journal.COMPLETED) & (self.done["status"] // 100 == 2) & (self.reads > 0)
        merged = np.zeros(len(usual), dtype=bool)
        owners = np.repeat(np.arange(len(self.reads)), self.reads)
        usual[owners[1:][(self.stamps[1:] < self.stamps[:-1]) & (owners[1:] == owners[:-1])]] = False
        usual[owners[(self.hidden < 0) | (self.hidden >= LAST_HIDDEN)]] = False
        merged[owners[self.hidden > 0]] = True
        return usual.tolist(), self.done["flags"].tolist(), merged.tolist()

    def empty_before(self, zero_ns: int) -> Ints:
        """The instants of :meth:`JournalRequest.empty_before`, of all reads; none of these requests has stamps that go back."""
        first, started = self.stamps[self.begins], self.sent["started_ns"] - zero_ns
        sent, ack = self.done["sent_ns"] - zero_ns, self.done["ack_ns"] - zero_ns
        instants = np.stack([started, sent, np.where(ack < self.read_at[self.begins], ack, started)])
        known = instants <= first
        empty = np.concatenate(([0], self.read_at[:-1]))
        before = np.concatenate(([0], self.stamps[:-1]))
        drained = np.concatenate(([0], self.sizes[:-1])) < DRAINED_BYTES
        empty = np.where(drained & (empty <= self.stamps), empty, before)
        empty[self.begins] = np.where(known.any(axis=0), np.where(known, instants, instants.min()).max(axis=0), started)
        seen = self.read_at - self._ages  # by the transport
        empty = np.where((self._ages > 0) & (empty < seen) & (seen <= self.stamps), seen, empty)
        found: Ints = np.minimum(empty, self.stamps)
        return found


def _columns(fields: tuple[str, ...], rows: list[bytes]) -> dict[str, Ints]:
    return dict(zip(fields, np.frombuffer(b"".join(rows), np.int64).reshape(-1, len(fields)).T, strict=True))


class BulkRows:
    """Makes rows of many requests of a run.

    *ends*: of its requests so far.  *counts*: tokens by text; None where nothing is tokenized.
    """

    def __init__(
        self, endpoint: Endpoint, store: Store, ends: Ends, counts: Mapping[str, int] | None, *, zero_ns: int
    ) -> None:  # fmt: skip
        self._endpoint, self._store, self._ends, self._zero_ns = endpoint, store, ends, zero_ns
        self._counts = counts if endpoint.capabilities.produces_tokens else None
        self._counts_input = counts is not None and endpoint.capabilities.tokenizes_input
        self._end: tuple[Delta | None] | None = None

    @staticmethod
    def can_read(endpoint: Endpoint) -> bool:
        """Whether the endpoint reads each event by itself."""
        try:
            reader = endpoint.reader()
        except Exception:  # noqa: BLE001  # code of a plugin; each answer reports it
            return False
        alone = isinstance(reader, DecodingReader) and type(reader).close is Reader.close and reader.decode == endpoint.decode
        return alone and endpoint.framing is ServerSentEvents

    def take(self, requests: Sequence[JournalRequest], shard: int) -> Iterator[Rows | JournalRequest]:
        """Rows of the requests, in their order; a request that must be finished by itself instead."""
        group = _Group(requests)
        contents = [
            self._content(request, flags, merged=merged) if usual and not request.texts else None
            for request, usual, flags, merged in zip(requests, *group.usual(), strict=True)
        ]
        if None not in contents:
            yield from self._rows_or_requests(group, contents, shard, requests)
            return
        mixed = contents.count(None) * _MIXED > len(contents)
        for left, run in groupby(zip(requests, contents, strict=True), lambda each: mixed or each[1] is None):
            some, usual = zip(*run, strict=True)
            yield from some if left else self._rows_or_requests(_Group(some), usual, shard, some)

    def _rows_or_requests(
        self, group: _Group, contents: Sequence[Any], shard: int, requests: Sequence[JournalRequest]
    ) -> Sequence[Rows | JournalRequest]:
        """The rows; all the requests where a count of one is no number that a column can hold."""
        counts = _Counts.of(contents)
        return requests if counts is None else (self._rows(group, contents, counts, shard),)

    def _content(self, request: JournalRequest, flags: int, *, merged: bool) -> Content | None:
        """What the answer says; None where it isn't usual, or anything is wrong with it."""
        try:
            body = request.pieces[0] if len(request.pieces) == 1 else b"".join(request.pieces)
            if flags & STREAMED:
                whole = not merged or all(map(bytes.endswith, request.bodies, repeat(_BETWEEN[:2])))
                return self._stream(body) if whole else None
            return self._body(body)
        except Exception:  # noqa: BLE001  # read again by itself, and reported
            return None

    def _body(self, body: bytes) -> Content | None:
        delta = self._endpoint.decode(body)
        if type(delta) is not Delta or delta.extra:
            return None
        text, reasoning, tool, usage, reason, items, _ = astuple(delta)
        if reason is not None and type(reason) is not str:
            return None
        if not (reasoning or tool or items):  # nearly always, and each call counts here
            kind, thoughts = _KINDS[TEXT * bool(text)], ABSENT
        else:
            kind = _KINDS[TEXT * bool(text) | REASONING * bool(reasoning) | TOOL * bool(tool) | ITEM * bool(items)]
            text, thoughts = text + tool, self._count(reasoning)
        if kind == _KINDS[0] or HIDDEN in reasoning:
            return None
        outputs = self._counts[text] if text and self._counts is not None else ABSENT
        counts = _counts(usage) if usage else ()
        return Content(outputs, thoughts, kind, [len(body) - len(_BETWEEN)], 0, ABSENT, counts, reason)

    def _stream(self, stream: bytes) -> Content | None:
        if not self._endpoint.repeats_envelope:
            return None
        if stream[:6] != _BETWEEN[2:] or stream[-2:] != _BETWEEN[:2] or b"\r" in stream:
            return None
        events = stream[6:-2].split(_BETWEEN)
        fields = read_envelopes(events, self._feed)
        if fields is None or any(fields.extras):
            return None
        texts, reasonings = fields.texts, fields.reasonings
        reasoning = "".join(reasonings)
        kinds = bytes(map(bool, texts))  # TEXT is 1
        if reasoning:
            if HIDDEN in reasoning:
                return None
            kinds = bytes(kind | REASONING * bool(text) for kind, text in zip(kinds, reasonings, strict=True))
        if not any(kinds):
            return None
        reason = next((each for each in reversed(fields.finishes) if each is not None), None)
        if reason is not None and type(reason) is not str:
            return None
        finish = 2.0 if reason is not None else float(events[-1] == END_MARKER)
        return Content(
            self._count("".join(texts)), self._count(reasoning), kinds, list(map(len, events)),
            fields.telling, finish, _counts(merged_usage(list(filter(None, fields.usages))) or {}),
            reason,
        )  # fmt: skip

    def _count(self, text: str) -> float:
        """Tokens of a text; ABSENT where there are none, or they aren't counted."""
        return self._counts[text] if text and self._counts is not None else ABSENT

    def _feed(self, events: Sequence[bytes], names: Sequence[str | None]) -> Sequence[Delta | None]:
        """What the endpoint says of the events; of the end marker it is asked once."""
        if END_MARKER in events:
            return [self._ended() if event == END_MARKER else self._endpoint.decode(event) for event in events]
        return list(map(self._endpoint.decode, events))

    def _ended(self) -> Delta | None:
        if self._end is None:
            self._end = (self._endpoint.decode(END_MARKER),)
        return self._end[0]

    def _rows(self, group: _Group, contents: Sequence[Any], counts: _Counts, shard: int) -> Rows:
        """The rows of requests that have these contents."""
        sent, done, zero = group.sent, group.done, self._zero_ns
        first, last = group.stamps[group.begins], group.stamps[group.ends - 1]
        known, requested, images, sound_ns, blocks, hits = self._store.numbers(sent["entry"], sent["turn"])
        _, _, _, _, telling, finish, _, reasons = zip(*contents, strict=True)
        columns: dict[str, Any] = {name: sent[name] if name in sent else done[name] for name in _SAME}
        columns |= {name: np.where(done[name] != 0, done[name] - zero, ABSENT) for name in _REACHED}
        columns |= {
            "shard": shard, "request": sent["request"], "outcome": journal.COMPLETED, "status": done["status"],
            "due_ns": np.where(sent["due_ns"] >= 0, sent["due_ns"] - zero, ABSENT),
            "held_ns": np.where(sent["due_ns"] >= 0, sent["held_ns"], ABSENT),
            "started_ns": sent["started_ns"] - zero, "turnaround_ns": self._turnarounds(sent, done, shard, last),
            # Read stamps are ours, and may be later than the kernel's stamp of the body behind the head.
            "ack_ns": np.where(done["ack_ns"] != 0, np.minimum(done["ack_ns"] - zero, first), ABSENT),
            "first_byte_ns": first, "last_byte_ns": last, "ended_ns": last, "reads": group.reads,
            "requested_tokens": np.where(requested >= 0, requested, ABSENT), "images": images, "finish": finish,
            "audio_s": np.where(sound_ns > 0, sound_ns / 1e9, ABSENT),
            "prefix_blocks": np.where(blocks > 0, blocks, ABSENT), "prefix_hits": np.where(blocks > 0, hits, ABSENT),
            "reused": (done["flags"] & REUSED) != 0, "reconnected": (done["flags"] & RECONNECTED) != 0,
            "resent": (done["flags"] & RESENT) != 0,
            "unreadable": 0, "events": telling, "output_tokens": counts.outputs, "reasoning_tokens": counts.thoughts,
            "lane": np.where(sent["lane"] >= 0, sent["lane"], ABSENT),
            "held_by": np.where(sent["held_by"] >= 0, sent["held_by"], ABSENT),
            "input_tokens": np.where(self._counts_input & (known >= 0), known, ABSENT),
        }  # fmt: skip
        pieces = _Pieces(group, contents, zero)
        columns |= pieces.columns(np.array(telling))
        numbers = np.full((len(NUMBERS), len(contents)), ABSENT)
        numbers[: len(counts.usages)] = counts.usages
        for name, values in columns.items():
            numbers[_PLACES[name]] = values
        return Rows(numbers, pieces.stamps, pieces.kinds, pieces.counts, pieces.since, reasons)

    def _turnarounds(self, sent: dict[str, Ints], done: dict[str, Ints], shard: int, ended: Ints) -> Floats:
        """For a closed loop alone: with due times, the arrival that takes a slot is late, or held."""
        turnarounds: Floats = np.full(len(ended), ABSENT)
        slots = self._ends.closed[sent["phase"]]
        if slots.any():
            self._ends.add(shard, sent["request"][slots].tolist(), ended[slots].tolist())
            closed = slots & (sent["due_ns"] < 0)
            before = self._ends.take(shard, sent["after"][closed].tolist())
            waits = done["dns_ns"] + done["connect_ns"] + done["tls_ns"]
            begun = np.where(done["sent_ns"] != 0, done["sent_ns"] - self._zero_ns - waits, ABSENT)
            turnarounds[closed] = begun[closed] - before
        return turnarounds


_KINDS = [bytes((kind,)) for kind in range((TEXT | REASONING | TOOL | ITEM) + 1)]
"""The kinds of an answer that is one piece."""
_PLACES = {name: place for place, name in enumerate(NUMBERS)}


def _counts(usage: dict[str, Any]) -> tuple[float | None, ...]:
    """The server's counts.

    Raises:
        ValueError: Some can't be read.
    """
    if not usage:
        return ()
    plain = plain_counts(usage)
    if plain is not None:
        return plain
    counts, unread = counted(usage)
    if unread:
        raise ValueError("counts that can't be read")
    return astuple(counts)


class _Counts(NamedTuple):
    """Counts of many answers, of which servers and tokenizers may have said anything.  usages: a row for each first column."""

    outputs: Floats
    thoughts: Floats
    usages: Floats

    @classmethod
    def of(cls, contents: Sequence[Any]) -> _Counts | None:
        """None where one is no number that a column can hold."""
        outputs, thoughts, _, _, _, _, usages, _ = zip(*contents, strict=True)
        least, most = min(map(len, usages)), max(map(len, usages))
        try:
            if 0 < least == most < len(Usage.__struct_fields__):  # numbers alone
                values = np.fromiter(chain.from_iterable(usages), np.float64, most * len(usages)).reshape(-1, most)
            else:
                values = np.array([usage + (None,) * (most - len(usage)) for usage in usages], dtype=np.float64)
            return cls(np.array(outputs, dtype=np.float64), np.array(thoughts, dtype=np.float64), values.T)
        except (OverflowError, TypeError, ValueError):
            return None


class _Pieces:
    """The pieces of content of many answers, one answer after the other.

    stamps, kinds: of each piece.  counts: pieces of each answer.  since: of each marked piece, when the socket was last seen
    empty before it.
    """

    def __init__(self, group: _Group, contents: Sequence[Content], zero_ns: int) -> None:
        kinds = np.frombuffer(b"".join([content.kinds for content in contents]), np.uint8)
        sizes = np.fromiter(chain.from_iterable([content.sizes for content in contents]), np.int64, len(kinds))
        events = np.array([len(content.kinds) for content in contents])
        # An event came with the read that completed it.
        reads = np.searchsorted(np.cumsum(group.sizes), np.cumsum(sizes + len(_BETWEEN)))
        self._instants, self._begins = group.stamps[reads], np.cumsum(events) - events
        self.since: Ints = np.empty(0, dtype=np.int64)
        if group.hidden.any():
            lengths = np.bincount(reads, minlength=len(group.hidden))
            before = group.empty_before(zero_ns)
            kinds = _marked(kinds, reads, lengths, np.where(lengths > 1, group.hidden, 0))
            self.since = before[reads[(kinds & MARKED) != 0]]
        shown = kinds != 0
        upto = np.concatenate(([0], np.cumsum(shown)))
        self.stamps, self.kinds = self._instants[shown], kinds[shown]
        self.begin = upto[self._begins]
        self.counts = upto[self._begins + events] - self.begin

    def columns(self, events: Ints) -> dict[str, Floats]:
        """*events*: of each stream, those up to the last that says more than usage."""
        stamps, first, end = self.stamps, self.stamps[self.begin], self.begin + self.counts
        marked = (self.kinds & MARKED) != 0
        second = self._first(stamps > np.repeat(first, self.counts))
        second_ns = self._at(second)
        if marked.any():  # merged reads may hide it
            third = self._first(stamps > np.repeat(np.where(second < end, second_ns, np.inf), self.counts))
            second_ns[self._first(marked) < third] = ABSENT
        output = (self.kinds & (TEXT | TOOL | ITEM)) != 0
        tells = events > 0
        last_event = self._instants[self._begins + np.maximum(events - 1, 0)]
        return {
            "first_token_ns": first.astype(np.float64), "last_token_ns": stamps[end - 1].astype(np.float64),
            "second_token_ns": second_ns, "first_output_ns": self._at(self._first(output)),
            "first_event_ns": np.where(tells, self._instants[self._begins], ABSENT),
            "last_event_ns": np.where(tells, last_event, ABSENT),
            "coalesced": np.bincount(np.repeat(np.arange(len(events)), self.counts), marked, len(events)),
        }  # fmt: skip

    def _first(self, mask: Any) -> Ints:
        """For each answer, its first piece in *mask*; the place behind its last one where there is none."""
        places = np.append(np.flatnonzero(mask), len(mask))
        found: Ints = np.minimum(places[np.searchsorted(places, self.begin)], self.begin + self.counts)
        return found

    def _at(self, places: Ints) -> Floats:
        """The instants of these pieces; ABSENT behind the last one of an answer."""
        stamps: Floats = np.append(self.stamps, 0).astype(np.float64)[places]
        stamps[places == self.begin + self.counts] = ABSENT
        return stamps


def _marked(kinds: Any, reads: Ints, lengths: Ints, hidden: Ints) -> Any:
    """The kinds of events: of merged reads, those before the last one MARKED, and SHARED where they came with an earlier one.

    *reads*: of each event; *lengths*: events of each read.  *hidden*: TCP segments of each read beyond the last one, 0 where
    it has one event; it has no more instants than segments.
    """
    shown, ends = kinds != 0, np.cumsum(lengths)
    last = np.zeros(len(kinds), dtype=bool)
    last[ends[lengths > 0] - 1] = True
    inside = (hidden[reads] > 0) & shown
    upto = np.concatenate(([0], np.cumsum(shown)))
    place = upto[:-1] - upto[ends - lengths][reads]
    known = np.bincount(reads[last & shown], minlength=len(lengths))  # the last one came at the stamp
    pieces = upto[ends] - upto[ends - lengths]
    shared = inside & (place >= (hidden + 1 - known)[reads]) & (place < (pieces - known)[reads])
    return kinds | np.where(inside & ~last, MARKED, 0).astype(np.uint8) | np.where(shared, SHARED, 0).astype(np.uint8)
