"""The answer in a request's bytes: instants of its content, its text, the server's counts.

Events of one read share its stamp, and stamps never go back.  Where TCP segments were merged into a read, only the event that
the last segment completed came at the stamp.  The events before it came at unknown instants since the read before: they are
marked and counted, and the gaps around them are intervals.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import chain, compress, product, repeat
from typing import Any, TypeAlias

from aiperf.errors import ENDPOINT_ERROR, BadResponse
from aiperf.reduce.envelopes import decode_events, read_envelopes
from aiperf.registry.third_party import why
from aiperf.rundir.shard_reader import Read
from aiperf.sdk.model import Delta
from aiperf.sdk.sse import Splitter

TEXT, REASONING, TOOL, ITEM, MARKED, SHARED = 1, 2, 4, 8, 16, 32
"""Bits of a chunk's kind; MARKED: only an interval is known for its instant; SHARED: it came with a marked chunk before it."""
Decode: TypeAlias = Callable[[bytes], Delta | None]
"""An endpoint's ``decode``."""

_KINDS = {
    flags: sum(bit for bit, flag in zip((TEXT, REASONING, TOOL, ITEM), flags, strict=True) if flag)
    for flags in product((False, True), repeat=4)
}
"""A chunk's kind, by whether it has text, reasoning, a tool call, items."""
_END = (0, 0, 0, None)
"""Behind the last read: the end of the stream completes an event that lacks its blank line."""
_END_MARKER = b"[DONE]"
_HEARTBEATS = (b"ping", b"heartbeat", b"keepalive", b"keep-alive")
"""Names, or data, of events that servers and proxies send through a quiet stream, where they send no comment."""
_MARKED = bytes(kind | MARKED if kind else 0 for kind in range(256))


@dataclass(slots=True, eq=False)
class Answer:
    """One answer.  Times are in ns since the run's start, None where the answer never came that far.

    stamps, kinds: of each chunk with content.  since: of each marked chunk, when the socket was last seen empty before it.
    end_marker: the last event of the stream is ``[DONE]``.
    first_usage: the server's counts with the first content, where it counts with every chunk.
    unreadable: events that could not be read; unreadable_ns: the first of them, where it came before all content.
    events, first_event_ns, last_event_ns: of a stream's events that say more than usage, a role alone included.
    """

    stamps: list[int] = field(default_factory=list)
    kinds: bytearray = field(default_factory=bytearray)
    text: str = ""
    reasoning: str = ""
    usage: dict[str, Any] | None = None
    first_usage: dict[str, Any] | None = None
    finish: str | None = None
    end_marker: bool = False
    first_output_ns: int | None = None
    events: int = 0
    first_event_ns: int | None = None
    last_event_ns: int | None = None
    items: int = 0
    unreadable: int = 0
    unreadable_ns: int | None = None
    marked: int = 0
    since: list[int] = field(default_factory=list)
    error: BadResponse | None = None
    extra: dict[str, float] | None = None


