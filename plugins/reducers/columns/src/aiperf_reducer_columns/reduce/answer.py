"""The answer in a request's bytes: instants of its content, its text, the server's counts.

Events of one read share its stamp, and stamps never go back.  Where TCP segments were merged into a read, only the event that
the last segment completed came at the stamp.  The events before it came at unknown instants since the read before: they are
marked and counted, and the gaps around them are intervals.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import chain, compress, product, repeat
from typing import Any, TypeAlias

from aiperf.parts.loading import why
from aiperf.parts.segments import Read, is_merged, last_is_hidden
from aiperf.sdk.endpoint import DecodingReader, Reader
from aiperf.sdk.errors import ENDPOINT_ERROR, BadResponse
from aiperf.sdk.framing import Framing, Lines, ServerSentEvents
from aiperf.sdk.model import REFUSED, Delta, ToolCall
from aiperf.sdk.sse import Event, Messages
from aiperf.sdk.transport import END_MARKER, LAST_HIDDEN

from aiperf_reducer_columns.reduce.envelopes import (
    EventFields,
    MiscountedError,
    decode_events,
    is_heartbeat,
    one_delta,
    read_envelopes,
    tells,
)
from aiperf_reducer_columns.reduce.event_columns import events_by_column
from aiperf_reducer_columns.reduce.reasons import refused
from aiperf_reducer_columns.reduce.usage import Counted, Usage, added, counted, merged_usage

TEXT, REASONING, TOOL, ITEM, MARKED, SHARED = 1, 2, 4, 8, 16, 32
"""Bits of a chunk's kind; MARKED: only an interval is known for its instant; SHARED: it came with a marked chunk before it."""
NewReader: TypeAlias = Callable[[], Reader]
"""An endpoint's ``reader``."""

_KINDS = {
    flags: sum(bit for bit, flag in zip((TEXT, REASONING, TOOL, ITEM), flags, strict=True) if flag)
    for flags in product((False, True), repeat=4)
}
"""A chunk's kind, by whether it has text, reasoning, a tool call, items."""
_END = (0, 0, 0, None)
"""Behind the last read: the end of the stream completes an event that lacks its blank line."""
_MARKED = bytes(kind | MARKED if kind else 0 for kind in range(256))


@dataclass(slots=True, eq=False)
class Answer:
    """One answer.  Times are in ns since the run's start, None where the answer never came that far.

    stamps, kinds: of each chunk with content.  since: of each marked chunk, when the socket was last seen empty before it.
    end_marker: the last event of the stream is ``[DONE]``.  whole: it is no stream, or one of a single event.
    first_usage: the server's counts with the first content, where it counts with every chunk.
    extra: further numbers and texts by name, of several the last.
    choices: of several answers to the request, text and reasoning of each; empty for one.  apart: the server's counts of each,
    where it counts each by itself, in place of *usage*; unread_usage: they can't be told apart.
    unreadable: events that could not be read; unreadable_ns: the first of them, where it came before all content.
    tool_calls: of a graded answer, the first choice's; no_tool_calls: why they can't be told, None where they can.
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
    whole: bool = False
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
    extra: dict[str, Any] | None = None
    choices: list[tuple[str, str]] = field(default_factory=list)
    apart: list[Any] = field(default_factory=list)
    unread_usage: bool = False
    tool_calls: tuple[ToolCall, ...] = ()
    no_tool_calls: str | None = None

    @property
    def reason(self) -> str | None:
        """Why it ended, as the server says it."""
        finish: object = self.finish  # of a plugin, which may give anything
        told = finish if isinstance(finish, str) or finish is None else str(finish)
        return refused(told) if self.extra and self.extra.get(REFUSED) else told or None

    def counts(self, prompts: int = 1) -> Counted:
        """The server's token counts.  *prompts*: of how many the several answers are."""
        if self.apart:
            each = [counted(usage) if isinstance(usage, dict) else Counted(Usage(), unread=True) for usage in self.apart]
            total = added([usage for usage, _ in each], prompts)
            return Counted(total.usage, total.unread or any(unread for _, unread in each))
        total = counted(self.usage) if self.usage else Counted(Usage())
        return Counted(total.usage, total.unread or self.unread_usage)

    def number(self, name: str) -> float:
        """A number of the answer that the endpoint declares, in its unit; NaN where there is none.

        Raises:
            TypeError, ValueError, OverflowError: It is no number.
        """
        value = self.items or None if name == "items" else (self.extra or {}).get(name)
        return math.nan if value is None or not math.isfinite(value) else float(value)


