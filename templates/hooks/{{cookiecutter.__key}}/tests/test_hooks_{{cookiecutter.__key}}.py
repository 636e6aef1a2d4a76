"""The {{ cookiecutter.name }} hooks: called as the kernel calls them."""

from __future__ import annotations

import json
from itertools import count
from pathlib import Path

from aiperf import PhasePlan, Target
from aiperf.testing import sample_summary

from {{ cookiecutter.__module }} import {{ cookiecutter.__class }}


def test_every_phase_has_its_two_instants(tmp_path: Path) -> None:
    hooks = {{ cookiecutter.__class }}(count(10).__next__)
    for name in ("warmup", "profiling"):
        hooks.aiperf_phase_started(PhasePlan(name, name, 0, "burst"))
        hooks.aiperf_phase_ended()
    (artifact,) = hooks.aiperf_export(sample_summary(), Target(tmp_path))
    assert json.loads(artifact.path.read_text()) == {
        "run_id": sample_summary().run_id,
        "phases": [
            {"name": "warmup", "kind": "warmup", "started_ns": 10, "ended_ns": 11},
            {"name": "profiling", "kind": "profiling", "started_ns": 12, "ended_ns": 13},
        ],
    }
