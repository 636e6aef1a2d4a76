"""Options of BIG-Bench Hard."""

from __future__ import annotations

from aiperf_benchmarks.options import BenchmarkOptions


class BigbenchOptions(BenchmarkOptions):
    """No further options."""
