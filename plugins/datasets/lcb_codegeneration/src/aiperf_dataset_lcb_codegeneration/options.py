"""Options of LiveCodeBench."""

from __future__ import annotations

from aiperf_benchmarks.options import BenchmarkOptions


class LcbCodegenerationOptions(BenchmarkOptions):
    """No further options."""
