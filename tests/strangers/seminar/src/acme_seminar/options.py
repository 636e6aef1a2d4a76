"""The options that all data sets have."""

from __future__ import annotations

from aiperf_dataset_synthetic.options import CommonOptions


class CollectionsOptions(CommonOptions):
    """No further options."""
