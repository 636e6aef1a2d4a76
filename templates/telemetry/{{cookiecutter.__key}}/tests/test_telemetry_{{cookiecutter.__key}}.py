"""The {{ cookiecutter.name }} telemetry source."""

from __future__ import annotations

import pytest
from aiperf import TelemetryContext

from {{ cookiecutter.__module }} import {{ cookiecutter.__class }}
from {{ cookiecutter.__module }}.contract import {{ cookiecutter.__class }}Contract


class TestItKeepsTheContract({{ cookiecutter.__class }}Contract):
    pass


def test_a_sample_is_the_load_of_the_last_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.getloadavg", lambda: (1.5, 9.0, 9.0))
    (point,) = {{ cookiecutter.__class }}(None, TelemetryContext()).sample()
    assert (point.value, point.unit) == (1.5, "tasks")
