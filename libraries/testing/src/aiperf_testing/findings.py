"""The words of failing checks: what came, what was expected, what to do."""

from __future__ import annotations

_MOST = 160
"""Characters of a value that a failing check shows."""


def shown(value: object) -> str:
    """The value, cut where it is long."""
    text = repr(value)
    return text if len(text) <= _MOST else f"{text[:_MOST]}…"


def unlike(came: object, expected: object, advice: str) -> str:
    """``CAME came where EXPECTED was expected: ADVICE``."""
    return f"{shown(came)} came where {shown(expected)} was expected: {advice}"


__all__ = ["shown", "unlike"]
