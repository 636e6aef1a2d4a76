"""What conversations that start others look like: their trees, how deep and wide they are, and their longest contexts."""

from __future__ import annotations

from array import array

import numpy as np
from aiperf.sdk.trace import TraceRow
from msgspec import Struct
from numpy.typing import NDArray

from aiperf_command_analyze_trace.statistics import Spread

_Numbers = NDArray[np.int64]


class TreeReport(Struct, frozen=True):
    """with_children: trees that have more than their root.  streams: conversations of all trees that send requests.

    theoretical_prefix_cache_hit: of all blocks, those that a cache without end would have, from 0 to 1; None without blocks.
    Of each tree: requests, streams; depth, 0 for a root alone; width, the most streams of one depth; peak_context, the longest
    prompt with its answer, in tokens; hit_rate, of its blocks, without trees that have none.
    """

    trees: int
    with_children: int
    streams: int
    theoretical_prefix_cache_hit: float | None
    requests_stats: Spread
    streams_stats: Spread
    depth_stats: Spread
    width_stats: Spread
    peak_context_stats: Spread
    hit_rate_stats: Spread


class Trees:
    """Takes the rows of a trace."""

    def __init__(self) -> None:
        self._trees, self._streams, self._depths = array("q"), array("q"), array("q")

    def add(self, row: TraceRow) -> None:
        self._trees.append(-1 if row.tree is None else row.tree)
        self._streams.append(row.stream)
        self._depths.append(row.depth)

    def report(self, isl: _Numbers, osl: _Numbers, hits: NDArray[np.int32], blocks: _Numbers) -> TreeReport | None:
        """The numbers of all rows so far; None where no row is of a tree.

        *isl*, *osl*: lengths of prompts and answers.  *hits*, *blocks*: of each row, its leading blocks that an earlier row
        has, and all its blocks.
        """
        trees, streams, depths = (np.frombuffer(each, np.int64) for each in (self._trees, self._streams, self._depths))
        of_trees = trees >= 0
        if not of_trees.any():
            return None
        names, numbers = np.unique(trees[of_trees], return_inverse=True)
        count = len(names)
        streams, depths = streams[of_trees], depths[of_trees]
        own = np.unique(np.stack((numbers, depths, streams)), axis=1)
        levels, sizes = np.unique(own[:2], axis=1, return_counts=True)
        width, depth = np.zeros(count, np.int64), np.zeros(count, np.int64)
        np.maximum.at(width, levels[0], sizes)
        np.maximum.at(depth, levels[0], levels[1])
        peak = np.zeros(count, np.int64)
        np.maximum.at(peak, numbers, (isl + np.maximum(osl, 1))[of_trees])
        hit, all_blocks = (np.bincount(numbers, each[of_trees], count) for each in (hits, blocks))
        has_streams = np.bincount(own[0], minlength=count)
        total = float(all_blocks.sum())
        return TreeReport(
            trees=count,
            with_children=int(np.count_nonzero((depth > 0) | (has_streams > 1))),
            streams=own.shape[1],
            theoretical_prefix_cache_hit=float(hit.sum()) / total if total else None,
            requests_stats=_spread(np.bincount(numbers, minlength=count)),
            streams_stats=_spread(has_streams),
            depth_stats=_spread(depth),
            width_stats=_spread(width),
            peak_context_stats=_spread(peak),
            hit_rate_stats=Spread.of(hit[all_blocks > 0] / all_blocks[all_blocks > 0]),
        )


def _spread(values: NDArray[np.int64]) -> Spread:
    return Spread.of(values.astype(np.float64))


__all__ = ["TreeReport", "Trees"]
