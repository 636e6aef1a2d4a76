"""Requests that were longer than the model's context, told by the words of their errors."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

from aiperf.sdk.model import ErrorDetails

_KEPT_BYTES = 16384
"""So much of an answer is kept: errors are shorter."""


class Overheard:
    """The start of an answer, for its error.  *then*: hears the answer, too."""

    __slots__ = ("_pieces", "_size", "_then")

    def __init__(self, then: Callable[[bytes], None] | None) -> None:
        self._then = then
        self._pieces: list[bytes] = []
        self._size = 0

    def feed(self, body: bytes) -> None:
        if self._size < _KEPT_BYTES:
            self._pieces.append(body)
            self._size += len(body)
        if self._then is not None:
            self._then(body)

    def overflowed(self, words: Sequence[str], error: ErrorDetails | None, *, good: bool) -> bool:
        """Whether the request's error has one of the *words*, in any case.

        *error*: of the transport.  *good*: the status was a success; then only an error within a stream counts.
        """
        text = b"".join(self._pieces).decode(errors="replace")
        said = _errors_of(text) if good else text
        said = f"{said} {'' if error is None else error.message}".lower()
        return any(word in said for word in words)


def _errors_of(text: str) -> str:
    """The errors among the events of a stream, or of a whole answer."""
    if '"error"' not in text:
        return ""
    found = []
    for line in text.splitlines():
        try:
            event = json.loads(line.removeprefix("data:"))
        except ValueError:
            continue
        if isinstance(event, dict) and event.get("error"):
            found.append(json.dumps(event["error"], ensure_ascii=False))
    return " ".join(found)
