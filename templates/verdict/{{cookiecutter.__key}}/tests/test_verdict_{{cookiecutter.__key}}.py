"""The {{ cookiecutter.name }} verdict."""

from __future__ import annotations

from aiperf.testing import VerdictContract, sample_evidence

from {{ cookiecutter.__module }} import ENOUGH, {{ cookiecutter.__class }}


class TestItKeepsTheContract(VerdictContract):
    verdict = {{ cookiecutter.__class }}
    cases = (
        (sample_evidence(valid=ENOUGH), ()),
        (sample_evidence(valid=ENOUGH - 1), ("few_requests",)),
    )


def test_the_finding_has_the_number_of_requests() -> None:
    found = {{ cookiecutter.__class }}().judge(sample_evidence(valid=7))
    assert found is not None and found.numbers == {"requests": 7, "enough": ENOUGH}
