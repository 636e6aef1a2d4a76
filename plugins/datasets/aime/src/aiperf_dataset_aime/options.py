"""Options of AIME."""

from __future__ import annotations

from aiperf_benchmarks.options import BenchmarkOptions


class AimeOptions(BenchmarkOptions):
    """No further options."""
