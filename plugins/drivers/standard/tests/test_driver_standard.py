"""The package's drivers keep the contract of drivers."""

from __future__ import annotations

from aiperf.testing import DriverContract
from aiperf_driver_standard.burst import BurstDriver
from aiperf_driver_standard.paced import PacedDriver
from aiperf_driver_standard.sessions import SessionsDriver


class TestBurst(DriverContract):
    driver = BurstDriver


class TestPaced(DriverContract):
    driver = PacedDriver


class TestSessions(DriverContract):
    driver = SessionsDriver
