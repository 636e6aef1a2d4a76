"""What a record shows of its HTTP exchange beyond the columns: headers, and when how many bytes were read."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec import Struct

from aiperf.pairs import shown


class Trace(Struct, frozen=True, omit_defaults=True):
    """One exchange.

    request_headers: secrets redacted, as are the response's.  reads: (ns since the run's start, bytes of body) of each.
    """

    request_headers: dict[str, str] = {}
    reason: str | None = None
    response_headers: dict[str, str] = {}
    reads: tuple[tuple[int, int], ...] = ()


def traced(request: dict[str, Any] | None, head: dict[str, Any] | None, reads: Iterable[tuple[int, int]]) -> str:
    """A :class:`Trace` as JSON, from the journal's texts ``request`` and ``head``; None where it never came to that."""
    trace = Trace(
        request_headers=request["headers"] if request is not None else {},
        reason=head["reason"] if head is not None else None,
        response_headers=shown(_joined(head["headers"])) if head is not None else {},
        reads=tuple(reads),
    )
    return msgspec.json.encode(trace).decode()


def _joined(headers: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Fields of one name as one, by commas (RFC 9110, 5.3)."""
    found: dict[str, str] = {}
    for name, value in headers:
        found[name] = f"{found[name]}, {value}" if name in found else value
    return found
