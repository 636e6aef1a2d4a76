"""What a connection tells of the bytes that came."""

from __future__ import annotations

from msgspec import Struct

from aiperf_http2.headers import HeaderList
from aiperf_http2.outbox import Http2Stream


class DataReceived(Struct, frozen=True, gc=False):
    """A piece of a body, without padding.  end: the last of the stream."""

    stream: Http2Stream
    data: bytes
    end: bool


class HeadersReceived(Struct, frozen=True, gc=False):
    """A head; behind another one that is no interim answer, the trailers.  end: the last of the stream."""

    stream: Http2Stream
    fields: HeaderList
    end: bool
    trailers: bool


class StreamReset(Struct, frozen=True, gc=False):
    """A stream has ended before its end.  message: why this side ended it; "" where the peer did."""

    stream: Http2Stream
    code: int
    message: str


class GoingAway(Struct, frozen=True, gc=False):
    """The peer takes no new stream.  unread: open streams of this side that it has not looked at and never will.

    message: text of the peer for people.
    """

    unread: tuple[Http2Stream, ...]
    code: int
    message: str


class SettingsReceived(Struct, frozen=True, gc=False):
    """The peer's settings have changed.  first: its first ones."""

    first: bool


class ConnectionBroken(Struct, frozen=True, gc=False):
    """The peer broke the protocol: the last event.  A GOAWAY with the *code* is ready to be written, and says why, too."""

    code: int
    message: str


Event = DataReceived | HeadersReceived | StreamReset | GoingAway | SettingsReceived | ConnectionBroken
