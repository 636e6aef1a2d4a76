"""The report for a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from aiperf_command_analyze_trace.analysis import Curve, TraceReport
from aiperf_command_analyze_trace.statistics import Bar, Spread
from aiperf_command_analyze_trace.times import Arrivals
from aiperf_command_analyze_trace.trees import TreeReport

_COLUMNS = ("Mean", "Std Dev", "Min", "P25", "Median", "P75", "Max")
_NAME, _CELL, _BAR = 26, 13, 40
"""Columns of the terminal: of a name, of a number, of a full bar."""
_CURVE_LINES = 16


def shown(report: TraceReport, bar: str) -> Iterator[str]:
    """The lines of the report.  bar: the character that bars are made of."""
    yield from ("Trace Analysis Report", "")
    yield f"Total requests:   {report.total_requests:,}"
    yield f"Unique prefixes:  {report.unique_prefixes:,}"
    yield f"Prefix groups:    {report.num_prefix_groups:,}"
    yield f"Cache hit rate:   {report.cache_hit_rate:.2%} (a cache without end)"
    yield f"Prefix reuse:     {report.prefix_reuse_ratio:.2%}"
    size, times = report.block_size, report.referenced_blocks
    yield f"Distinct blocks:  {report.distinct_blocks:,} of {size} tokens, referenced {times:,} times"
    yield ""
    yield from _table({
        "Input Length": report.isl_stats, "Context Length": report.context_length_stats,
        "Unique Prompt Length": report.unique_prompt_length_stats, "Output Length": report.osl_stats,
        "Theoretical Hit Rates": report.hit_rate_stats,
    })  # fmt: skip
    if report.trees is not None:
        yield from _trees(report.trees)
    if report.arrivals is not None:
        yield from _arrivals(report.arrivals)
    yield from ("", "Input Length, requests")
    yield from _histogram(report.isl_histogram, bar, lambda each: f"{each.low:,.0f} – {each.high:,.0f}")
    if report.cache_curve is not None and report.distinct_blocks:
        yield from _curve(report.cache_curve, report.block_size, bar)
    for point in report.asked_caches:
        yield f"A cache of {point.blocks:,} blocks holds {point.hit_rate:.2%} of the blocks that are asked for."


def _table(rows: dict[str, Spread]) -> Iterator[str]:
    yield " " * _NAME + "".join(f"{column:>{_CELL}}" for column in _COLUMNS)
    for name, spread in rows.items():
        values = (spread.mean, spread.std_dev, spread.min, spread.p25, spread.median, spread.p75, spread.max)
        yield f"{name:<{_NAME}}" + "".join(f"{'–' if value is None else f'{value:,.2f}':>{_CELL}}" for value in values)


def _trees(trees: TreeReport) -> Iterator[str]:
    hit = trees.theoretical_prefix_cache_hit
    yield from ("", f"Trees: {trees.trees:,}, of which {trees.with_children:,} start others; {trees.streams:,} streams")
    if hit is not None:
        yield f"Prefix cache hit: {hit:.2%} of all blocks (a cache without end)"
    yield from _table({
        "Requests of a tree": trees.requests_stats, "Streams of a tree": trees.streams_stats, "Depth": trees.depth_stats,
        "Width": trees.width_stats, "Peak Context": trees.peak_context_stats, "Hit Rates of trees": trees.hit_rate_stats,
    })  # fmt: skip


def _arrivals(arrivals: Arrivals) -> Iterator[str]:
    rate = "" if arrivals.requests_per_second is None else f", {arrivals.requests_per_second:,.2f} requests a second"
    yield from ("", f"Arrivals over {arrivals.span_s:,.1f} s{rate}")
    rows = {"Gap (ms)": arrivals.inter_arrival_ms_stats, "Requests per second": arrivals.per_second_stats}
    if arrivals.in_flight_stats is not None:
        rows["Requests in flight"] = arrivals.in_flight_stats
    if arrivals.open_sessions_stats is not None:
        rows["Open sessions"] = arrivals.open_sessions_stats
    yield from _table(rows)


def _histogram(bars: list[Bar], bar: str, label: Callable[[Bar], str]) -> Iterator[str]:
    most = max((each.count for each in bars), default=0)
    for each in bars:
        yield f"{label(each):>{_NAME}}  {bar * round(_BAR * each.count / most):<{_BAR}} {each.count:,}"


def _curve(curve: Curve, size: int, bar: str) -> Iterator[str]:
    how = "exact" if curve.sampled is None else f"distances among {curve.sampled:.1%} of the references"
    yield from ("", f"Hit rate over cache size ({how})")
    points = curve.points[-1::-4][:_CURVE_LINES][::-1]  # each size is twice the one before
    for point in points:
        label = f"{point.blocks:,} block{'' if point.blocks == 1 else 's'}, {point.blocks * size:,} tokens"
        yield f"{label:>{_NAME + 14}}  {bar * round(_BAR * point.hit_rate):<{_BAR}} {point.hit_rate:.2%}"
