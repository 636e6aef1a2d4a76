"""Answers for the contracts of graders."""

from __future__ import annotations

from aiperf.sdk.grader import Case
from aiperf.sdk.model import Turn


def reasoned(expected: str, reasoning: str, text: str = "") -> Case:
    """An answer with its reasoning apart, and without a text unless one is given."""
    turn = Turn(("Which?",), expected=expected)
    return Case(expected=expected, turn=turn, text=text, conversation_id="case", reasoning=reasoning)


__all__ = ["reasoned"]
