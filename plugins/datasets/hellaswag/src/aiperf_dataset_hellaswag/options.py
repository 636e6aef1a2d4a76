"""Options of HellaSwag."""

from __future__ import annotations

from aiperf_benchmarks.options import BenchmarkOptions


class HellaswagOptions(BenchmarkOptions):
    """No further options."""
