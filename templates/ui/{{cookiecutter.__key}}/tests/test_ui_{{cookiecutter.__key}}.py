"""The {{ cookiecutter.name }} display."""

from __future__ import annotations

import pytest
from aiperf import Snapshot
from aiperf.testing import UiContract

from {{ cookiecutter.__module }} import {{ cookiecutter.__class }}


class TestItKeepsTheContract(UiContract):
    ui = {{ cookiecutter.__class }}


def test_a_line_for_each_tenth(capsys: pytest.CaptureFixture[str]) -> None:
    display = {{ cookiecutter.__class }}()
    for completed in (0, 4, 10, 14, 20):
        display.show(Snapshot("profiling", "profiling", 1.0, 20, completed, 0, 0, 1.0, completed / 100))
    assert capsys.readouterr().err.splitlines() == [
        "profiling: 00 %, 0 done", "profiling: 10 %, 10 done", "profiling: 20 %, 20 done",
    ]  # fmt: skip
