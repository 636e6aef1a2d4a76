"""Options of MATH-500."""

from __future__ import annotations

from aiperf_benchmarks.options import BenchmarkOptions


class Math500Options(BenchmarkOptions):
    """No further options."""
