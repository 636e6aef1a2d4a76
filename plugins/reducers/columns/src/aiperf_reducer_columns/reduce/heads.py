"""What the head of an answer says of its body: an encoding, a type, another place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aiperf.parts.segments import Read
from aiperf.sdk.endpoint import in_band_error
from aiperf.sdk.errors import BadResponse
from aiperf.sdk.framing import ServerSentEvents
from aiperf.sdk.redaction import without_secrets
from aiperf.sdk.transport import END_MARKER

from aiperf_reducer_columns.reduce.encodings import decoder

_MOST_BYTES = 1 << 28
"""Of an answer, decoded: a few bytes can stand for a gigabyte."""


def field_of(head: Mapping[str, Any] | None, name: str) -> str:
    """The value of a header of the journal's text ``head``; "" where it has none."""
    pairs = () if head is None else head["headers"]
    return next((value.strip() for key, value in pairs if key.lower() == name), "")


def encoding_of(head: Mapping[str, Any] | None) -> str:
    """The encoding of the body, in lower case; "" where there is none."""
    encoding = field_of(head, "content-encoding").lower()
    return "" if encoding == "identity" else encoding


def decoded(reads: list[Read], encoding: str, *, asked: str) -> list[Read]:
    """The reads with the part of the body that each completes.  *asked*: the run's header ``Accept-Encoding``.

    Raises:
        BadResponse: Nobody asked for the encoding, it is unknown here, its package is missing, or the bytes are not of it.
    """
    if encoding not in (each.partition(";")[0].strip().lower() for each in asked.split(",")) and "*" not in asked:
        raise BadResponse(f"the answer is encoded as {encoding}, and no header Accept-Encoding asked for that")
    decode = decoder(encoding, b"".join(read[3] for read in reads[:2])[:2])
    rest, pieces = _MOST_BYTES, []
    try:
        for stamp, read, hidden, body in reads:
            piece = decode(body, rest)
            rest -= len(piece)
            if rest <= 0:
                raise BadResponse(f"the answer is longer than {_MOST_BYTES:,} bytes when it is decoded")
            pieces.append((stamp, read, hidden, piece))
    except ValueError as error:
        raise BadResponse(f"the answer says that it is encoded as {encoding}, and is not: {error}") from error
    return pieces


def kind_of(head: Mapping[str, Any] | None) -> str:
    """Words on a type that is neither JSON nor an event stream, for the end of a sentence; "" for any other."""
    kind = field_of(head, "content-type").partition(";")[0].lower()
    return f"; the answer is {kind}" if kind and "json" not in kind and kind != "text/event-stream" else ""


def said_in(body: bytes, head: Mapping[str, Any] | None) -> str:
    """The text of a body with an error status: all of it; of an event stream the message in its first event with data."""
    text = body.decode("utf-8", "replace")
    if field_of(head, "content-type").partition(";")[0].strip().lower() != "text/event-stream":
        return text
    splitter = ServerSentEvents()
    events = (*splitter.feed(body), *splitter.close())
    data = next((event.data for event in events if event.data not in (b"", END_MARKER)), None)
    if data is None:
        return text
    error = in_band_error(data)
    return data.decode("utf-8", "replace") if error is None else error.message


def redirect_of(status: int, head: Mapping[str, Any] | None) -> str:
    """A sentence on a redirect; "" where the answer is none."""
    location = field_of(head, "location")
    return f"redirected to {without_secrets(location)}, which is not followed" if 300 <= status < 400 and location else ""
