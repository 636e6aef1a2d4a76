"""Sleeps on every answer, and wants whole cases."""

from __future__ import annotations

import os
import time

from aiperf import Case, Grade, Grader


class Jury(Grader):
    def grade(self, case: Case) -> Grade:
        time.sleep(0.01)
        begin = case.expected[:1].casefold()
        found = next((word for word in case.response.split() if word[:1].casefold() == begin), None)
        told = f"process {os.getpid()}, {case.conversation_id}, {case.finish_reason}, {len(case.turn.texts)} text"
        return Grade(correct=found is not None and case.number == 0, extracted=found, explanation=told)
