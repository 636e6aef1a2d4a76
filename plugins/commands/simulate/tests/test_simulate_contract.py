"""The command as the command line has it."""

from __future__ import annotations

from aiperf.testing import CommandContract
from aiperf_command_simulate import Simulate


class TestSimulateKeepsTheContract(CommandContract):
    command = Simulate
