"""One connection of HTTP/2 without I/O: bytes in, events out; what is to be written waits in the outbox."""

from __future__ import annotations

import struct

from aiperf_http2.checks import fault_of, first_words, unpadded
from aiperf_http2.control import control
from aiperf_http2.events import ConnectionBroken, DataReceived, Event, HeadersReceived, StreamReset
from aiperf_http2.frames import (
    ACK,
    CONTINUATION,
    DEFAULT_FRAME,
    ENABLE_PUSH,
    END_HEADERS,
    END_STREAM,
    ENHANCE_YOUR_CALM,
    FLOW_CONTROL_ERROR,
    FRAME_SIZE_ERROR,
    GOAWAY,
    HEAD,
    HEAD_BYTES,
    HEADERS,
    INITIAL_WINDOW_SIZE,
    MAX_CONCURRENT_STREAMS,
    MAX_HEADER_LIST_SIZE,
    MOST_WINDOW,
    NO_ERROR,
    PADDED,
    PREFACE,
    PRIORITIZED,
    PROTOCOL_ERROR,
    REFUSED_STREAM,
    RST_STREAM,
    SETTINGS,
    STREAM_CLOSED,
    STREAM_MASK,
    Http2Error,
    frame,
    settings_frame,
    window_update,
)
from aiperf_http2.headers import HeaderList, HeaderSet
from aiperf_http2.heads import HeadReader
from aiperf_http2.outbox import Http2Stream, Outbox

_MOST_EMPTY = 1000
"""Frames in a row that carry nothing."""
_WHOLE_HEAD = END_HEADERS | PADDED | PRIORITIZED
"""Flags of HEADERS of which a usual head has the first alone."""


