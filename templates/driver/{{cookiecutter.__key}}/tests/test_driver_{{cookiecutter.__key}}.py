"""The {{ cookiecutter.name }} driver."""

from __future__ import annotations

from aiperf.testing import DriverContract, ScheduleContract

from {{ cookiecutter.__module }} import {{ cookiecutter.__class }}, {{ cookiecutter.__class }}Schedule
from {{ cookiecutter.__module }}.options import PauseOptions


class TestItKeepsTheContract(DriverContract):
    driver = {{ cookiecutter.__class }}
    options = PauseOptions(pause_s=0.001)


class TestItsScheduleKeepsTheContract(ScheduleContract):
    schedule = {{ cookiecutter.__class }}Schedule
