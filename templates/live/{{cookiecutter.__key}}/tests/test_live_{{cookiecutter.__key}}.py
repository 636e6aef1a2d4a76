"""The {{ cookiecutter.name }} live view."""

from __future__ import annotations

from pathlib import Path

from aiperf.testing import LiveContract, full_snapshot

from {{ cookiecutter.__module }} import {{ cookiecutter.__class }}


class TestItKeepsTheContract(LiveContract):
    live = {{ cookiecutter.__class }}

    def test_a_row_for_each_snapshot(self, tmp_path: Path) -> None:
        (tmp_path / "artifacts").mkdir(exist_ok=True)
        made = self._made([])
        run = self._run(tmp_path)
        made.begin(run)
        made.show(full_snapshot())
        rows = Path(run.plan.output.artifacts, "{{ cookiecutter.__key }}.csv").read_text().splitlines()
        assert rows == ["phase,elapsed_s,done", "profiling,61.500,883"]
