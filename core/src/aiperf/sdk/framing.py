"""How the bytes of a stream divide into events.

``Endpoint.framing`` is one of these classes, or a class of the author's own with ``feed`` and ``close``.  The kernel makes an
instance for each answer, and stamps an event with the read that completed it.  Bytes may be cut anywhere.

``Lines``, ``LengthPrefixed`` and ``JsonArray`` come with the package that reads answers, and are loaded when they are used.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from aiperf.doors import door
from aiperf.sdk.sse import Event
from aiperf.sdk.sse import Splitter as ServerSentEvents

if TYPE_CHECKING:
    from aiperf_reducer_columns.reduce.framings import JsonArray, LengthPrefixed, Lines

    from aiperf.sdk.endpoint import Endpoint


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


_FRAMINGS = "aiperf_reducer_columns.reduce.framings"
__getattr__ = door(__name__, {}, packages=dict.fromkeys(("JsonArray", "LengthPrefixed", "Lines"), _FRAMINGS))

__all__ = [
    "Event", "Framing", "JsonArray", "LengthPrefixed", "Lines", "ServerSentEvents", "Whole", "accept", "event_mark",
    "framing_of", "is_stream",
]  # fmt: skip
