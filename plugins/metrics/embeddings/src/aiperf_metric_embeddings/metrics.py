"""The length of vectors."""

from __future__ import annotations

from aiperf import Column, Metric, Needs, RecordBatch, Unit


class EmbeddingDimensions(Metric):
    """Length of the vectors of an answer; absent for an answer without."""

    tag = "embedding_dimensions"
    title = "Embedding Dimensions"
    unit = Unit.COUNT
    needs = ("dimensions",)
    requires = Needs.NUMBERS

    def column(self, batch: RecordBatch) -> Column:
        return batch["dimensions"]
