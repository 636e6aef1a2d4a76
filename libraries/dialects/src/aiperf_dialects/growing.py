"""Readers of typed events, for streams that may repeat the whole text so far."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Generic, TypeVar

import msgspec
from aiperf.sdk.endpoint import Reader, decoded, in_band_error
from aiperf.sdk.model import Delta
from aiperf.sdk.transport import END_MARKER

_T = TypeVar("_T")
_SURE = 2
"""After so many texts that begin with the whole of the one before, all must."""


class GrowingText:
    """The new text of each event of one answer.

    Where every text begins with the whole of the one before, the difference is new; else each text is.  Until the first text
    that doesn't, a stream of pieces looks like one that grows: what its first pieces seemed to repeat comes with that text.
    *usual*: the server's streams grow unless it is told otherwise, so a text twice at the begin is one text.

    A text that has grown so far may lose its end: a stop string, or a character that was not whole.  What it has in common with
    the text before counts, and what is behind that is new.  took_back: whether this happened.
    """

    def __init__(self, *, usual: bool = False) -> None:
        self._usual = usual
        self._whole: str | None = ""  # None: the texts are pieces
        self._repeated = ""  # what was taken for repeated
        self._steps = 0
        self.took_back = False

    @property
    def whole(self) -> str | None:
        """The whole text so far; None where the texts are pieces."""
        return self._whole

    def new(self, text: str) -> str:
        """What *text* adds."""
        whole = self._whole
        if whole is None or not text:
            return text
        if self._steps >= _SURE or (self._usual and whole != text and whole.startswith(text)):
            self._whole = text
            if text.startswith(whole):
                return text[len(whole) :]
            self.took_back = True
            pairs = enumerate(zip(whole, text, strict=False))
            return text[next((at for at, (one, other) in pairs if one != other), len(text)) :]
        if text.startswith(whole) and (self._steps or self._usual or text != whole):
            if whole:
                self._repeated += whole
                self._steps += len(text) > len(whole)
            self._whole = text
            return text[len(whole) :]
        self._whole = None
        return self._repeated + text


class BatchReader(Reader, Generic[_T]):
    """Reads events that are JSON documents of one type, a batch at a time.

    A subclass defines ``delta``, and the class attributes.  dialect: its name, for messages.  event_type: a msgspec Struct,
    for whole answers as well.  Empty events and ``[DONE]`` have no content.
    """

    dialect: ClassVar[str]
    event_type: ClassVar[type[Any]]
    _decoder: ClassVar[msgspec.json.Decoder[Any]]

    def __init_subclass__(cls) -> None:
        cls._decoder = msgspec.json.Decoder(cls.event_type)

    def delta(self, event: _T, data: bytes) -> Delta | None:
        """What an event says; *data* are its bytes.

        Raises:
            BadResponse: As :meth:`Reader.feed`.
        """
        raise NotImplementedError(f"{type(self).__name__} must define delta(event, data)")

    def feed(self, events: Sequence[bytes], names: Sequence[str | None]) -> Sequence[Delta | None]:
        ended = bool(events) and events[-1] == END_MARKER
        batch = events[:-1] if ended else events
        try:
            read = list(map(self._decoder.decode, batch))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):  # one that is no document, or an error
            return list(map(self.each, events))
        deltas = list(map(self.delta, read, batch))
        return [*deltas, None] if ended else deltas

    def each(self, data: bytes) -> Delta | None:
        """What an event says that is decoded by itself."""
        return None if data == END_MARKER or not data else self.delta(decoded(self.dialect, self._decoder.decode, data), data)

    def empty(self, data: bytes) -> Delta:
        """For an event without content, which may be an error.

        Raises:
            BadResponse: It is one.
        """
        failure = in_band_error(data)
        if failure is not None:
            raise failure
        return Delta()


__all__ = ["BatchReader", "GrowingText"]
