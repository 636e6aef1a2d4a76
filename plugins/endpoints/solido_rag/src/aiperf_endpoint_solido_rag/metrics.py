"""Metrics of numbers that the answers have."""

from __future__ import annotations

from aiperf import Column, Metric, Needs, RecordBatch

from aiperf_endpoint_solido_rag.units import SOURCES


class SourceCount(Metric):
    """The number of sources of an answer; absent where it names none."""

    tag, title, unit, order = "source_count", "Source Count", SOURCES, 970
    needs, requires = ("sources",), Needs.NUMBERS

    def column(self, batch: RecordBatch) -> Column:
        return batch["sources"]
