"""The grader contract: whether an answer is the expected one.

What is expected stands on the data set's turns (:attr:`aiperf.model.Turn.expected`).  Grading happens in the reducer, where the
answer's text still is; each graded request's outcome stays with its columns.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct


class Grade(Struct, frozen=True, omit_defaults=True):
    """One answer, graded.

    unparsed: nothing could be taken from the answer by the rules, so *correct* is a guess, or False.
    extracted: what was compared with the expected answer; None where nothing was found.
    score: 0 to 1, for graders that give part marks; None is 1 or 0, as *correct* says.
    explanation: for a person who wonders.
    """

    correct: bool
    unparsed: bool = False
    extracted: str | None = None
    score: float | None = None
    explanation: str = ""


class Grader:
    """Compares answers.  *options* has the grader's own options as attributes (None where it declares none).

    Pure: no clock, no I/O, no draw; the same texts give the same grade, in any process and order.  What it needs besides
    (an optional package) it looks for when it is made, and raises ConfigError where that is missing: nothing has been sent yet.
    """

    def __init__(self, options: Any = None) -> None:
        self.options = options

    def grade(self, expected: str, response: str) -> Grade:
        """*expected* as the data set has it; *response*: the answer's text, without its reasoning where it has both."""
        raise NotImplementedError(f"{type(self).__name__} must define grade(expected, response)")
