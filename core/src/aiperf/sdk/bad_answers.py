"""Answers that are errors, or of another dialect, for endpoints that read JSON.

:mod:`aiperf.sdk.endpoint` has these names, too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from aiperf.errors import BadResponse

_T = TypeVar("_T")


def unreadable(dialect: str, event: bytes, error: Exception) -> BadResponse:
    """The exception for an event that a typed decoder refused; its message doesn't depend on where the bytes were cut."""
    if isinstance(error, msgspec.ValidationError):
        return BadResponse(f"{dialect}: not of this dialect: {error}", raw=event)
    return BadResponse(f"{dialect}: not JSON", raw=event, unreadable=True)


def decoded(dialect: str, decode: Callable[[bytes], _T], event: bytes) -> _T:
    """The event as the typed decoder reads it.

    Raises:
        BadResponse: The event carries an error, or is not of this dialect.
    """
    try:
        return decode(event)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise in_band_error(event) or unreadable(dialect, event, error) from error


def in_band_error(event: bytes) -> BadResponse | None:
    """The error inside an answer with a good status; None where the event is no error.

    Accepts ``{"error": {"message", "type", "code"}}``, ``{"error": "text"}`` with ``error_type``, and a bare error object,
    which has a ``message`` beside ``type``, ``code`` or ``"object": "error"``.
    """
    try:
        body = msgspec.json.decode(event)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    if not isinstance(body, dict):
        return None
    error = body.get("error")
    if not error:
        bare = "type" in body or "code" in body or body.get("object") == "error"
        if not bare or not isinstance(body.get("message"), str):
            return None
        error = body
    if not isinstance(error, dict):
        kind = body.get("error_type")
        return BadResponse(_short(error), raw=event, kind=kind if isinstance(kind, str) else None)
    message, kind, code = error.get("message"), error.get("type"), error.get("code")
    if not isinstance(kind, str) or not kind:
        kind = code if isinstance(code, str) and not code.isdigit() else None
    number = int(code) if isinstance(code, int) or (isinstance(code, str) and code.isdigit() and len(code) < 9) else None
    return BadResponse(message if isinstance(message, str) and message else _short(error), raw=event, code=number, kind=kind)


def _short(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


__all__ = ["decoded", "in_band_error", "unreadable"]
