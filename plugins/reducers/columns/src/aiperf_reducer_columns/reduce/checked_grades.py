"""Grades as a plugin gives them: each is a Grade, or the grader has failed.  A grader's own process imports little else."""

from __future__ import annotations

import msgspec
from aiperf.sdk.grader import Case, Grade, Grader


def checked_grade(grader: Grader, case: Case, *, whole: bool) -> Grade:
    """The grade of *case*.  *whole*: the grader takes cases.

    Raises:
        Exception: Anything that the plugin raises, or TypeError where it gives no Grade.
    """
    return checked(grader.grade(case) if whole else grader.grade(case.expected, case.response))


def checked(grade: object) -> Grade:
    """
    Raises:
        TypeError, msgspec.MsgspecError: It is no Grade, or a field has a value of another type.
    """
    if not isinstance(grade, Grade):
        raise TypeError(f"it gives {type(grade).__name__}, not Grade")
    return msgspec.msgpack.decode(msgspec.msgpack.encode(grade), type=Grade, strict=False)
