"""The {{ cookiecutter.name }} order: every entry is there, the first ones most often."""

from __future__ import annotations

from aiperf.testing import SamplerContract

from {{ cookiecutter.__module }} import sample


class TestItKeepsTheContract(SamplerContract):
    sampler = staticmethod(sample)


def test_half_of_the_sessions_use_a_quarter_of_the_entries() -> None:
    entries = [sample(7, session, 100) for session in range(4000)]
    assert 0.47 < sum(entry < 25 for entry in entries) / len(entries) < 0.53
