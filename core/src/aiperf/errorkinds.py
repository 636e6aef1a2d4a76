"""Errors counted by kind in bounded memory: a server may put a random id into every message.

An error is the JSON of its :class:`~aiperf.model.ErrorDetails`.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import msgspec

from aiperf.model import ErrorDetails

MOST = 100
"""Different messages of one type and code that are told apart; likewise types of one code, and codes."""

Counts = dict[str, tuple[int, float]]
"""Of each error, how often and when first, in ns since the run's start."""

_MANY = f"more than {MOST} different "
_read = msgspec.json.Decoder(ErrorDetails).decode


def counted(errors: Counts, error: str, count: int, first_ns: float) -> None:
    """Count *error*, in place."""
    known, earliest = errors.get(error, (0, math.inf))
    errors[error] = (known + count, min(earliest, first_ns))


def bounded(errors: Counts) -> Counts:
    """The same with what has more than MOST kinds counted together.

    Whether something has depends on all errors together alone, and once grouped it stays so: in whatever order they are
    added and merged, the outcome is the same.
    """
    if len(errors) <= MOST and not any(_MANY in error for error in errors):
        return errors
    kind: Callable[[str], str] = str
    for wider in (_of_type, _of_code, _of_any):
        errors = _grouped(errors, kind, wider)
        kind = wider
    return errors


def _grouped(errors: Counts, kind: Callable[[str], str], wider: Callable[[str], str]) -> Counts:
    kinds: dict[str, set[str]] = {}
    for error in errors:
        kinds.setdefault(wider(error), set()).add(kind(error))
    found: Counts = {}
    for error, (count, first_ns) in errors.items():
        group = wider(error)
        many = len(kinds[group]) > MOST or group in errors
        counted(found, group if many else error, count, first_ns)
    return found


def _of_type(error: str) -> str:
    found = _read(error)
    return _text(ErrorDetails(_MANY + "messages", type=found.type, code=found.code))


def _of_code(error: str) -> str:
    return _text(ErrorDetails(_MANY + "types of error", code=_read(error).code))


def _of_any(error: str) -> str:
    return _text(ErrorDetails(_MANY + "codes of errors"))


def _text(error: ErrorDetails) -> str:
    return msgspec.json.encode(error).decode()
