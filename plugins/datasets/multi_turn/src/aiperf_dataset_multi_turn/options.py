"""What ``aiperf profile`` can be told about a multi_turn file."""

from __future__ import annotations

from aiperf_dataset_synthetic.options import CommonOptions


class MultiTurnOptions(CommonOptions):
    """Nothing of its own."""