def read_answer(
    reads: list[Read], new_reader: NewReader, *, streamed: bool, repeats: bool = False, empty: Sequence[int] = (),
    framing: type[Framing] = ServerSentEvents,
) -> Answer:  # fmt: skip
    """Read an answer.  An error in the stream, or bytes of another dialect, end the reading and set ``error``.

    *repeats*, *framing*: the endpoint's ``repeats_envelope`` and ``framing``.  *empty*: of each read, when the socket was last
    seen empty before it (0 where it is shorter); () where none is merged.
    """
    messages = reads[0][2] < 0
    if not streamed and not (messages and len(reads) > 1):
        return _read_body(reads, new_reader)
    framing = Messages if messages else framing
    usual = events_by_column(reads, framing)
    if usual is None:
        return _read_events(reads, new_reader, empty, framing)
    if len(usual[0]) == 1 and framing not in (ServerSentEvents, Messages):
        return _read_body(reads, new_reader, usual[0][0])
    data, names, instants, lengths = usual
    try:
        fields, last = _fields(data, names, new_reader, repeats=repeats)
    except MiscountedError as error:
        return Answer(error=error)
    except Exception:  # noqa: BLE001  # read again, and reported
        return _read_events(reads, new_reader, empty, framing)
    answer = Answer()
    if fields.telling:
        answer.events, answer.first_event_ns, answer.last_event_ns = fields.telling, instants[0], instants[fields.telling - 1]
    answer.usage = merged_usage(list(filter(None, fields.usages)))
    answer.first_usage = fields.first_usage
    answer.finish = next((finish for finish in reversed(fields.finishes) if finish is not None), None)
    answer.end_marker = data[-1] == END_MARKER
    answer.extra = merged_usage([extra for extra in fields.extras if extra])
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
    if lengths:
        _mark(answer, kinds, empty, [read[2] for read in reads], lengths)
    answer.stamps = list(compress(instants, kinds))
    answer.kinds = kinds.replace(b"\0", b"")
    add_delta(answer, last, instants[-1])
    return answer


def _fields(
    data: list[bytes], names: Sequence[str | None], new_reader: NewReader, *, repeats: bool
) -> tuple[EventFields, Delta | None]:
    """The fields of the events, and the Delta of the end."""
    reader = new_reader()
    fields = read_envelopes(data, reader.feed, names) if repeats else None
    if fields is None:
        reader = new_reader() if repeats else reader
        fields = decode_events(data, reader.feed, names)
    return fields, _checked(reader.close(), "close")


def _read_body(reads: list[Read], new_reader: NewReader, body: bytes | None = None) -> Answer:
    """An answer without streaming.  *body*: without its framing."""
    answer = Answer(whole=True)
    if body is None:
        body = reads[0][3] if len(reads) == 1 else b"".join([read[3] for read in reads])
    try:
        reader = new_reader()
        deltas = _one_by_one(reader)(Event(body)), _checked(reader.close(), "close")
    except BadResponse as error:
        answer.error = error
        return answer
    except Exception as error:  # noqa: BLE001  # code of a plugin
        answer.error = _decode_failure(why(error))
        return answer
    for delta in deltas:
        add_delta(answer, delta, reads[-1][0])
    return answer


def read_trailers(answer: Answer, delta_of: Callable[[], Delta | None], at_ns: int) -> None:
    """Add what the endpoint reads in the trailers, as of *at_ns*; an error in them is the answer's, unless it has one."""
    try:
        add_delta(answer, _checked(delta_of(), "trailers"), at_ns)
    except BadResponse as error:
        answer.error = answer.error or error
    except Exception as error:  # noqa: BLE001  # code of a plugin
        answer.error = _decode_failure(why(error))


