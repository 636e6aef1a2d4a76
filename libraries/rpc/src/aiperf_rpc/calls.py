"""The status of a call."""

from __future__ import annotations

from collections.abc import Mapping

from aiperf import BadResponse
from aiperf_http2.grpc import CONTENT_TYPE, decoded_message, http_code, status_name

UNIMPLEMENTED = (404, 501)
"""Codes of a call to a method that the server doesn't have."""


def check_status(trailers: Mapping[str, str]) -> None:
    """Judge the trailers of a call; those without a status, as of HTTP, say nothing.

    Raises:
        BadResponse: The call failed: the server's message, the name of its status, and the HTTP status that says the same.
    """
    text = trailers.get("grpc-status")
    if text is None or text == "0":
        return
    status = int(text) if text.isascii() and text.isdigit() and len(text) < 4 else 2
    name = status_name(status)
    message = decoded_message(trailers.get("grpc-message", "")) or f"the call ended with {name} and no message"
    raise BadResponse(message, code=http_code(status), kind=name)


__all__ = ["CONTENT_TYPE", "UNIMPLEMENTED", "check_status"]
