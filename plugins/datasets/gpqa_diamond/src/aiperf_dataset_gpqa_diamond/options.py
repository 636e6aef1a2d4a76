"""Options of GPQA Diamond."""

from __future__ import annotations

from aiperf_benchmarks.options import BenchmarkOptions


class GpqaDiamondOptions(BenchmarkOptions):
    """No further options."""
