"""What the contracts need of the package that reduces journals, which the extra ``aiperf-core[testing]`` installs.

The names are loaded when a contract uses them, as in the door ``aiperf`` itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiperf.doors import door

_COLUMNS = "aiperf_reducer_columns."
_WHERE = {
    "Answer": "reduce.answer", "add_delta": "reduce.answer", "read_envelopes": "reduce.envelopes",
    "merged_usage": "reduce.usage", "checked": "report.verdicts", "cycle_message": "statistics.catalogue",
    "faulty_numbers": "statistics.catalogue", "Buckets": "statistics.fold", "Merged": "statistics.fold",
    "Samples": "statistics.fold", "FoldResult": "statistics.plugin_folds",
}  # fmt: skip

__all__ = [
    "Answer", "Buckets", "FoldResult", "Merged", "Samples", "add_delta", "checked", "cycle_message", "faulty_numbers",
    "merged_usage", "read_envelopes",
]  # fmt: skip

__getattr__ = door(__name__, {}, packages={name: _COLUMNS + module for name, module in _WHERE.items()})

if TYPE_CHECKING:
    from aiperf_reducer_columns.reduce.answer import Answer, add_delta
    from aiperf_reducer_columns.reduce.envelopes import read_envelopes
    from aiperf_reducer_columns.reduce.usage import merged_usage
    from aiperf_reducer_columns.report.verdicts import checked
    from aiperf_reducer_columns.statistics.catalogue import cycle_message, faulty_numbers
    from aiperf_reducer_columns.statistics.fold import Buckets, Merged, Samples
    from aiperf_reducer_columns.statistics.plugin_folds import FoldResult
