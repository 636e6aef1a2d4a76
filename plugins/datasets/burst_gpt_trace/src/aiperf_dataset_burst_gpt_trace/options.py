"""Options of a BurstGPT trace."""

from __future__ import annotations

from aiperf_dataset_synthetic.options import CommonOptions


class BurstGptTraceOptions(CommonOptions):
    """No further options."""
