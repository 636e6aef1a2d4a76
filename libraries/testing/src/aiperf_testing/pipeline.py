"""What the contracts need of the package that reduces journals."""

from __future__ import annotations

from aiperf_reducer_columns.reduce.answer import Answer, add_delta
from aiperf_reducer_columns.reduce.envelopes import read_envelopes
from aiperf_reducer_columns.reduce.usage import merged_usage
from aiperf_reducer_columns.report.verdicts import checked
from aiperf_reducer_columns.statistics.catalogue import cycle_message, faulty_numbers
from aiperf_reducer_columns.statistics.fold import Buckets, Merged, Samples
from aiperf_reducer_columns.statistics.plugin_folds import FoldResult

__all__ = [
    "Answer", "Buckets", "FoldResult", "Merged", "Samples", "add_delta", "checked", "cycle_message", "faulty_numbers",
    "merged_usage", "read_envelopes",
]  # fmt: skip
