"""Options of MMLU-Pro."""

from __future__ import annotations

from aiperf_benchmarks.options import BenchmarkOptions


class MmluProOptions(BenchmarkOptions):
    """No further options."""
