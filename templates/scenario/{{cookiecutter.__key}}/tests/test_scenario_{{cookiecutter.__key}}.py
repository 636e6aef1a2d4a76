"""The scenario {{ cookiecutter.name }}."""

from __future__ import annotations

from aiperf import PhasePlan
from aiperf.testing import ScenarioContract, asked_for, sample_evidence

from {{ cookiecutter.__module }} import {{ cookiecutter.__class }}

MINUTE = PhasePlan("profiling", "profiling", 0, "burst", duration_ns=60 * 10**9)
PLAN = sample_evidence().plan
GOOD = PLAN.replacing(streaming=True, phases=(MINUTE,))


class TestItKeepsTheContract(ScenarioContract):
    scenario = {{ cookiecutter.__class }}
    plans = (
        (GOOD, asked_for(), ()),
        (PLAN, asked_for(streaming=False), ("--no-streaming", "--benchmark-duration")),
    )
    cases = ((sample_evidence(), ()), (sample_evidence(failed=1), ("failed_requests",)))


def test_what_was_given_is_kept() -> None:
    assert {{ cookiecutter.__class }}.fill(asked_for(benchmark_duration="120"))["--streaming"] is True
