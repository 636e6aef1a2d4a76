"""The whole answer is the expected text."""

from __future__ import annotations

from aiperf.sdk.grader import Case, Grade, Grader


class ExactMatch(Grader):
    """Compares the texts, without spaces and line breaks around them; case counts.  An empty answer is unparsed."""

    def grade(self, case: Case) -> Grade:
        answer, expected = case.response.strip(), case.expected.strip()
        if not answer:
            return Grade(correct=False, unparsed=True, extracted="", explanation="the answer is empty")
        return Grade(correct=answer == expected, extracted=answer, explanation="the whole answer was compared")
