"""Chat whose answers are JSON text sequences (RFC 7464): each text between a record separator and a line feed."""

from __future__ import annotations

from collections.abc import Sequence

from aiperf import BadResponse
from aiperf.sdk.sse import Event

from acme_dialects.llamas import Llamas

_SEPARATOR = b"\x1e"
_MOST_BYTES = 1 << 20


class TextSequence:
    """An event for each text, without its separator and line feed."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> Sequence[Event]:
        *texts, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > _MOST_BYTES:
            raise BadResponse("a text is longer than 1 MiB", raw=self._rest)
        return [Event(text.removeprefix(_SEPARATOR)) for text in texts if text != _SEPARATOR]

    def close(self) -> Sequence[Event]:
        if self._rest:
            raise BadResponse("the stream ends inside a text", raw=self._rest)
        return ()


class Sequences(Llamas):
    """Answers of ``llamas`` in a framing of its own."""

    framing = TextSequence
