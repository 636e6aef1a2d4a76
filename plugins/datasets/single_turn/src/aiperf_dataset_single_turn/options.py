"""Options of a single_turn file."""

from __future__ import annotations

from aiperf_dataset_synthetic.options import CommonOptions


class SingleTurnOptions(CommonOptions):
    """No further options."""