def add_delta(answer: Answer, delta: Delta | None, at_ns: int) -> None:
    """Add a Delta of the answer's end, or of a whole answer."""
    if delta is None:
        return
    answer.text, answer.reasoning = answer.text + delta.text + delta.tool, answer.reasoning + delta.reasoning
    answer.usage = merged_usage([usage for usage in (answer.usage, delta.usage) if usage])
    answer.finish = answer.finish if delta.finish is None else delta.finish
    answer.extra = _merged_extra(answer.extra, delta.extra)
    answer.items += delta.items
    if delta.content:
        kind = _KINDS[bool(delta.text), bool(delta.reasoning), bool(delta.tool), bool(delta.items)]
        answer.stamps.append(at_ns)
        answer.kinds.append(kind)
        if answer.first_output_ns is None and kind != REASONING:
            answer.first_output_ns = at_ns


def _merged_extra(extra: dict[str, Any] | None, more: dict[str, Any] | None) -> dict[str, Any] | None:
    return merged_usage([extra, more]) if extra and more else more or extra


def _one_by_one(reader: Reader) -> Callable[[Event], Delta | None]:
    """Reads one event.  Raises what *reader* raises, or BadResponse where it gives anything but a Delta or None."""
    if isinstance(reader, DecodingReader):
        decode = reader.decode
        return lambda event: _checked(decode(event[0]), "decode")
    return lambda event: _checked(one_delta(reader.feed, event[0], event.name), "feed")


def _checked(delta: object, method: str) -> Delta | None:
    if delta is None or isinstance(delta, Delta):
        return delta
    raise _decode_failure(f"{method} returned {type(delta).__name__}, not Delta")


def _mark(answer: Answer, kinds: bytearray, empty: Sequence[int], hiddens: Sequence[int], lengths: Sequence[int]) -> None:
    """Mark the content of merged reads before their last event.

    *empty*: when the socket was seen empty before each read.  *hiddens*: of each :data:`Read`.  *lengths*: events per read.
    """
    begin = 0
    for before, hidden, length in zip(chain(empty, repeat(0)), hiddens, lengths, strict=False):
        end = begin + length
        doubtful = end - (not last_is_hidden(hidden)) if is_merged(hidden) else begin
        if doubtful > begin:
            earlier = kinds[begin:doubtful]
            marked = len(earlier) - earlier.count(0)
            kinds[begin:doubtful] = earlier.translate(_MARKED)
            answer.marked += marked
            answer.since += repeat(before, marked)
            _share(kinds, range(begin, end), hidden)
        begin = end


def _share(kinds: bytearray, places: range, hidden: int) -> None:
    """Mark chunks of a merged read that came with an earlier one: it has no more instants than segments, *hidden* + 1."""
    hidden = (hidden if hidden >= 0 else ~hidden) & ~LAST_HIDDEN
    chunks = [at for at in places if kinds[at]]
    known = bool(chunks) and not kinds[chunks[-1]] & MARKED  # the last one came at the stamp
    for at in chunks[hidden + 1 - known : len(chunks) - known]:
        kinds[at] |= SHARED


def _read_events(reads: list[Read], new_reader: NewReader, empty: Sequence[int], framing: type[Framing]) -> Answer:
    """Any stream, event by event."""
    answer = Answer()
    texts: list[str] = []
    reasonings: list[str] = []
    usages: list[dict[str, Any]] = []
    unreadable: BadResponse | None = None
    last: Delta | None = None
    try:
        reader = new_reader()
        unreadable = _take_events(answer, reads, _one_by_one(reader), (texts, reasonings, usages), empty, framing())
        last = _checked(reader.close(), "close")
    except BadResponse as error:
        answer.error = error
    except Exception as error:  # noqa: BLE001  # code of a plugin
        answer.error = _decode_failure(why(error))
    answer.text, answer.reasoning, answer.usage = "".join(texts), "".join(reasonings), merged_usage(usages)
    add_delta(answer, last, max(read[0] for read in reads))
    if not answer.stamps:
        answer.error = answer.error or unreadable
    return answer


