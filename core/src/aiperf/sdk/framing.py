"""How the bytes of a stream divide into events.

``Endpoint.framing`` is one of these classes, or a class of the author's own with ``feed`` and ``close``.  The kernel makes an
instance for each answer, and stamps an event with the read that completed it.  Bytes may be cut anywhere.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from aiperf.errors import BadResponse
from aiperf.sdk.sse import MOST_EVENT_BYTES, Event
from aiperf.sdk.sse import Splitter as ServerSentEvents

if TYPE_CHECKING:
    from aiperf.sdk.endpoint import Endpoint

_OUTSIDE, _INSIDE = re.compile(rb'["\[\]{},]'), re.compile(rb'["\\]')
_SPACE = b" \t\r\n"


class Framing(Protocol):
    """Divides one stream into events."""

    def feed(self, data: bytes) -> Sequence[Event]:
        """The events that these bytes complete, oldest first.

        Raises:
            BadResponse: The bytes are of no such stream.
        """

    def close(self) -> Sequence[Event]:
        """The stream is over: the events that only its end completes."""


class Whole:
    """No stream: the body is one event, whatever its content type."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []

    def feed(self, data: bytes) -> Sequence[Event]:
        self._pieces.append(data)
        return ()

    def close(self) -> Sequence[Event]:
        body = b"".join(self._pieces)
        return [Event(body)] if body else ()


class Lines:
    """An event in each line (NDJSON).  Empty lines are none; the last line needs no end."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._held = 0

    def feed(self, data: bytes) -> Sequence[Event]:
        *lines, rest = data.split(b"\n")
        if lines and self._pieces:
            lines[0] = b"".join((*self._pieces, lines[0]))
            self._pieces.clear()
        if rest:
            self._pieces.append(rest)
        self._held = len(rest) if lines else self._held + len(rest)
        if self._held > MOST_EVENT_BYTES:
            raise BadResponse(f"a line is longer than {MOST_EVENT_BYTES >> 20} MiB", raw=self._pieces[0])
        return [Event(line) for line in map(bytes.strip, lines) if line]

    def close(self) -> Sequence[Event]:
        line = b"".join(self._pieces).strip()
        return [Event(line)] if line else ()


class LengthPrefixed:
    """Messages behind their length, as in gRPC: *flag_bytes*, 0 where nothing is compressed, and *length_bytes*, big-endian."""

    flag_bytes, length_bytes = 1, 4

    def __init__(self) -> None:
        self._data = bytearray()

    def feed(self, data: bytes) -> Sequence[Event]:
        self._data += data
        events, begin, head = [], 0, self.flag_bytes + self.length_bytes
        while len(self._data) >= begin + head:
            if any(self._data[begin : begin + self.flag_bytes]):
                raise BadResponse("a message is compressed, or its length is missing", raw=bytes(self._data[begin:]))
            first = begin + head
            end = first + int.from_bytes(self._data[begin + self.flag_bytes : first], "big")
            if len(self._data) < end:
                break
            events.append(Event(bytes(self._data[first:end])))
            begin = end
        del self._data[:begin]
        return events

    def close(self) -> Sequence[Event]:
        if self._data:
            raise BadResponse("the stream ends inside a message", raw=bytes(self._data))
        return ()


class JsonArray:
    """The elements of one JSON array that grows.  A body of anything else is one event."""

    def __init__(self) -> None:
        self._data = bytearray()
        self._at = self._begin = self._depth = 0  # the next byte to read; where an element began
        self._quoted = self._array = False

    def feed(self, data: bytes) -> Sequence[Event]:
        self._data += data
        events: list[Event] = []
        if not self._array:
            text = self._data.lstrip(_SPACE)
            if not text.startswith(b"["):
                return events
            self._array = True
        while (match := (_INSIDE if self._quoted else _OUTSIDE).search(self._data, self._at)) is not None:
            self._at = match.end()
            mark = match[0]
            if mark == b"\\":
                if self._at == len(self._data):  # what it escapes is still to come
                    self._at -= 1
                    break
                self._at += 1
            elif mark == b'"':
                self._quoted = not self._quoted
            elif mark in b"[{":
                self._depth += 1
                if self._depth == 1:
                    self._begin = self._at
            elif mark in b"]}":
                self._depth -= 1
                self._take(events, self._at - (self._depth == 0), at_end=self._depth <= 1)
            else:
                self._take(events, match.start(), at_end=self._depth == 1)
        else:
            self._at = len(self._data)
        if self._begin:
            del self._data[: self._begin]
            self._at, self._begin = self._at - self._begin, 0
        return events

    def _take(self, events: list[Event], end: int, *, at_end: bool) -> None:
        if at_end:
            element = bytes(self._data[self._begin : end]).strip(_SPACE + b",")
            self._begin = end
            if element:
                events.append(Event(element))

    def close(self) -> Sequence[Event]:
        rest = bytes(self._data).strip(_SPACE + (b",]" if self._array else b""))
        return [Event(rest)] if rest else ()


def framing_of(endpoint: Endpoint) -> type[Framing]:
    """The endpoint's framing.

    Raises:
        TypeError: It is no class with the two methods.
    """
    framing = endpoint.framing
    if isinstance(framing, type) and all(callable(getattr(framing, name, None)) for name in ("feed", "close")):
        return framing
    raise TypeError(f"framing is {framing!r:.80}, not a class with feed(data) and close()")


def accept(framing: type[Framing], *, asked: bool) -> str:
    """The header ``Accept`` of a request, where the endpoint gives none.  *asked*: the run asks for streams."""
    if not asked:
        return "application/json"
    return "text/event-stream" if framing is ServerSentEvents else "application/x-ndjson" if framing is Lines else "*/*"


def event_mark(framing: type[Framing], *, asked: bool) -> bytes | None:
    """``TransportSettings.event_mark`` of a run with this framing.  *asked*: it asks for streams."""
    if not asked or framing in (ServerSentEvents, Whole):
        return None
    return b"\n" if framing is Lines else b""


def is_stream(framing: type[Framing], *, event_stream: bool, asked: bool) -> bool:
    """Whether an answer is a stream.  *event_stream*: by its content type.  *asked*: the run asks for streams.

    Only server-sent events have a content type that every server sends.
    """
    return framing is not Whole and (event_stream or (asked and framing is not ServerSentEvents))


__all__ = [
    "Event", "Framing", "JsonArray", "LengthPrefixed", "Lines", "ServerSentEvents", "Whole", "accept", "framing_of",
    "is_stream",
]  # fmt: skip
