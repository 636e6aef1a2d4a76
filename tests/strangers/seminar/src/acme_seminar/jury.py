"""Sleeps on every answer, and wants whole cases; for a long while behind as many as ``ACME_JURY_CASES`` says."""

from __future__ import annotations

import os
import time

from aiperf import Case, Grade, Grader


class Jury(Grader):
    def __init__(self, options: None = None) -> None:
        super().__init__(options)
        self._left = int(os.environ.get("ACME_JURY_CASES", "1000"))

    def grade(self, case: Case) -> Grade:
        time.sleep(0.01 if self._left > 0 else 3600)
        self._left -= 1
        begin = case.expected[:1].casefold()
        found = next((word for word in case.response.split() if word[:1].casefold() == begin), None)
        told = f"process {os.getpid()}, {case.conversation_id}, {case.finish_reason}, {len(case.turn.texts)} text"
        return Grade(correct=found is not None and case.number == 0, extracted=found, explanation=told)
