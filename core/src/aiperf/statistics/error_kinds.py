"""Errors counted by kind in bounded memory: a server may put a random id into every message.

An error is the JSON of its :class:`~aiperf.sdk.model.ErrorDetails`.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import msgspec

from aiperf.sdk.model import ErrorDetails
from aiperf.sdk.summary import ErrorCount

MOST = 100
"""Messages of one type and code that are counted apart; likewise types of one code, and codes."""

Counts = dict[str, tuple[int, float]]
"""By error: how often, and the first instant in ns since the run's start."""

_MANY = f"more than {MOST} different "
_read = msgspec.json.Decoder(ErrorDetails).decode


def counted(errors: Counts, error: str, count: int, first_ns: float) -> None:
    """Count *error*, in place."""
    known, earliest = errors.get(error, (0, math.inf))
    errors[error] = (known + count, min(earliest, first_ns))


def bounded(errors: Counts) -> Counts:
    """The counts with kinds beyond MOST counted together.

    Grouping depends on all errors together, and a group stays a group: the order of adding and merging changes nothing.
    """
    if len(errors) <= MOST and not any(_MANY in error for error in errors):
        return errors
    kind: Callable[[str], str] = str
    for wider in (_of_type, _of_code, _of_any):
        errors = _grouped(errors, kind, wider)
        kind = wider
    return errors


def merged(errors: Counts, more: Counts) -> Counts:
    """Both counts together, within the bound; *errors* are changed."""
    for error, (count, first_ns) in more.items():
        counted(errors, error, count, first_ns)
    return bounded(errors)


def listed(errors: Counts) -> tuple[ErrorCount, ...]:
    """Errors in the order of their first instants."""
    ordered = sorted(errors.items(), key=lambda each: each[1][1])
    return tuple(ErrorCount(_read(error), count) for error, (count, _) in ordered)


def _grouped(errors: Counts, kind: Callable[[str], str], wider: Callable[[str], str]) -> Counts:
    kinds: dict[str, set[str]] = {}
    for error in errors:
        kinds.setdefault(wider(error), set()).add(kind(error))
    grouped: Counts = {}
    for error, (count, first_ns) in errors.items():
        group = wider(error)
        many = len(kinds[group]) > MOST or group in errors
        counted(grouped, group if many else error, count, first_ns)
    return grouped


def _of_type(error: str) -> str:
    details = _read(error)
    return _text(ErrorDetails(_MANY + "messages", type=details.type, code=details.code))


def _of_code(error: str) -> str:
    return _text(ErrorDetails(_MANY + "types of error", code=_read(error).code))


def _of_any(error: str) -> str:
    return _text(ErrorDetails(_MANY + "codes of errors"))


def _text(error: ErrorDetails) -> str:
    return msgspec.json.encode(error).decode()
