"""The verdict clock_throttling keeps its contract."""

from __future__ import annotations

from aiperf_verdict_clock_throttling.contract import ClockThrottlingContract


class TestItKeepsTheContract(ClockThrottlingContract):
    pass