class Http2Connection:
    """One side of a connection, which begins with what ``outbox.take()`` gives.

    client: this side sends requests.  max_streams: of the peer's that may be open at once.
    window: in bytes, of what the peer may send on each stream, and on the connection; it is opened again whenever half of it
    is used, so that the default never stops a peer.  most_head_bytes: of a head.

    streams: open ones, by number.
    settled: the peer's first settings are in.  going_away: the peer takes no more streams, or this side has used all numbers.
    """

    # Larger than 250 lines: a call for each frame would cost as much as reading it.

    def __init__(
        self, *, client: bool, max_streams: int = 100, window: int = MOST_WINDOW, most_head_bytes: int = 1 << 16
    ) -> None:  # fmt: skip
        self.client, self.outbox = client, Outbox()
        self.streams: dict[int, Http2Stream] = {}
        self.settled = self.going_away = False
        self._heads = HeadReader(most_head_bytes)
        self._window, self._credit, self._max_streams = window, window, max_streams
        self._refill = window // 2
        self._next, self._last = (1 if client else 2), 0  # numbers: of this side's next stream, of the peer's last
        self._held, self._need = bytearray(), 0 if client else len(PREFACE)
        self._greeted = client  # whether the client's preface is in
        self._empty, self._broken = 0, False
        settings = {MAX_HEADER_LIST_SIZE: most_head_bytes, INITIAL_WINDOW_SIZE: window}
        settings |= {ENABLE_PUSH: 0} if client else {MAX_CONCURRENT_STREAMS: max_streams}
        self.outbox.add((PREFACE if client else b"") + settings_frame(settings))
        if window > 65_535:
            self.outbox.add(window_update(0, window - 65_535))
        else:
            self._credit = 65_535  # no setting makes it smaller

    # Sending

    def open(self, fields: HeaderSet, behind: bytes = b"", *, end: bool) -> Http2Stream:
        """Begin a stream with a head: *fields*, and the literals *behind* them.

        The caller keeps to ``outbox.most_streams``, and opens none while the connection is ``going_away``.
        """
        stream = Http2Stream(self._next, self.outbox.initial_window, self._window)
        self._next += 2
        self.going_away = self.going_away or self._next > MOST_WINDOW
        self.streams[stream.number] = stream
        self.outbox.head(stream, fields, behind, end=end)
        return stream

    def ask(self, fields: HeaderSet, behind: bytes, body: bytes) -> Http2Stream:
        """Begin a stream with a head, as :meth:`open` does, and with its whole *body*, which is not empty."""
        stream = Http2Stream(self._next, self.outbox.initial_window, self._window)
        self._next += 2
        self.going_away = self.going_away or self._next > MOST_WINDOW
        self.streams[stream.number] = stream
        self.outbox.ask(stream, fields, behind, body)
        return stream

    def head(self, stream: Http2Stream, fields: HeaderSet, *, end: bool = False) -> None:
        """Answer with a head, an interim one included."""
        if stream.open_here:
            self.outbox.head(stream, fields, end=end)
            if end:
                self._settle(stream)

    def send(self, stream: Http2Stream, data: bytes | memoryview, *, end: bool = False) -> None:
        """Send a piece of a body, as soon as the peer's windows allow; nothing of a stream that is over."""
        if stream.open_here:
            self.outbox.send(stream, data, end=end)
            if end:
                self._settle(stream)

    def finish(self, stream: Http2Stream, trailers: HeaderSet) -> None:
        """Send trailers behind all of the body; they end the stream."""
        if stream.open_here:
            self.outbox.finish(stream, trailers)
            self._settle(stream)

    def reset(self, stream: Http2Stream, code: int) -> None:
        """End a stream at once: nothing more of it is sent or told."""
        if self.streams.pop(stream.number, None) is not None:
            self.outbox.drop(stream)
            stream.open_there = False
            self.outbox.add(frame(RST_STREAM, 0, stream.number, code.to_bytes(4, "big")))

    def take(self) -> bytes:
        """The next bytes to write."""
        data = self.outbox.take()
        for stream in self.outbox.ended:
            if not stream.open_there:
                self.streams.pop(stream.number, None)
        return data

    def say_goodbye(self, code: int = NO_ERROR, message: str = "") -> None:
        """Take no more streams of the peer."""
        last = struct.pack(">II", self._last, code)
        self.outbox.add(frame(GOAWAY, 0, 0, last + message.encode()))

    def _settle(self, stream: Http2Stream) -> None:
        """Forget a stream that both sides have ended."""
        if not (stream.open_here or stream.open_there):
            self.streams.pop(stream.number, None)

    # Receiving

    def receive(self, data: bytes) -> list[Event]:
        """Read bytes, cut anywhere: what they complete, in its order; nothing more behind ``ConnectionBroken``."""
        events: list[Event] = []
        if self._broken:
            return events
        if self._held:
            self._held += data
            if len(self._held) < self._need:
                return events
            data = bytes(self._held)
            self._held = bytearray()
        try:
            at = 0 if self._greeted else self._greet(data)
            at = self._read(data, at, events) if self._greeted else at
        except Http2Error as error:
            self._broken = True
            self.say_goodbye(error.code, str(error))
            events.append(ConnectionBroken(error.code, str(error)))
            return events
        if at < len(data):
            self._held += data[at:]
        return events

    def _greet(self, data: bytes) -> int:
        """Read the client's preface; how many bytes it has, 0 before all of it is in."""
        if not PREFACE.startswith(data[: len(PREFACE)]):
            raise Http2Error(PROTOCOL_ERROR, "the client does not begin as HTTP/2 does")
        self._greeted = len(data) >= len(PREFACE)
        return len(PREFACE) if self._greeted else 0

    def _read(self, data: bytes, at: int, events: list[Event]) -> int:
        """Read whole frames; where the first that isn't whole begins."""
        size, streams, unpack, used = len(data), self.streams, HEAD.unpack_from, 0
        append, heads = events.append, self._heads
        while size - at >= HEAD_BYTES:
            high, low, kind, flags, number = unpack(data, at)
            length = high << 8 | low
            if not self.settled and (kind != SETTINGS or flags & ACK or number):
                raise Http2Error(PROTOCOL_ERROR, first_words(data[at:]))
            if length > DEFAULT_FRAME:
                raise Http2Error(FRAME_SIZE_ERROR, f"a frame has {length:,} bytes, and {DEFAULT_FRAME:,} are allowed")
            begin = at + HEAD_BYTES
            end = begin + length
            if end > size:
                self._need = end - at
                break
            at = end
            # What follows is done for each head and each chunk.
            if kind:
                if kind == HEADERS and flags & _WHOLE_HEAD == END_HEADERS and number & STREAM_MASK and not heads.open:
                    self._headed(flags, heads.whole(data[begin:end]), number & STREAM_MASK, events)
                else:
                    self._other(kind, flags, number & STREAM_MASK, data[begin:end], events)
                continue
            if heads.open:
                raise Http2Error(PROTOCOL_ERROR, "a head is interrupted by another frame")
            used += length
            stream = streams.get(number & STREAM_MASK)
            if stream is None or not stream.open_there:
                self._late(number & STREAM_MASK, "DATA", stream, events)
                continue
            stream.credit -= length
            last = flags & END_STREAM
            if stream.credit <= self._refill and not last:
                self._refill_stream(stream)
            piece = data[begin:end] if not flags & PADDED else unpadded(data[begin:end])
            if not piece:
                self._idle(last)
            else:
                self._empty = 0
            if not stream.headed:
                self.break_off(stream, PROTOCOL_ERROR, "an answer begins without its head", events)
                continue
            if last:
                stream.open_there = False
                if not stream.open_here:
                    del streams[stream.number]
            append(DataReceived(stream, piece, bool(last)))
        else:
            self._need = HEAD_BYTES
        if used:
            self._use(used)
        return at

    def _use(self, size: int) -> None:
        """Count bytes that the peer has sent on the connection, and open the window again where half of it is used."""
        self._credit -= size
        if self._credit < 0:
            raise Http2Error(FLOW_CONTROL_ERROR, "the peer sent more than the connection's window")
        if self._credit <= self._refill:
            full = max(self._window, 65_535)
            self.outbox.add(window_update(0, full - self._credit))
            self._credit = full

    def _refill_stream(self, stream: Http2Stream) -> None:
        if stream.credit < 0:
            raise Http2Error(FLOW_CONTROL_ERROR, "the peer sent more than a stream's window")
        if (missing := self._window - stream.credit) > 0:
            self.outbox.add(window_update(stream.number, missing))
            stream.credit = self._window

    def _idle(self, last: int) -> None:
        """Count frames that carry nothing, in a row."""
        self._empty = 0 if last else self._empty + 1
        if self._empty > _MOST_EMPTY:
            raise Http2Error(ENHANCE_YOUR_CALM, f"{_MOST_EMPTY:,} frames in a row carry nothing")

    def _late(self, number: int, kind: str, stream: Http2Stream | None, events: list[Event]) -> None:
        """A frame of a stream that is not open: harmless where this side has ended the stream."""
        if stream is not None:
            self.break_off(stream, STREAM_CLOSED, f"{kind} behind the end of a stream", events)
        elif self.never_opened(number):
            raise Http2Error(PROTOCOL_ERROR, f"{kind} on stream {number}, which was never opened")

    def never_opened(self, number: int) -> bool:
        """Whether no stream has had this number."""
        if number & 1 == int(self.client):
            return number >= self._next
        return number == 0 or number > self._last

    def break_off(self, stream: Http2Stream, code: int, message: str, events: list[Event]) -> None:
        """End a stream whose peer broke the protocol."""
        self.reset(stream, code)
        events.append(StreamReset(stream, code, message))

    def _other(self, kind: int, flags: int, number: int, payload: bytes, events: list[Event]) -> None:
        """Read a frame that is not DATA."""
        if kind in (HEADERS, CONTINUATION) or self._heads.open:
            if (head := self._heads.read(kind, flags, number, payload)) is not None:
                self._headed(*head, number, events)
        else:
            control(self, kind, flags, number, payload, events)

    def _headed(self, flags: int, fields: HeaderList, number: int, events: list[Event]) -> None:
        """A whole head."""
        stream, last = self.streams.get(number), bool(flags & END_STREAM)
        if stream is None and not self.client and number & 1 and number > self._last:
            self._last = number
            stream = Http2Stream(number, self.outbox.initial_window, self._window)
            self.streams[number] = stream
            if len(self.streams) > self._max_streams:
                self.reset(stream, REFUSED_STREAM)
                return
        elif stream is None or not stream.open_there:
            self._late(number, "HEADERS", stream, events)
            return
        trailers = stream.headed
        if (fault := fields.faults.get((trailers, last))) is None:
            fault = fields.faults[trailers, last] = fault_of(fields, client=self.client, trailers=trailers, last=last)
        if fault:
            self.break_off(stream, PROTOCOL_ERROR, fault, events)
            return
        stream.headed = trailers or not self.client or not fields[0][1].startswith("1")
        if last:
            stream.open_there = False
            if not stream.open_here:
                del self.streams[number]
        events.append(HeadersReceived(stream, fields, last, trailers))
