"""Answers whose grades are known."""

from __future__ import annotations

from aiperf.testing import GradedAnswer, GraderContract

from {{ cookiecutter.__module }} import {{ cookiecutter.__class }}


class {{ cookiecutter.__class }}Contract(GraderContract):
    grader = {{ cookiecutter.__class }}
    cases = (
        GradedAnswer("piano", "It has keys and opens no door: a Piano!", correct=True, extracted="Piano"),
        GradedAnswer("piano", "A piano, or a map", correct=False, extracted="map"),
        GradedAnswer("piano", "...", correct=False, unparsed=True),
    )
