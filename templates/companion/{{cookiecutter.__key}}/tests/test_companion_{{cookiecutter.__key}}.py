"""The {{ cookiecutter.name }} companion."""

from __future__ import annotations

import json
from pathlib import Path

from aiperf.sdk.companion import Companion
from aiperf.testing import CompanionContract

from {{ cookiecutter.__module }} import {{ cookiecutter.__class }}


class TestItKeepsTheContract(CompanionContract):
    companion = {{ cookiecutter.__class }}

    def test_each_phase_has_two_numbers(self, made: Companion[None], tmp_path: Path) -> None:
        for phase in made.context.plan.load.phases:
            made.phase_begins(phase)
            made.phase_ended(phase, 7)
        made.finish()
        rows = json.loads((tmp_path / "{{ cookiecutter.__key }}.json").read_text())
        assert [row["name"] for row in rows] == ["warmup", "profiling"]
        assert all(row["before"] >= 0 and row["after"] >= 0 for row in rows)