def _take_events(
    answer: Answer, reads: list[Read], read_one: Callable[[Event], Delta | None],
    parts: tuple[list[str], list[str], list[dict[str, Any]]], empty: Sequence[int], splitter: Framing,
) -> BadResponse | None:  # fmt: skip
    """Take the events of the reads into *answer*; gives the first event that was unreadable.

    *parts*: texts, reasonings and usages, for the caller to join.  *empty*: as of :func:`read_answer`.
    """
    stamps, kinds, line_ends = answer.stamps, answer.kinds, isinstance(splitter, ServerSentEvents | Lines)
    texts, reasonings, usages = parts
    now = began = count = 0
    unreadable: BadResponse | None = None
    for (stamp, _, hidden, body), before in zip((*reads, _END), chain(empty, repeat(0)), strict=False):
        now = max(now, stamp)  # the stamp of a read without a kernel stamp may be behind the kernel's of the next
        events = splitter.close() if body is None else splitter.feed(body)
        # The last segment completes the last event where lines end with it; of other framings nobody knows.
        ended = line_ends and body is not None and body.endswith((b"\n", b"\r")) and not last_is_hidden(hidden)
        doubtful = len(events) - ended if body and is_merged(hidden) else 0
        first = len(stamps)
        for at, event in enumerate(events):
            count += 1
            if count == 1:
                began = now
            if event[1] == b"error":
                raise _in_band_error(event, read_one)
            try:
                delta = read_one(event)
            except BadResponse as bad:
                if not bad.unreadable:
                    raise
                if is_heartbeat(event):
                    count -= 1
                else:
                    unreadable = unreadable or bad
                    _note_unreadable(answer, now)
                continue
            answer.end_marker = event[0] == END_MARKER
            if delta is None:
                continue
            if tells(delta):
                answer.events, answer.first_event_ns, answer.last_event_ns = count, began, now
            if delta.usage:
                usages.append(delta.usage)
            answer.finish = answer.finish if delta.finish is None else delta.finish
            answer.extra = _merged_extra(answer.extra, delta.extra)
            kind = _KINDS[bool(delta.text), bool(delta.reasoning), bool(delta.tool), bool(delta.items)]
            if not kind:
                continue
            texts += (delta.text, delta.tool)
            reasonings.append(delta.reasoning)
            _note_content(answer, delta, kind, now)
            if at < doubtful:
                kind |= MARKED
                answer.marked += 1
                answer.since.append(before)
            stamps.append(now)
            kinds.append(kind)
        if doubtful:
            _share(kinds, range(first, len(kinds)), hidden)
    return unreadable


def _note_content(answer: Answer, delta: Delta, kind: int, now: int) -> None:
    """Note content that is to be stamped *now*."""
    answer.items += delta.items
    if not answer.stamps:
        answer.first_usage = delta.usage
    if answer.first_output_ns is None and kind != REASONING:
        answer.first_output_ns = now


def _note_unreadable(answer: Answer, now: int) -> None:
    answer.end_marker = False
    answer.unreadable += 1
    if not answer.stamps and answer.unreadable_ns is None:
        answer.unreadable_ns = now


def _in_band_error(event: Event, read_one: Callable[[Event], Delta | None]) -> BadResponse:
    """The error of an event named ``error``; code 502 and type SSEResponseError where its data has none."""
    message, code, kind = event.data.decode("utf-8", "replace") or "the server sent an error event", None, None
    try:
        read_one(event)
    except BadResponse as error:
        code, kind = error.code, error.kind
        message = message if error.unreadable else error.message
    return BadResponse(message, raw=event.data, code=code or 502, kind=kind or "SSEResponseError")


def _decode_failure(reason: str) -> BadResponse:
    return BadResponse(f"the endpoint can't read the answer: {reason}", kind=ENDPOINT_ERROR)
