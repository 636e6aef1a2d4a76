"""What ``aiperf profile`` can be told about a single_turn file."""

from __future__ import annotations

from aiperf_dataset_synthetic.options import CommonOptions


class SingleTurnOptions(CommonOptions):
    """Nothing of its own."""
