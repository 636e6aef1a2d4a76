"""The kernel's own drivers keep the contract of drivers."""

from __future__ import annotations

from aiperf.testing import DriverContract
from aiperf.worker.drivers import BurstDriver, PacedDriver, SessionsDriver


class TestBurst(DriverContract):
    driver = BurstDriver


class TestPaced(DriverContract):
    driver = PacedDriver


class TestSessions(DriverContract):
    driver = SessionsDriver
