"""Frames that carry neither heads nor bodies."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from aiperf_http2.checks import misshapen
from aiperf_http2.events import Event, GoingAway, SettingsReceived, StreamReset
from aiperf_http2.frames import (
    ACK,
    ENHANCE_YOUR_CALM,
    FLOW_CONTROL_ERROR,
    GOAWAY,
    MOST_WINDOW,
    PING,
    PRIORITY,
    PROTOCOL_ERROR,
    PUSH_PROMISE,
    RST_STREAM,
    SETTINGS,
    STREAM_MASK,
    WINDOW_UPDATE,
    Http2Error,
    frame,
)

if TYPE_CHECKING:
    from aiperf_http2.connection import Http2Connection

_MOST_CONTROL_BYTES = 1 << 20
"""Of answers to the peer's frames that wait to be written; a peer that asks for more doesn't read."""


def control(connection: Http2Connection, kind: int, flags: int, number: int, payload: bytes, events: list[Event]) -> None:
    """Read a frame that is of no head and no body; types that nobody knows are ignored (section 5.5).

    Raises:
        Http2Error: The frame breaks the protocol.
    """
    if kind == RST_STREAM:
        _reset(connection, number, payload, events)
    elif kind == WINDOW_UPDATE:
        _open_window(connection, number, payload, events)
    elif kind == SETTINGS:
        _settings(connection, flags, number, payload, events)
    elif kind == PING:
        if number or len(payload) != 8:
            raise misshapen(number, "PING")
        if not flags & ACK:
            _answer(connection, frame(PING, ACK, 0, payload))
    elif kind == GOAWAY:
        _goaway(connection, number, payload, events)
    elif kind == PUSH_PROMISE:
        raise Http2Error(PROTOCOL_ERROR, "PUSH_PROMISE, though this side has switched push off")
    elif kind == PRIORITY and (not number or len(payload) != 5):
        raise misshapen(not number, "PRIORITY")


def _answer(connection: Http2Connection, data: bytes) -> None:
    """Answer a frame of the peer, unless it never reads the answers."""
    if connection.outbox.control_bytes > _MOST_CONTROL_BYTES:
        raise Http2Error(ENHANCE_YOUR_CALM, "the peer asks for answers and does not read them")
    connection.outbox.add(data)


def _reset(connection: Http2Connection, number: int, payload: bytes, events: list[Event]) -> None:
    if not number or len(payload) != 4:
        raise misshapen(not number, "RST_STREAM")
    stream = connection.streams.pop(number, None)
    if stream is None:
        if connection.never_opened(number):
            raise Http2Error(PROTOCOL_ERROR, f"RST_STREAM on stream {number}, which was never opened")
        return
    connection.outbox.drop(stream)
    stream.open_there = False
    events.append(StreamReset(stream, int.from_bytes(payload, "big"), ""))


def _open_window(connection: Http2Connection, number: int, payload: bytes, events: list[Event]) -> None:
    if len(payload) != 4:
        raise misshapen(False, "WINDOW_UPDATE")
    size = int.from_bytes(payload, "big") & STREAM_MASK
    stream = connection.streams.get(number)
    if number and stream is None:
        if connection.never_opened(number):
            raise Http2Error(PROTOCOL_ERROR, f"WINDOW_UPDATE on stream {number}, which was never opened")
    elif stream is None:
        if not size:
            raise Http2Error(PROTOCOL_ERROR, "WINDOW_UPDATE by 0 bytes")
        connection.outbox.open_window(None, size)
    elif not size:
        connection.break_off(stream, PROTOCOL_ERROR, "WINDOW_UPDATE by 0 bytes", events)
    else:
        connection.outbox.open_window(stream, size)
        if stream.window > MOST_WINDOW:
            connection.break_off(stream, FLOW_CONTROL_ERROR, "the peer opens a stream's window beyond its limit", events)


def _settings(connection: Http2Connection, flags: int, number: int, payload: bytes, events: list[Event]) -> None:
    if number or len(payload) % 6 or (flags & ACK and payload):
        raise misshapen(number, "SETTINGS")
    if flags & ACK:
        return
    for name, value in struct.iter_unpack(">HI", payload):
        connection.outbox.set(name, value, connection.streams.values(), of_server=connection.client)
    _answer(connection, frame(SETTINGS, ACK, 0))
    first, connection.settled = not connection.settled, True
    events.append(SettingsReceived(first))


def _goaway(connection: Http2Connection, number: int, payload: bytes, events: list[Event]) -> None:
    if number or len(payload) < 8:
        raise misshapen(number, "GOAWAY")
    last, code = struct.unpack_from(">II", payload)
    connection.going_away = True
    mine = int(connection.client)
    unread = [each for each in connection.streams.values() if each.number & 1 == mine and each.number > last & STREAM_MASK]
    for stream in unread:
        del connection.streams[stream.number]
        connection.outbox.drop(stream)
        stream.open_there = False
    events.append(GoingAway(tuple(unread), code, payload[8:].decode("utf-8", "replace")))
