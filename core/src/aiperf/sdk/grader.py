"""The grader contract: whether an answer is the expected one.

The data set's turns hold the expected answers (:attr:`aiperf.sdk.model.Turn.expected`).  The reducer grades while it has the
answer's text, and stores each grade with the columns of its request.
"""

from __future__ import annotations

from msgspec import Struct

from aiperf.sdk.options import OptionsT, WithOptions


class Grade(Struct, frozen=True, omit_defaults=True):
    """The grade of one answer.

    unparsed: the rules extracted nothing from the answer, so *correct* is a guess or False.
    extracted: the part that was compared with the expected answer; None where the answer has none.
    score: 0 to 1, for graders with partial marks; None is 1 or 0, like *correct*.
    explanation: a sentence for readers of the results.
    """

    correct: bool
    unparsed: bool = False
    extracted: str | None = None
    score: float | None = None
    explanation: str = ""


class Grader(WithOptions[OptionsT]):
    """Compares answers.  options: the grader's own (None where it declares none).

    Pure: no clock, no I/O, no draw; the same texts give the same grade in any process and order.  The constructor raises
    ConfigError where an optional package is missing, before any request is sent.
    """

    def grade(self, expected: str, response: str) -> Grade:
        """Grade an answer.  *expected*: from the data set; *response*: the answer's text without its reasoning."""
        raise NotImplementedError(f"{type(self).__name__} must define grade(expected, response)")


__all__ = ["Grade", "Grader"]