def read_answer(reads: list[Read], decode: Decode, *, streamed: bool, repeats: bool = False, began: int = 0) -> Answer:
    """Decode an answer.  An error in the stream, or bytes of another dialect, end the reading and set ``error``.

    *repeats*: the endpoint's ``repeats_envelope``.  *began*: an instant before which nothing of the body came.
    """
    if not streamed:
        return _read_body(reads, decode)
    # A usual answer: every event is one line of data, every read has whole events.  The innermost work of the reducer, a column
    # at a time: 0.3 µs a chunk beside decoding, half the time of a loop.
    stamps, seen, hiddens, bodies = zip(*reads, strict=True)
    stream = b"".join(bodies)
    if stream[:6] != b"data: " or not all(map(bytes.endswith, bodies, repeat(b"\n\n"))):
        return _read_events(reads, decode, began)
    data = stream[6:-2].split(b"\n\ndata: ")
    if stream.count(b"\n") != 2 * len(data) or b"\r" in stream or list(stamps) != sorted(stamps):
        return _read_events(reads, decode, began)
    instants, lengths = _instants(stamps, bodies, len(data))
    try:
        fields = (read_envelopes(data, decode) if repeats else None) or decode_events(data, decode)
        events = _telling_events(data, decode)
    except Exception:  # noqa: BLE001  # read again, and reported
        return _read_events(reads, decode, began)
    answer = Answer()
    if events:
        answer.events, answer.first_event_ns, answer.last_event_ns = events, instants[0], instants[events - 1]
    answer.usage = next(filter(None, reversed(fields.usages)), None)
    answer.first_usage = fields.first_usage
    answer.finish = next((finish for finish in reversed(fields.finishes) if finish is not None), None)
    answer.end_marker = data[-1] == _END_MARKER
    answer.extra = next((extra for extra in reversed(fields.extras) if extra is not None), None)
    texts, tools, items = fields.texts, fields.tools, fields.items
    if any(fields.reasonings) or any(tools) or any(items):
        answer.text = "".join(chain.from_iterable(zip(texts, tools, strict=True)) if any(tools) else texts)
        answer.reasoning = "".join(fields.reasonings)
        answer.items = sum(items)
        kinds = bytearray(map(_KINDS.__getitem__, zip(*(map(bool, column) for column in fields[:4]), strict=True)))
        answer.first_output_ns = next((at for at, kind in zip(instants, kinds, strict=True) if kind & ~REASONING), None)
    else:
        answer.text = "".join(texts)
        kinds = bytearray(map(bool, texts))  # TEXT is 1
        answer.first_output_ns = next(compress(instants, kinds), None)
    if lengths and any(hiddens):
        _mark(answer, kinds, (began, *seen), hiddens, lengths)
    answer.stamps = list(compress(instants, kinds))
    answer.kinds = kinds.replace(b"\0", b"")
    return answer


def _read_body(reads: list[Read], decode: Decode) -> Answer:
    answer = Answer()
    body = reads[0][3] if len(reads) == 1 else b"".join([read[3] for read in reads])
    try:
        delta = decode(body)
    except BadResponse as error:
        answer.error = error
        return answer
    except Exception as error:  # noqa: BLE001  # code of a plugin
        answer.error = _decode_failure(why(error))
        return answer
    if not isinstance(delta, Delta):
        answer.error = None if delta is None else _misreturned(delta)
        return answer
    answer.text, answer.reasoning = delta.text + delta.tool, delta.reasoning
    answer.usage, answer.finish, answer.items, answer.extra = delta.usage, delta.finish, delta.items, delta.extra
    if delta.content:
        answer.stamps.append(reads[-1][0])
        answer.kinds.append(_KINDS[bool(delta.text), bool(delta.reasoning), bool(delta.tool), bool(delta.items)])
        answer.first_output_ns = reads[-1][0] if answer.kinds[0] != REASONING else None
    return answer


def _instants(stamps: Sequence[int], bodies: Sequence[bytes], count: int) -> tuple[Sequence[int], Sequence[int]]:
    """The instant of each of *count* events, and the events per read (empty: one in every read)."""
    if count == len(stamps):
        return stamps, ()
    last = bodies[-1].count(b"\n") >> 1
    if count == len(stamps) - 1 + last:  # the usual end: several events in the last read
        return (*stamps, *repeat(stamps[-1], last - 1)), (*repeat(1, len(stamps) - 1), last)
    lengths = [newlines >> 1 for newlines in map(bytes.count, bodies, repeat(b"\n"))]
    return list(chain.from_iterable(map(repeat, stamps, lengths))), lengths


def _telling_events(events: list[bytes], decode: Decode) -> int:
    """Number of events up to the last that says more than usage.

    An event with usage alone closes a stream; a server that sends usage with every event sends content with it.
    """
    for count in range(len(events), 0, -1):
        delta = decode(events[count - 1])
        if delta is not None and (delta.usage is None or delta.content or delta.finish is not None):
            return count
    return 0


def _mark(answer: Answer, kinds: bytearray, seen: Sequence[int], hiddens: Sequence[int], lengths: Sequence[int]) -> None:
    """Mark the content of merged reads before their last event.

    *seen*: when the socket was seen empty before each read.  *lengths*: events per read.
    """
    begin = 0
    for before, hidden, length in zip(seen, hiddens, lengths, strict=False):
        end = begin + length
        if hidden and length > 1:
            earlier = kinds[begin : end - 1]
            marked = length - 1 - earlier.count(0)
            kinds[begin : end - 1] = earlier.translate(_MARKED)
            answer.marked += marked
            answer.since += repeat(before, marked)
            _share(kinds, range(begin, end), hidden)
        begin = end


