"""Options of a multi_turn file."""

from __future__ import annotations

from aiperf_dataset_single_turn.options import RowOptions


class MultiTurnOptions(RowOptions):
    """No further options."""
