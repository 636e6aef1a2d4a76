"""The {{ cookiecutter.name }} series."""

from __future__ import annotations

from pathlib import Path

from aiperf.testing import SeriesContract

from {{ cookiecutter.__module }} import {{ cookiecutter.__class }}


class TestItKeepsTheContract(SeriesContract):
    series = {{ cookiecutter.__class }}


def test_without_samples_there_is_no_source(tmp_path: Path) -> None:
    assert {{ cookiecutter.__class }}().summary(tmp_path / "folds", lambda: iter(()), (), ()) is None