def _share(kinds: bytearray, places: range, hidden: int) -> None:
    """Mark chunks of a merged read that came with an earlier one: it has no more instants than segments, *hidden* + 1."""
    chunks = [at for at in places if kinds[at]]
    known = bool(chunks) and not kinds[chunks[-1]] & MARKED  # the last one came at the stamp
    for at in chunks[hidden + 1 - known : len(chunks) - known]:
        kinds[at] |= SHARED


def _read_events(reads: list[Read], decode: Decode, began: int) -> Answer:
    """Any answer, event by event."""
    answer = Answer()
    texts: list[str] = []
    reasonings: list[str] = []
    unreadable: BadResponse | None = None
    try:
        unreadable = _take_events(answer, reads, decode, texts, reasonings, began)
    except BadResponse as error:
        answer.error = error
    except Exception as error:  # noqa: BLE001  # code of a plugin
        answer.error = _decode_failure(why(error))
    if not answer.stamps:
        answer.error = answer.error or unreadable
    answer.text, answer.reasoning = "".join(texts), "".join(reasonings)
    return answer


def _take_events(
    answer: Answer, reads: list[Read], decode: Decode, texts: list[str], reasonings: list[str], before: int
) -> BadResponse | None:
    """Take the events of the reads into *answer*; gives the first event that was unreadable.  *before*: as ``began``."""
    stamps, kinds, splitter = answer.stamps, answer.kinds, Splitter()
    now = began = count = 0
    unreadable: BadResponse | None = None
    for stamp, read, hidden, body in (*reads, _END):
        now = max(now, stamp)  # the stamp of a read without a kernel stamp may be behind the kernel's of the next
        events = splitter.close() if body is None else splitter.feed(body)
        doubtful = len(events) - body.endswith((b"\n", b"\r")) if hidden and body else 0
        first = len(stamps)
        for at, (event, name) in enumerate(events):
            count += 1
            if count == 1:
                began = now
            if name == b"error":
                raise _in_band_error(event, decode)
            try:
                delta = decode(event)
            except BadResponse as bad:
                if not bad.unreadable:
                    raise
                if name.lower() in _HEARTBEATS or event.strip().lower() in (b"", *_HEARTBEATS):
                    count -= 1
                    continue
                answer.end_marker = False
                unreadable = unreadable or bad
                answer.unreadable += 1
                if not stamps and answer.unreadable_ns is None:
                    answer.unreadable_ns = now
                continue
            answer.end_marker = event == _END_MARKER
            if not isinstance(delta, Delta):
                if delta is None:
                    continue
                raise _misreturned(delta)
            if delta.usage is None or delta.content or delta.finish is not None:
                answer.events, answer.first_event_ns, answer.last_event_ns = count, began, now
            answer.usage = delta.usage or answer.usage
            answer.finish = answer.finish if delta.finish is None else delta.finish
            answer.extra = answer.extra if delta.extra is None else delta.extra
            kind = _KINDS[bool(delta.text), bool(delta.reasoning), bool(delta.tool), bool(delta.items)]
            if not kind:
                continue
            texts += (delta.text, delta.tool)
            reasonings.append(delta.reasoning)
            answer.items += delta.items
            if not stamps:
                answer.first_usage = delta.usage
            if answer.first_output_ns is None and kind != REASONING:
                answer.first_output_ns = now
            if at < doubtful:
                kind |= MARKED
                answer.marked += 1
                answer.since.append(before)
            stamps.append(now)
            kinds.append(kind)
        if doubtful:
            _share(kinds, range(first, len(kinds)), hidden)
        before = read
    return unreadable


def _in_band_error(data: bytes, decode: Decode) -> BadResponse:
    """The error of an event named ``error``; code 502 and type SSEResponseError where its data has none."""
    message, code, kind = data.decode("utf-8", "replace") or "the server sent an error event", None, None
    try:
        decode(data)
    except BadResponse as error:
        code, kind = error.code, error.kind
        message = message if error.unreadable else error.message
    return BadResponse(message, raw=data, code=code or 502, kind=kind or "SSEResponseError")


def _decode_failure(reason: str) -> BadResponse:
    return BadResponse(f"the endpoint can't read the answer: {reason}", kind=ENDPOINT_ERROR)


def _misreturned(delta: object) -> BadResponse:
    return _decode_failure(f"decode returned {type(delta).__name__}, not Delta")
