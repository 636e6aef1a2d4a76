"""Events of a stream, read by their envelope.

Nearly all events of an answer differ in one JSON string, the piece of text; the bytes around it, the envelope, are the same.
Where an endpoint promises that such events say nothing but that string (``Endpoint.repeats_envelope``), the first is decoded to
find its string, the strings of the others are cut out and read together, and the last is decoded and must agree.  This takes a
third of the time of decoding each event.  Named events are alike only under one name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice, repeat
from operator import eq, itemgetter
from typing import Any, NamedTuple, TypeAlias

import msgspec
from aiperf.sdk.errors import ENDPOINT_ERROR, BadResponse
from aiperf.sdk.model import Delta
from aiperf.sdk.sse import Event
from msgspec.structs import astuple

Feed: TypeAlias = Callable[[Sequence[bytes], Sequence[str | None]], Sequence[Delta | None]]
"""The ``feed`` of a Reader."""
_MISSES = 3
"""After so many events whose neighbour has another envelope, every event is decoded."""
_LAST = 4
"""Events that may close a stream in other envelopes: a reason, usage, an end marker."""
_HEARTBEATS = (b"ping", b"heartbeat", b"keepalive", b"keep-alive")
"""Names, or data, of events that servers and proxies send through a quiet stream, where they send no comment."""
NOTHING = Delta()
_strings = msgspec.json.Decoder(list[str]).decode
_encoded = msgspec.json.Encoder().encode


def is_heartbeat(event: Event) -> bool:
    return event.event.lower() in _HEARTBEATS or event.data.strip().lower() in (b"", *_HEARTBEATS)


class EventFields(NamedTuple):
    """Fields of the events of a stream.

    The first four have a value for each event, in order; the others may leave out None.  first_usage: with the first content.
    telling: number of events up to the last that says more than usage.  An event with usage alone closes a stream; a server
    that sends usage with every event sends content with it.
    """

    texts: Sequence[str]
    reasonings: Sequence[str]
    tools: Sequence[str]
    items: Sequence[int]
    usages: Sequence[dict[str, Any] | None]
    finishes: Sequence[str | None]
    extras: Sequence[dict[str, Any] | None]
    first_usage: dict[str, Any] | None
    telling: int


class MiscountedError(BadResponse):
    """A Reader gave another number of Deltas than it got events."""

    def __init__(self, deltas: int, events: int) -> None:
        message = f"the endpoint can't read the answer: feed returned {deltas} Deltas for {events} events"
        super().__init__(message, kind=ENDPOINT_ERROR)


def tells(delta: Delta | None) -> bool:
    """Whether an event says more than usage."""
    return delta is not None and (delta.usage is None or delta.content or delta.finish is not None)


def one_delta(feed: Feed, event: bytes, name: str | None) -> Delta | None:
    """The Delta of one event.

    Raises:
        MiscountedError: *feed* gave none, or several.
    """
    deltas = feed((event,), (name,))
    if len(deltas) != 1:
        raise MiscountedError(len(deltas), 1)
    return deltas[0]


def read_envelopes(events: Sequence[bytes], feed: Feed, names: Sequence[str | None] = ()) -> EventFields | None:
    """The fields of the events, as *feed* gives them; None where every event must be decoded, from the first one on."""
    count = len(events)
    names = names or (None,) * count
    mixed = names.count(names[0]) != count
    texts, reasonings = [""] * count, [""] * count
    usages: list[dict[str, Any] | None] = []
    finishes: list[str | None] = []
    extras: list[dict[str, Any] | None] = []
    first_usage: dict[str, Any] | None = None
    shown = False
    at = misses = telling = 0
    while at < count:
        if b"\n" in events[at]:  # no event of one line, as the others in its envelope are
            return None
        read = one_delta(feed, events[at], names[at])
        if tells(read):
            telling = at + 1
        delta = read or NOTHING
        if delta.tool or delta.items:
            return None
        texts[at], reasonings[at] = delta.text, delta.reasoning
        usages.append(delta.usage)
        finishes.append(delta.finish)
        extras.append(delta.extra)
        at += 1
        if not shown and (delta.text or delta.reasoning):
            shown, first_usage = True, delta.usage
        is_reasoning = not delta.text
        string = delta.reasoning if is_reasoning else delta.text
        if not string or delta != _delta(string, reasoning=is_reasoning):
            continue
        strings = _following_strings(events[at - 1], string, events, at, names if mixed else ())
        if not strings:
            misses += 1
            if misses == _MISSES:
                return None
            continue
        end = at + len(strings)
        if one_delta(feed, events[end - 1], names[end - 1]) != _delta(strings[-1], reasoning=is_reasoning):
            return None
        (reasonings if is_reasoning else texts)[at:end] = strings
        at = telling = end
    return EventFields(texts, reasonings, [""] * count, [0] * count, usages, finishes, extras, first_usage, telling)


def decode_events(events: Sequence[bytes], feed: Feed, names: Sequence[str | None]) -> EventFields:
    """The fields of the events, each decoded.

    Raises:
        MiscountedError: *feed* gave another number of Deltas.
    """
    read = feed(events, names)
    if len(read) != len(events):
        raise MiscountedError(len(read), len(events))
    telling = next((count for count in range(len(read), 0, -1) if tells(read[count - 1])), 0)
    deltas = [delta or NOTHING for delta in read]
    texts, reasonings, tools, usages, finishes, items, extras = islice(zip(*map(astuple, deltas), strict=True), 7)
    first_usage = next((delta.usage for delta in deltas if delta.content), None) if any(usages) else None
    return EventFields(texts, reasonings, tools, items, usages, finishes, extras, first_usage, telling)


def _delta(string: str, *, reasoning: bool) -> Delta:
    return Delta(reasoning=string) if reasoning else Delta(string)


def _following_strings(
    event: bytes, string: str, events: Sequence[bytes], at: int, names: Sequence[str | None]
) -> list[str]:
    """The strings of the events from *at* on that are in the envelope of *event*, the one before; *string* is its own.

    *names*: where events have several, those under the name of *event* alone are looked at.
    """
    quoted = _encoded(string)
    begin = event.find(quoted)
    if begin < 0 or event.find(quoted, begin + 1) >= 0:
        return []
    before, behind = event[: begin + 1], event[begin + len(quoted) - 1 :]
    if at >= len(events) or not events[at].startswith(before):
        return []
    alike = at + _count_fitting(eq, names[at:], names[at - 1]) if names else len(events)
    pieces = _pieces(events[at:alike], before, behind)
    inside = b'","'.join(pieces)
    # A backslash at the end of a string would escape the quote behind it.
    if not pieces or inside.endswith(b"\\") or b'\\","' in inside:
        return []
    try:
        strings = _strings(b'["%b"]' % inside)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return []
    return strings if len(strings) == len(pieces) else []


def _pieces(events: Sequence[bytes], before: bytes, behind: bytes) -> list[bytes]:
    """What stands between *before* and *behind* in the first of the events, as many as have both."""
    inside, between = itemgetter(slice(len(before), -len(behind))), b"".join((behind, b"\n", before))

    def pieces(count: int) -> list[bytes] | None:
        """The pieces of *count* events; None where one is another."""
        found = list(map(inside, events[:count]))
        return found if b"".join((before, between.join(found), behind)) == b"\n".join(events[:count]) else None

    ends = range(len(events), max(len(events) - _LAST, 0), -1)
    found = pieces(next((end for end in ends if events[end - 1].startswith(before) and events[end - 1].endswith(behind)), 0))
    if found is None:
        found = pieces(min(_count_fitting(bytes.startswith, events, before), _count_fitting(bytes.endswith, events, behind)))
    return found or []


def _count_fitting(fits: Callable[[Any, Any], bool], values: Sequence[Any], part: Any) -> int:
    """Number of the first values that fit."""
    fitting = list(map(fits, values, repeat(part)))
    return fitting.index(False) if False in fitting else len(fitting)
