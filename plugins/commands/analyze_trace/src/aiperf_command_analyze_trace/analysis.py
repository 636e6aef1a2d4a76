"""The report of a trace, in one pass over its rows."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice

import numpy as np
from aiperf.sdk.trace import TraceRow
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from aiperf_command_analyze_trace.blocks import Blocks
from aiperf_command_analyze_trace.curve import CacheCurve, CachePoint
from aiperf_command_analyze_trace.statistics import Bar, Spread, bars
from aiperf_command_analyze_trace.tables import Keys
from aiperf_command_analyze_trace.times import Arrivals, Times
from aiperf_command_analyze_trace.trees import TreeReport, Trees

_ROWS, _BLOCKS = 512, 1 << 16
"""Rows that are read at once, and blocks that are counted at once."""
_MASK = (1 << 64) - 1
"""The low 64 bits of a block's id, which a column of the table holds."""


class Curve(Struct, frozen=True):
    """*sampled*: the share of references among which distances were counted; None where every distance is exact."""

    sampled: float | None
    points: list[CachePoint]


class TraceReport(Struct, frozen=True):
    """The first fields are the reference's, in its units: tokens, and rates from 0 to 1.

    distinct_blocks: different ids.  referenced_blocks: all ids of all rows.  lengths_that_disagree: rows with more ids than
    their prompt has blocks.  arrivals: None where no row has a time.  cache_curve: None where it was not asked for.
    asked_caches: of the sizes that were asked for.  trees: None where no conversation starts others.
    """

    total_requests: int
    unique_prefixes: int
    num_prefix_groups: int
    cache_hit_rate: float
    min_isl: int
    max_isl: int
    avg_isl: float
    min_osl: int
    max_osl: int
    avg_osl: float
    prefix_reuse_ratio: float
    isl_stats: Spread
    osl_stats: Spread
    context_length_stats: Spread
    unique_prompt_length_stats: Spread
    hit_rate_stats: Spread
    block_size: int
    distinct_blocks: int
    referenced_blocks: int
    lengths_that_disagree: int
    isl_histogram: list[Bar]
    arrivals: Arrivals | None
    cache_curve: Curve | None
    asked_caches: list[CachePoint] = []
    trees: TreeReport | None = None


def analyse(
    rows: Iterable[TraceRow], block_tokens: int, *, curve: bool = False, caches: bool = False, request_ms: float | None = None
) -> tuple[TraceReport, CacheCurve | None]:
    """The report, and the hit rates of other caches.

    block_tokens: length of a block.  curve: the report shall have it.  caches: other caches will be asked for; without both
    there are none.  request_ms: length of requests for their concurrency where rows don't have it.
    """
    blocks, cache, rest = Blocks(), CacheCurve() if curve or caches else None, _Rest(Times(request_ms), Trees())
    inputs, outputs = array("q"), array("q")
    for part in _parts(rows, inputs, outputs, rest):
        batch = blocks.add(*part)
        if cache is not None:
            cache.add(batch)
    lengths = blocks.lengths.astype(np.int64)
    isl, osl = np.frombuffer(inputs, np.int64), np.frombuffer(outputs, np.int64)
    report = _report(blocks, rest.times.arrivals(), isl, osl, lengths, block_tokens)
    report = replace(report, trees=rest.trees.report(isl, osl, blocks.hits, lengths))
    if cache is not None and curve:
        drawn = Curve(None if cache.exact else cache.rate, cache.points(blocks.distinct))
        report = replace(report, cache_curve=drawn)
    return report, cache


