"""The endpoint contract: a codec between what is meant and what is sent.

An endpoint never awaits, opens a socket or reads a clock; the kernel does, once, for everybody.  Workers import it, so
its module must stay light: msgspec is there already, pydantic is not.
"""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from aiperf.errors import BadResponse
from aiperf.model import Delta, HttpRequest, Turn


class Capabilities(Struct, frozen=True, omit_defaults=True):
    """What an endpoint can do; stands in the manifest, so that it is known without an import.

    path: below the base URL; "" leaves the URL alone.  streaming_path: when streaming has another.
    title: heading of the report's table.  media_in: kinds of media accepted.
    service_kind: word in automatic directory names.  multi_turn: whether history can be sent.  per_chunk_usage: whether token
    counts can be asked for with every piece of a stream.
    """

    path: str = ""
    streaming_path: str | None = None
    streaming: bool = False
    produces_tokens: bool = False
    tokenizes_input: bool = False
    media_in: tuple[str, ...] = ()
    media_out: tuple[str, ...] = ()
    system_message: bool = False
    multi_turn: bool = False
    per_chunk_usage: bool = False
    title: str = "LLM Metrics"
    service_kind: str = "openai"


class Endpoint:
    """One API's dialect.

    *options* has the endpoint's own options as attributes (None where it declares none).  *capabilities* must equal
    the manifest's.  *repeats_envelope* promises that events which differ from each other inside one JSON string alone, and
    of which one says that string as its text, or as its reasoning, and nothing else, all do: the kernel reads such a run at
    a part of the cost.
    """

    capabilities: ClassVar[Capabilities]
    repeats_envelope: ClassVar[bool] = False

    def __init__(self, options: Any = None) -> None:
        self.options = options

    def path(self, *, streaming: bool) -> str:
        """Where a request goes, below the base URL."""
        can = self.capabilities
        return can.streaming_path if streaming and can.streaming_path else can.path

    def encode(self, turn: Turn) -> HttpRequest:
        """The request for a turn.  Deterministic: the same turn gives the same bytes."""
        raise NotImplementedError(f"{type(self).__name__} must define encode(turn)")

    def decode(self, event: bytes) -> Delta | None:
        """What one event says: the data of a server-sent event, or the whole body of an answer that does not stream.

        None: the event says nothing (an end marker).

        Raises:
            BadResponse: The event is not of this dialect, or carries an error in-band.
        """
        raise NotImplementedError(f"{type(self).__name__} must define decode(event)")

    def auth_headers(self, key: str) -> dict[str, str]:
        """How an API key is sent."""
        return {"Authorization": f"Bearer {key}"}


def unreadable(dialect: str, event: bytes, error: Exception) -> BadResponse:
    """What to raise for an event that a typed decoder refused; the message is the same wherever the bytes were cut."""
    if isinstance(error, msgspec.ValidationError):
        return BadResponse(f"{dialect}: not of this dialect: {error}", raw=event)
    return BadResponse(f"{dialect}: not JSON", raw=event, unreadable=True)


def in_band_error(event: bytes) -> BadResponse | None:
    """The error a server says inside a good answer, None if the event is none.

    ``{"error": {"message", "type", "code"}}``, ``{"error": "text"}``, and the error object by itself, which has a
    ``message`` beside ``type``, ``code`` or ``"object": "error"``.
    """
    try:
        said = msgspec.json.decode(event)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    if not isinstance(said, dict):
        return None
    error = said.get("error")
    if not error:
        named = "type" in said or "code" in said or said.get("object") == "error"
        if not named or not isinstance(said.get("message"), str):
            return None
        error = said
    if not isinstance(error, dict):
        return BadResponse(_short(error), raw=event)
    message, kind, code = error.get("message"), error.get("type"), error.get("code")
    if not isinstance(kind, str) or not kind:
        kind = code if isinstance(code, str) and not code.isdigit() else None
    number = int(code) if isinstance(code, int) or (isinstance(code, str) and code.isdigit() and len(code) < 9) else None
    return BadResponse(message if isinstance(message, str) and message else _short(error), raw=event, code=number, kind=kind)


def _short(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def encoded(endpoint: Endpoint, turn: Turn) -> HttpRequest:
    """The turn as *endpoint* sends it; a turn with a payload has that for its body, as it is."""
    request = endpoint.encode(turn)
    return request if turn.payload is None else replace(request, body=msgspec.json.encode(turn.payload))
