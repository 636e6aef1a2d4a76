"""The {{ cookiecutter.name }} grader."""

from __future__ import annotations

from aiperf.testing import GradedAnswer

from {{ cookiecutter.__module }} import {{ cookiecutter.__class }}
from {{ cookiecutter.__module }}.contract import {{ cookiecutter.__class }}Contract


class TestItKeepsTheContract({{ cookiecutter.__class }}Contract):
    pass


def test_it_says_what_it_went_by() -> None:
    case = GradedAnswer("doors", "It has keys.", correct=False)
    assert "'keys'" in case.grade({{ cookiecutter.__class }}()).explanation
