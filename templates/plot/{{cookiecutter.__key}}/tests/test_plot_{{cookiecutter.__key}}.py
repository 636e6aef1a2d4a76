"""The {{ cookiecutter.name }} plot."""

from __future__ import annotations

from pathlib import Path

from aiperf.testing import PlotContract, sample_runs

from {{ cookiecutter.__module }} import {{ cookiecutter.__class }}


class TestItKeepsTheContract(PlotContract):
    plot = {{ cookiecutter.__class }}


def test_a_point_a_request(tmp_path: Path) -> None:
    (run,) = sample_runs(tmp_path, 1)
    figure = {{ cookiecutter.__class }}().draw([run])
    assert figure is not None
    assert figure.series[0].y.tolist() == run.column("request_latency").tolist()
