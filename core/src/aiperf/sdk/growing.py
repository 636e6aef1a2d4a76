"""Streams whose events may repeat the whole text so far, and Readers that decode a batch of events at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import msgspec

from aiperf.errors import BadResponse
from aiperf.sdk.sse import MOST_EVENT_BYTES

_T = TypeVar("_T")
_SURE = 2
"""After so many texts that begin with the whole of the one before, all must."""


class GrowingText:
    """The new text of each event of one answer.

    Where every text begins with the whole of the one before, the difference is new; else each text is.  Until the first text
    that doesn't, a stream of pieces looks like one that grows: what its first pieces seemed to repeat comes with that text.
    *usual*: the server's streams grow unless it is told otherwise, so a text twice at the begin is one text.
    """

    def __init__(self, *, usual: bool = False) -> None:
        self._usual = usual
        self._whole: str | None = ""  # None: the texts are pieces
        self._repeated = ""  # what was taken for repeated
        self._steps = 0

    def new(self, text: str, event: bytes = b"") -> str:
        """What *text* adds; *event* is shown where it can't be.

        Raises:
            BadResponse: The text has grown so far, and now does not begin with the text before it.
        """
        whole = self._whole
        if whole is None or not text:
            return text
        if text.startswith(whole) and (self._steps or self._usual or text != whole):
            if whole:
                self._repeated += whole if self._steps < _SURE else ""
                self._steps += len(text) > len(whole)
            self._whole = text
            return text[len(whole) :]
        if self._steps >= _SURE:
            raise BadResponse(f"the text shrank from {len(whole)} characters to another of {len(text)}", raw=event[:200])
        self._whole = None
        return self._repeated + text


def decode_batch(events: Sequence[bytes], decode: Callable[[bytes], list[_T]]) -> list[_T] | None:
    """Events that are JSON documents, decoded together: *decode* is a typed decoder of a list of them.

    This takes half the time of decoding each.  None where one can't be decoded, is no JSON, or is not one document.
    """
    if sum(map(len, events)) > MOST_EVENT_BYTES:
        return None
    try:
        decoded = decode(b"[%b]" % b",".join(events))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return decoded if len(decoded) == len(events) else None


__all__ = ["GrowingText", "decode_batch"]