def _report(
    blocks: Blocks, arrivals: Arrivals | None, isl: NDArray[np.int64], osl: NDArray[np.int64], lengths: NDArray[np.int64],
    size: int,
) -> TraceReport:  # fmt: skip
    # A prompt is at least as long as the blocks that it shares, except that its last block may be cut.
    whole = (blocks.repeated == lengths) & (lengths > 0)
    context = np.where(whole, isl, np.minimum(blocks.repeated.astype(np.int64) * size, isl))
    rates = blocks.hits[lengths > 0] / lengths[lengths > 0]
    count = len(isl)
    return TraceReport(
        total_requests=count,
        unique_prefixes=blocks.unique_prefixes,
        num_prefix_groups=blocks.groups,
        cache_hit_rate=float(rates.mean()) if len(rates) else 0.0,
        min_isl=int(isl.min()) if count else 0,
        max_isl=int(isl.max()) if count else 0,
        avg_isl=float(isl.mean()) if count else 0.0,
        min_osl=int(osl.min()) if count else 0,
        max_osl=int(osl.max()) if count else 0,
        avg_osl=float(osl.mean()) if count else 0.0,
        prefix_reuse_ratio=1 - blocks.prefixes_used_once / blocks.references if blocks.references else 0.0,
        isl_stats=_spread(isl),
        osl_stats=_spread(osl),
        context_length_stats=_spread(context),
        unique_prompt_length_stats=_spread(isl - context),
        hit_rate_stats=Spread.of(rates),
        block_size=size,
        distinct_blocks=blocks.distinct,
        referenced_blocks=blocks.references,
        lengths_that_disagree=int(np.count_nonzero((isl > 0) & (lengths > 0) & (isl <= (lengths - 1) * size))),
        isl_histogram=bars(isl.astype(np.float64)),
        arrivals=arrivals,
        cache_curve=None,
    )


def _spread(values: NDArray[np.int64]) -> Spread:
    return Spread.of(values.astype(np.float64))


class _Rest(Struct, frozen=True):
    """What is taken of each row beside its lengths and blocks."""

    times: Times
    trees: Trees


def _parts(
    rows: Iterable[TraceRow], inputs: array[int], outputs: array[int], rest: _Rest
) -> Iterator[tuple[Keys, NDArray[np.int64]]]:
    """The ids of many rows' blocks at once, and the number of blocks of each row; the rest is taken on the way."""
    source = iter(rows)
    waiting: list[Keys] = []
    counts: list[int] = []
    total = 0
    while part := list(islice(source, _ROWS)):
        inputs.extend(row.input_tokens for row in part)
        outputs.extend(row.output_tokens for row in part)
        for row in part:
            rest.times.add(row)
            rest.trees.add(row)
        lengths = [len(row.blocks) for row in part]
        counts += lengths
        waiting.append(_ids(part, sum(lengths)))
        total += len(waiting[-1])
        if total >= _BLOCKS:
            yield np.concatenate(waiting), np.array(counts, np.int64)
            waiting, counts, total = [], [], 0
    if counts:
        yield np.concatenate(waiting), np.array(counts, np.int64)


def _ids(rows: list[TraceRow], count: int) -> Keys:
    if any(row.scope or isinstance(row.blocks, array) for row in rows):
        return np.concatenate([_scoped(row) for row in rows])
    return _keys([row.blocks for row in rows], count)


def _keys(blocks: list[Sequence[int]], count: int) -> Keys:
    try:
        return np.fromiter(chain.from_iterable(blocks), np.int64, count).view(np.uint64)
    except OverflowError:  # hashes of 64 bits without a sign, or longer
        return np.fromiter((block & _MASK for ids in blocks for block in ids), np.uint64, count)


def _scoped(row: TraceRow) -> Keys:
    """The ids of a row, told apart from those of other scopes by the bits of a hash of its own."""
    blocks = row.blocks
    if isinstance(blocks, array) and blocks.typecode == "q":
        ids: Keys = np.frombuffer(blocks, np.int64).view(np.uint64)
    else:
        ids = _keys([blocks], len(blocks))
    return ids ^ np.uint64(_mixed(row.scope)) if row.scope else ids


def _mixed(scope: int) -> int:
    """A number of 64 bits, another one for each scope (splitmix64)."""
    mixed = scope * 0x9E3779B97F4A7C15 & _MASK
    mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9 & _MASK
    mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EB & _MASK
    return mixed ^ (mixed >> 31)
