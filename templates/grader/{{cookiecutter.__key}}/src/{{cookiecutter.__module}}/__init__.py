"""The {{ cookiecutter.name }} grader: the last word of the answer, whatever its case and punctuation."""

from __future__ import annotations

import re

from aiperf import Case, Grade, Grader

_WORD = re.compile(r"\w+")


class {{ cookiecutter.__class }}(Grader):
    """Pure: the same texts give the same grade in any process.  An answer in which nothing can be found is *unparsed*.

    A grader that takes long, or asks a server, has ``capabilities: {slow: true, timeout_s: 60}`` in its manifest.
    """

    def grade(self, case: Case) -> Grade:
        words = _WORD.findall(case.response)
        if not words:
            return Grade(correct=False, unparsed=True, explanation="the answer has no word")
        correct = words[-1].casefold() == case.expected.strip().casefold()
        return Grade(correct=correct, extracted=words[-1], explanation=f"the last word is {words[-1]!r}")
