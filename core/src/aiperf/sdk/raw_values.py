"""Values of each request for analyses, beside the folds: in the package that reduces journals."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiperf.doors import door

__all__ = ["HELD_ROWS", "LISTED", "RawValueCollector", "RawValues"]

__getattr__ = door(__name__, {}, packages=dict.fromkeys(__all__, "aiperf_reducer_columns.statistics.raw_values"))

if TYPE_CHECKING:
    from aiperf_reducer_columns.statistics.raw_values import HELD_ROWS, LISTED, RawValueCollector, RawValues
