"""Options of MMLU."""

from __future__ import annotations

from aiperf_benchmarks.options import BenchmarkOptions


class MmluOptions(BenchmarkOptions):
    """No further options."""
