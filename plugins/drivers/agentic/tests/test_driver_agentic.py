"""The driver of lanes and its schedule keep the contracts of their categories."""

from __future__ import annotations

from aiperf_driver_agentic.driver import AgenticDriver
from aiperf_driver_agentic.schedule import AgenticReplay
from aiperf_testing.drivers import DriverContract
from aiperf_testing.schedules import ScheduleContract


class TestAgenticKeepsTheContract(DriverContract):
    driver = AgenticDriver


class TestAgenticReplayKeepsTheContract(ScheduleContract):
    schedule = AgenticReplay
