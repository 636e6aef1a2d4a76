"""What a prefix cache without end would have of the prompts of a trace."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from aiperf import Column, Metric, Ragged, RecordBatch, Unit
from aiperf.sdk.columns import Floats
from aiperf.sdk.metric import PluginFold


class HitShare(PluginFold):
    """Statistics of values that are 100 for a hit and 0 for a miss: their mean, how many there are, and how many are hits."""

    def __init__(self) -> None:
        self._blocks = self._hits = 0

    def add(self, values: Floats) -> None:
        self._blocks += len(values)
        self._hits += int(np.count_nonzero(values))

    def merge(self, other: HitShare) -> None:
        self._blocks += other._blocks
        self._hits += other._hits

    def dump(self) -> bytes:
        return f"{self._hits} {self._blocks}".encode()

    @classmethod
    def load(cls, data: bytes) -> HitShare:
        fold = cls()
        fold._hits, fold._blocks = map(int, data.split())
        return fold

    def result(self) -> Mapping[str, float] | None:
        if not self._blocks:
            return None
        return {"avg": 100 * self._hits / self._blocks, "sum": self._hits, "count": self._blocks}


class TheoreticalPrefixCacheHit(Metric):
    """Share of the blocks of a trace's prompts that a prefix cache without end would have; absent without hash ids."""

    tag = "theoretical_prefix_cache_hit"
    title = "Theoretical Prefix Cache Hit"
    unit = Unit.PERCENT
    fold = HitShare
    per_record = False
    larger_is_better = True
    order = 870

    def column(self, batch: RecordBatch) -> Column:
        """A value for each block of a request: 100 for a hit, 0 for a miss; hits come first."""
        blocks = np.nan_to_num(batch["prefix_blocks"]).astype(np.int64)
        hits = np.minimum(np.nan_to_num(batch["prefix_hits"]).astype(np.int64), blocks)
        offsets = np.concatenate(([0], np.cumsum(blocks)))
        place = np.arange(offsets[-1]) - np.repeat(offsets[:-1], blocks)
        values = np.where(place < np.repeat(hits, blocks), 100.0, 0.0)
        return Ragged(values, offsets, np.repeat(batch["ended_ns"], blocks))


__all__ = ["HitShare", "TheoreticalPrefixCacheHit"]
