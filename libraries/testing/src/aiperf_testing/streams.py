"""Streams of answers, made of their events, for each framing of the kernel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import cycle

from aiperf.sdk.framing import Framing, JsonArray, LengthPrefixed, Lines, ServerSentEvents, Whole


def _sent_events(events: Sequence[tuple[bytes, str | None]]) -> bytes:
    ends, stream = cycle((b"\r\n", b"\n", b"\r")), b""  # the standard has all three, and servers mix them
    for event, name in events:
        line = b"" if name is None else b"event: %b%b" % (name.encode(), next(ends))
        stream += b"%bdata: %b%b" % (line, event.replace(b"\n", b"\ndata: "), 2 * next(ends))
    return stream


JOINS: dict[type[Framing], Callable[[Sequence[tuple[bytes, str | None]]], bytes]] = {
    ServerSentEvents: _sent_events,
    Lines: lambda events: b"".join(event + b"\n" for event, _ in events),
    LengthPrefixed: lambda events: b"".join(b"\0" + len(event).to_bytes(4, "big") + event for event, _ in events),
    JsonArray: lambda events: b"[" + b"\n,\r\n".join(event for event, _ in events) + b"]",
    Whole: lambda events: b"".join(event for event, _ in events),
}
"""The bytes of a stream, by its framing."""

__all__ = ["JOINS"]
