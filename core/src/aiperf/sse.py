"""Server-sent events out of bytes, by the HTML standard's grammar, however the network cut them.

Lines end with LF, CRLF or CR, in any mix, and with nothing else: U+2028 and its like are ordinary text inside JSON.  Two
departures from the standard, because a lost answer is worse than a late one: the last event of a stream needs no blank
line after it, and an event named ``error`` counts even when it carries no data.
"""

from __future__ import annotations

from typing import NamedTuple

_BOM = b"\xef\xbb\xbf"
_LONGEST_RETRY = 18


class Event(NamedTuple):
    """One event: its data lines joined by LF, and its name, empty unless the stream gives one."""

    data: bytes
    event: bytes = b""


_new = tuple.__new__  # half the price of Event(…), and this is paid per token


class Splitter:
    """The events of one stream, read by read.  Where the bytes were cut never changes what comes out.

    last_id: the newest ``id`` field.  retry_ms: the newest ``retry`` field, None if there was none.
    """

    __slots__ = ("_after_cr", "_begun", "_data", "_event", "_idle", "_pieces", "last_id", "retry_ms")

    def __init__(self) -> None:
        self.last_id = b""
        self.retry_ms: int | None = None
        self._begun = False  # past the place where a byte order mark may stand
        self._after_cr = False  # an LF that comes next belongs to the line end before it
        self._idle = True  # between two events, with nothing kept back
        self._pieces: list[bytes] = []  # a line whose end has not come yet
        self._data: list[bytes] = []
        self._event = b""

    def feed(self, data: bytes) -> list[Event]:
        """The events that these bytes complete, oldest first."""
        if self._idle and data[-1:] == b"\n":
            lines = data.splitlines()
            if len(lines) == 2 and not lines[1] and lines[0][:6] == b"data: ":  # nearly every read of nearly every server
                self._begun = True
                return [_new(Event, (lines[0][6:], b""))]
        return self._fed(data)

    def close(self) -> list[Event]:
        """The stream is over: the event that was still open, if there was one.  Nothing may be fed afterwards."""
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
        return events

    def _between(self) -> bool:
        return not (self._pieces or self._data or self._event or self._after_cr)

    def _take(self, lines: list[bytes], events: list[Event]) -> None:
        """Read whole lines; what a blank one completes goes to *events*."""
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
            elif name == b"id":
                if b"\0" not in value:
                    self.last_id = value
            elif name == b"retry" and value.isdigit() and len(value) <= _LONGEST_RETRY:
                self.retry_ms = int(value)
