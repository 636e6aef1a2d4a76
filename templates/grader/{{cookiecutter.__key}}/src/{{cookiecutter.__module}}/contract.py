"""Answers whose grades are known."""

from __future__ import annotations

from aiperf.testing import Case, GraderContract

from {{ cookiecutter.__module }} import {{ cookiecutter.__class }}


class {{ cookiecutter.__class }}Contract(GraderContract):
    grader = {{ cookiecutter.__class }}
    cases = (
        Case("piano", "It has keys and opens no door: a Piano!", correct=True, extracted="Piano"),
        Case("piano", "A piano, or a map", correct=False, extracted="map"),
        Case("piano", "...", correct=False, unparsed=True),
    )
