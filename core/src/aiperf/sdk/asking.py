"""Single calls that an endpoint makes before the load: what its server has (``Endpoint.prepare``), and whether it is ready
(``Endpoint.unready``)."""

from __future__ import annotations

from typing import Protocol

from msgspec import Struct

from aiperf.errors import AiperfError
from aiperf.sdk.model import HttpRequest

ASK_S = 30.0
"""Longest time of a call, connecting included, in s."""


class AskError(AiperfError):
    """A server gave no whole answer, or a call of gRPC failed.  The message names the server and the reason, without secrets.

    code: the status of a failed call, as the HTTP status that says the same; None where no answer came.
    """

    def __init__(self, message: str, *hints: str, code: int | None = None) -> None:
        super().__init__(message, *hints)
        self.code = code


class Reply(Struct, frozen=True):
    """A whole answer, of any status.

    body: "" of a transport with messages, whose answer is *messages*.  headers, trailers: by names in small letters, of several
    the last.
    """

    status: int
    body: bytes = b""
    messages: tuple[bytes, ...] = ()
    headers: dict[str, str] = {}
    trailers: dict[str, str] = {}


class Ask(Protocol):
    """Makes a call over the run's transport, with its headers, key and certificates, and waits for the answer.

    url: base URL of the server, without secrets.  scheme: of the URL.  models: of ``--model``.
    """

    url: str
    scheme: str
    models: tuple[str, ...]

    def __call__(self, request: HttpRequest, *, timeout_s: float = ASK_S) -> Reply:
        """The answer to a request; one with the method GET and an empty body fetches its path.

        Raises:
            AskError: None came within *timeout_s*, or it was cut.
        """


__all__ = ["Ask", "AskError", "Reply"]
