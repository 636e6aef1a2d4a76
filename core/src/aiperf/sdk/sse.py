"""Parses server-sent events by the HTML standard's grammar, wherever the network cut the bytes.

Lines end with LF, CRLF or CR, in any mix, and with nothing else: U+2028 is ordinary text inside JSON.  Two departures from
the standard avoid lost answers: the last event of a stream needs no blank line after it, and an event named ``error``
counts without data.
"""

from __future__ import annotations

from typing import NamedTuple

MOST_EVENT_BYTES = 16 << 20
"""A stream whose next event is longer has no readable end."""
_BOM = b"\xef\xbb\xbf"


class Event(NamedTuple):
    """One event: its data lines joined by LF, and its name, empty where the stream has none."""

    data: bytes
    event: bytes = b""

    @property
    def name(self) -> str | None:
        """The event's name as text; None where the stream has none."""
        return self.event.decode("utf-8", "replace") if self.event else None


_new = tuple.__new__  # costs half of Event(…), and runs once per token


class Splitter:
    """Splits one stream into events, read by read.  The result doesn't depend on where the bytes were cut."""

    __slots__ = ("_after_cr", "_begun", "_data", "_event", "_held", "_idle", "_pieces")

    def __init__(self) -> None:
        self._begun = False  # past the place of a byte order mark
        self._after_cr = False  # the next LF belongs to the previous line end
        self._idle = True  # between two events, without buffered bytes
        self._pieces: list[bytes] = []  # parts of an unfinished line
        self._data: list[bytes] = []
        self._event = b""
        self._held = 0  # bytes behind the last event

    def feed(self, data: bytes) -> list[Event]:
        """The events that these bytes complete, oldest first.

        Raises:
            BadResponse: An event is longer than MOST_EVENT_BYTES.
        """
        if self._idle and data[-1:] == b"\n":
            lines = data.splitlines()
            if len(lines) == 2 and not lines[1] and lines[0][:6] == b"data: ":  # nearly every read of nearly every server
                self._begun = True
                return [_new(Event, (lines[0][6:], b""))]
        return self._fed(data)

    def close(self) -> list[Event]:
        """End the stream: the last event, where it lacked its blank line.  Nothing may be fed afterwards."""
        events: list[Event] = []
        self._take([b"".join(self._pieces), b""], events)
        self._pieces.clear()
        return events

    def _fed(self, data: bytes) -> list[Event]:
        events: list[Event] = []
        if not self._begun:
            data = b"".join((*self._pieces, data))
            self._pieces.clear()
            if len(data) < len(_BOM) and _BOM.startswith(data):
                self._pieces.append(data)
                self._idle = not data
                return events
            self._begun = True
            data = data.removeprefix(_BOM)
        if self._after_cr and data:
            self._after_cr = False
            data = data.removeprefix(b"\n")
        if not data:
            self._idle = self._between()
            return events
        lines = data.splitlines()  # of bytes: at LF, CRLF and CR only
        last = data[-1:]
        rest = b"" if last in (b"\n", b"\r") else lines.pop()
        if self._pieces and lines:
            lines[0] = b"".join((*self._pieces, lines[0]))
            self._pieces.clear()
        self._take(lines, events)
        if rest:
            self._pieces.append(rest)
        self._after_cr = last == b"\r"
        self._idle = self._between()
        self._held = 0 if events or self._idle else self._held + len(data)
        if self._held > MOST_EVENT_BYTES:
            from aiperf.errors import BadResponse  # the grammar stands alone

            begin = b"\n".join((*self._data, *self._pieces))[:200]
            raise BadResponse(f"an event is longer than {MOST_EVENT_BYTES >> 20} MiB", raw=begin)
        return events

    def _between(self) -> bool:
        return not (self._pieces or self._data or self._event or self._after_cr)

    def _take(self, lines: list[bytes], events: list[Event]) -> None:
        """Parse whole lines; a blank line appends the event before it to *events*."""
        data = self._data
        for line in lines:
            if line[:6] == b"data: ":
                data.append(line[6:])
                continue
            if not line:
                if data or self._event == b"error":
                    events.append(_new(Event, (data[0] if len(data) == 1 else b"\n".join(data), self._event)))
                    data.clear()
                self._event = b""
                continue
            name, _, value = line.partition(b":")
            value = value.removeprefix(b" ")
            if name == b"data":
                data.append(value)
            elif name == b"event":
                self._event = value


class Messages:
    """Stands in for a Splitter where each read is one whole message."""

    def feed(self, data: bytes) -> list[Event]:
        """The message as an event."""
        return [_new(Event, (data, b""))]

    def close(self) -> list[Event]:
        """Nothing: no message is left."""
        return []


__all__ = ["MOST_EVENT_BYTES", "Event", "Messages", "Splitter"]
