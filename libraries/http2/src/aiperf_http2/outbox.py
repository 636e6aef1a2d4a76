"""What a connection has to write: header and control frames in their order, and bodies as the peer's windows allow."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from aiperf_http2.frames import (
    CONTINUATION,
    DATA,
    DEFAULT_FRAME,
    DEFAULT_WINDOW,
    ENABLE_PUSH,
    END_HEADERS,
    END_STREAM,
    FLOW_CONTROL_ERROR,
    HEAD,
    HEADER_TABLE_SIZE,
    HEADERS,
    INITIAL_WINDOW_SIZE,
    MAX_CONCURRENT_STREAMS,
    MAX_FRAME_SIZE,
    MOST_FRAME,
    MOST_WINDOW,
    PROTOCOL_ERROR,
    Http2Error,
    frame,
)
from aiperf_http2.headers import HeaderEncoder, HeaderSet

OUTPUT_BYTES = 65_536
"""Bodies wait behind so many bytes that have not been taken."""


class Http2Stream:
    """One request and its answer.

    number: of the stream.  owner: belongs to the user of the connection.
    window: bytes that the peer takes now.  credit: bytes that the peer may still send.
    open_here, open_there: this side, the peer has not ended it.  headed: the peer's first head is in.
    queued: body pieces to be written, the last of which ends the stream where *ending*; then come the *trailers*, if any.
    blocked: something is queued, and the stream's window is closed.
    """

    __slots__ = (
        "blocked", "credit", "ending", "headed", "number", "open_here", "open_there", "owner", "queued", "trailers", "window",
    )  # fmt: skip

    def __init__(self, number: int, window: int, credit: int) -> None:
        self.number, self.window, self.credit = number, window, credit
        self.owner: object = None
        self.open_here = self.open_there = True
        self.headed = self.ending = self.blocked = False
        self.queued: deque[memoryview] | None = None  # made with the first piece that waits: most never do
        self.trailers: HeaderSet | None = None


class Outbox:
    """Frames to be written.

    window, initial_window, most_frame: the peer's, of the connection, of new streams, and in bytes of a frame's payload.
    most_streams: how many this side may have open; 2**31 - 1 where the peer sets no limit.
    stalls: how often a stream had something to send, and a window of the peer, its own or the connection's, was closed.
    ended: streams whose last byte has been taken since the owner emptied this list.
    """

    def __init__(self) -> None:
        self.headers = HeaderEncoder()
        self.window = self.initial_window = DEFAULT_WINDOW
        self.most_frame, self.most_streams = DEFAULT_FRAME, MOST_WINDOW
        self.stalls = 0
        self.ended: list[Http2Stream] = []
        self._out = bytearray()
        self._ring: deque[Http2Stream] = deque()  # streams with something queued whose own window is open
        self._blocked = 0
        self._closed = False  # the connection's window was closed at the last look, and something waited for it

    @property
    def stalled(self) -> bool:
        """Whether something waits for a window of the peer."""
        return self._closed or self._blocked > 0

    @property
    def waiting(self) -> bool:
        """Whether ``take`` has something now."""
        return bool(self._out) or (bool(self._ring) and (self.window > 0 or self._sends_nothing()))

    @property
    def control_bytes(self) -> int:
        """Bytes of frames that are ready."""
        return len(self._out)

    def add(self, data: bytes) -> None:
        """Write a frame behind those that are ready."""
        self._out += data

    def head(self, stream: Http2Stream, fields: HeaderSet, behind: bytes = b"", *, end: bool) -> None:
        """Write a head: *fields*, and the literals *behind* them; *end*: nothing follows."""
        self._head(stream, self.headers.encode(fields, behind), end=end)

    def _head(self, stream: Http2Stream, block: bytes, *, end: bool) -> None:
        most, flags = self.most_frame, END_STREAM if end else 0
        if len(block) <= most:
            self._out += frame(HEADERS, flags | END_HEADERS, stream.number, block)
        else:
            self._out += frame(HEADERS, flags, stream.number, block[:most])
            for at in range(most, len(block), most):
                last = END_HEADERS if at + most >= len(block) else 0
                self._out += frame(CONTINUATION, last, stream.number, block[at : at + most])
        if end:
            self._end(stream)

    def ask(self, stream: Http2Stream, fields: HeaderSet, behind: bytes, body: bytes) -> None:
        """Write a head, and the whole of a short body behind it; else as ``head`` and ``send``."""
        block, size, out = self.headers.encode(fields, behind), len(body), self._out
        head_bytes = len(block)
        fits = size <= self.window and size <= stream.window and len(out) + head_bytes + size <= OUTPUT_BYTES
        if not fits or size > self.most_frame or head_bytes > self.most_frame:
            self._head(stream, block, end=False)
            self.send(stream, body, end=True)
            return
        pack, number = HEAD.pack, stream.number
        out += pack(head_bytes >> 8, head_bytes & 0xFF, HEADERS, END_HEADERS, number)
        out += block
        out += pack(size >> 8, size & 0xFF, DATA, END_STREAM, number)
        out += body
        self.window -= size
        stream.window -= size
        stream.open_here = False
        self.ended.append(stream)

    def send(self, stream: Http2Stream, data: bytes | memoryview, *, end: bool) -> None:
        """Write a piece of a body; a long one is not copied before it is taken, so it must not change."""
        size = len(data)
        at_once = not stream.queued and size <= self.most_frame and len(self._out) + size <= OUTPUT_BYTES
        if at_once and (not size or (size <= self.window and size <= stream.window)):
            self._frame(stream, data, end=end)
            return
        if stream.queued is None:
            stream.queued = deque()
        if not stream.queued:
            self._ring.append(stream)
        stream.queued.append(memoryview(data))
        stream.ending = end

    def finish(self, stream: Http2Stream, trailers: HeaderSet) -> None:
        """End a stream with trailers, behind what is queued."""
        if stream.queued:
            stream.trailers = trailers
        else:
            self.head(stream, trailers, end=True)

    def drop(self, stream: Http2Stream) -> None:
        """Send nothing more of a stream."""
        stream.open_here = False
        stream.queued = None
        if stream.blocked:
            stream.blocked = False
            self._blocked -= 1

    def take(self, most: int = OUTPUT_BYTES) -> bytes:
        """The next bytes to write, not many more than *most*; b"" where there are none, or windows are closed."""
        ring = self._ring
        while ring and len(self._out) < most:
            stream = ring[0]
            if not stream.queued:  # dropped
                ring.popleft()
                continue
            piece = stream.queued[0]
            size = min(len(piece), self.most_frame, max(0, self.window), max(0, stream.window))
            if not size and piece.nbytes:
                if stream.window <= 0:
                    ring.popleft()
                    stream.blocked = True
                    self._blocked += 1
                    self.stalls += 1
                    continue
                if self._pass_to_one_without_bytes():
                    continue
                self.stalls += not self._closed
                self._closed = True
                break
            ring.popleft()
            self._take_piece(stream, stream.queued, size)
        data = bytes(self._out)
        self._out.clear()
        return data

    def _take_piece(self, stream: Http2Stream, queued: deque[memoryview], size: int) -> None:
        piece = queued[0]
        whole = size == len(piece)
        if whole:
            queued.popleft()
        else:
            queued[0] = piece[size:]
        last = whole and not queued
        self._frame(stream, piece[:size], end=last and stream.ending and stream.trailers is None)
        if not last:
            self._ring.append(stream)
        elif stream.trailers is not None:
            self.head(stream, stream.trailers, end=True)

    def _sends_nothing(self) -> bool:
        return any(stream.queued and not stream.queued[0].nbytes for stream in self._ring)

    def _pass_to_one_without_bytes(self) -> bool:
        """Bring a stream that only ends to the front: it needs no window.  Whether there is one."""
        for _ in range(len(self._ring)):
            if self._ring[0].queued and not self._ring[0].queued[0].nbytes:
                return True
            self._ring.rotate(-1)
        return False

    def _frame(self, stream: Http2Stream, data: bytes | memoryview, *, end: bool) -> None:
        size = len(data)
        self._out += HEAD.pack(size >> 8, size & 0xFF, DATA, END_STREAM if end else 0, stream.number)
        self._out += data
        self.window -= size
        stream.window -= size
        if end:
            self._end(stream)

    def _end(self, stream: Http2Stream) -> None:
        stream.open_here = False
        self.ended.append(stream)

    def open_window(self, stream: Http2Stream | None, size: int) -> None:
        """The peer takes *size* more bytes, of a stream, or of the connection (None).

        Raises:
            Http2Error: No window can be so large.
        """
        if stream is None:
            self.window += size
            if self.window > MOST_WINDOW:
                raise Http2Error(FLOW_CONTROL_ERROR, "the server opens the connection's window beyond its limit")
            self._closed = self._closed and self.window <= 0
            return
        stream.window += size
        if stream.blocked and stream.window > 0:
            stream.blocked = False
            self._blocked -= 1
            self._ring.append(stream)

    def set(self, name: int, value: int, streams: Iterable[Http2Stream], *, of_server: bool) -> None:
        """Keep to a setting of the peer.  *streams*: open ones.

        Raises:
            Http2Error: It must not have this value.
        """
        if name == INITIAL_WINDOW_SIZE:
            if value > MOST_WINDOW:
                raise Http2Error(FLOW_CONTROL_ERROR, f"SETTINGS_INITIAL_WINDOW_SIZE is {value}")
            self._resize_windows(value, streams)
        elif name == MAX_FRAME_SIZE:
            if not DEFAULT_FRAME <= value <= MOST_FRAME:
                raise Http2Error(PROTOCOL_ERROR, f"SETTINGS_MAX_FRAME_SIZE is {value}")
            self.most_frame = value
        elif name == MAX_CONCURRENT_STREAMS:
            self.most_streams = min(value, MOST_WINDOW)
        elif name == HEADER_TABLE_SIZE:
            self.headers.limit(value)
        elif name == ENABLE_PUSH and (value > 1 or (of_server and value)):
            raise Http2Error(PROTOCOL_ERROR, f"SETTINGS_ENABLE_PUSH is {value}")

    def _resize_windows(self, initial: int, streams: Iterable[Http2Stream]) -> None:
        """The peer changes the window of all streams."""
        change, self.initial_window = initial - self.initial_window, initial
        for stream in streams:
            self.open_window(stream, change)
            if stream.window > MOST_WINDOW:
                raise Http2Error(FLOW_CONTROL_ERROR, "the server opens a stream's window beyond its limit")
