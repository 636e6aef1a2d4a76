"""Options of a data capture."""

from __future__ import annotations

from aiperf_dataset_synthetic.options import CommonOptions


class SagemakerDataCaptureOptions(CommonOptions):
    """No further options."""
