"""The HTTP exchange of a record beyond its columns: headers, and the instant and size of each read."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec import Struct

from aiperf.redaction import shown_headers


class Trace(Struct, frozen=True, omit_defaults=True):
    """One exchange.

    request_headers, response_headers: secrets redacted.  reads: (ns since the run's start, body bytes) of each.
    """

    request_headers: dict[str, str] = {}
    reason: str | None = None
    response_headers: dict[str, str] = {}
    reads: tuple[tuple[int, int], ...] = ()


def traced(request: dict[str, Any] | None, head: dict[str, Any] | None, reads: Iterable[tuple[int, int]]) -> str:
    """A :class:`Trace` as JSON, from the journal's texts ``request`` and ``head`` (None where the exchange broke off)."""
    fields: dict[str, str] = {}
    for name, value in head["headers"] if head is not None else ():  # of one name: joined by commas (RFC 9110, 5.3)
        fields[name] = f"{fields[name]}, {value}" if name in fields else value
    sent = request["headers"] if request is not None else {}
    trace = Trace(sent, head["reason"] if head is not None else None, shown_headers(fields), tuple(reads))
    return msgspec.json.encode(trace).decode()
