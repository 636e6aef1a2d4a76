"""The command with a sweep.  For tests, and for ``aiperf plugins validate``."""

from __future__ import annotations

from aiperf.testing import CommandContract

from aiperf_command_analyze import Analyze


class AnalyzeContract(CommandContract):
    command = Analyze
