"""Options of GSM8K."""

from __future__ import annotations

from aiperf_benchmarks.options import BenchmarkOptions


class Gsm8kOptions(BenchmarkOptions):
    """No further options."""
