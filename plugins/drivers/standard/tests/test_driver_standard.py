"""The package's drivers keep the contract of drivers."""

from __future__ import annotations

from aiperf.testing import DriverContract
from aiperf_driver_standard.burst import BurstDriver
from aiperf_driver_standard.paced import PacedDriver
from aiperf_driver_standard.sessions import SessionsDriver
from aiperf_driver_standard.tree_drivers import BurstTrees, PacedTrees, SessionTrees


class TestBurst(DriverContract):
    driver = BurstDriver


class TestPaced(DriverContract):
    driver = PacedDriver


class TestSessions(DriverContract):
    driver = SessionsDriver


class TestBurstTrees(DriverContract):
    driver = BurstTrees


class TestPacedTrees(DriverContract):
    driver = PacedTrees


class TestSessionTrees(DriverContract):
    driver = SessionTrees
