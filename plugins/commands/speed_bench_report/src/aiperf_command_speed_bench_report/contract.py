"""The command for the conformance suite.  For tests, and for ``aiperf plugins validate``."""

from __future__ import annotations

from aiperf.testing import CommandContract

from aiperf_command_speed_bench_report import SpeedBenchReport


class SpeedBenchReportContract(CommandContract):
    command = SpeedBenchReport
