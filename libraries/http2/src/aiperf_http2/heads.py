"""Heads that come in one frame or in several."""

from __future__ import annotations

from aiperf_http2.checks import unpadded
from aiperf_http2.frames import (
    CONTINUATION,
    END_HEADERS,
    ENHANCE_YOUR_CALM,
    FRAME_SIZE_ERROR,
    HEADERS,
    PADDED,
    PRIORITIZED,
    PROTOCOL_ERROR,
    Http2Error,
)
from aiperf_http2.headers import HeaderDecoder, HeaderList

_MOST_FRAMES = 1000
"""Of one head."""


class HeadReader:
    """Puts heads together.  most_bytes: of a head.  open: one has begun, and its end must come next."""

    def __init__(self, most_bytes: int) -> None:
        self._decoder, self._most_bytes = HeaderDecoder(most_bytes), most_bytes
        self._number = self._flags = self._frames = 0
        self._block = bytearray()
        self.open = False
        self.whole = self._decoder.decode
        """Reads the block of a head in one frame."""

    def read(self, kind: int, flags: int, number: int, payload: bytes) -> tuple[int, HeaderList] | None:
        """A frame of a head, or any other frame: the flags of HEADERS and the fields, None before its end.

        Raises:
            Http2Error: The frame is in a wrong place, or the head can't be read, or is too long.
        """
        if kind == HEADERS and not self.open:
            if not number:
                raise Http2Error(PROTOCOL_ERROR, "HEADERS on stream 0")
            payload = unpadded(payload) if flags & PADDED else payload
            if flags & PRIORITIZED:
                if len(payload) < 5:
                    raise Http2Error(FRAME_SIZE_ERROR, "HEADERS are shorter than their priority")
                payload = payload[5:]
            if flags & END_HEADERS:
                return flags, self.whole(payload)
            self.open, self._number, self._flags, self._frames, self._block = True, number, flags, 1, bytearray(payload)
            return None
        if not self.open:
            raise Http2Error(PROTOCOL_ERROR, "CONTINUATION without HEADERS")
        if kind != CONTINUATION or number != self._number:
            raise Http2Error(PROTOCOL_ERROR, "a head is interrupted by another frame")
        self._block += payload
        self._frames += 1
        if len(self._block) > self._most_bytes or self._frames > _MOST_FRAMES:
            raise Http2Error(ENHANCE_YOUR_CALM, f"a head is longer than {self._most_bytes:,} bytes or {_MOST_FRAMES:,} frames")
        if not flags & END_HEADERS:
            return None
        self.open = False
        return self._flags, self._decoder.decode(bytes(self._block))
