"""Streams other than server-sent events: lines, frames with a length, the elements of an array."""

from __future__ import annotations

import re
from collections.abc import Sequence

from aiperf import BadResponse
from aiperf.sdk.sse import MOST_EVENT_BYTES, Event

_OUTSIDE, _INSIDE = re.compile(rb'["\[\]{},]'), re.compile(rb'["\\]')
_SPACE = b" \t\r\n"


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
