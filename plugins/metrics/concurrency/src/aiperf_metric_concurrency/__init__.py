"""Requests in flight and token rates over time.

Each metric is a curve over the phase with statistics that weight each value by its duration: *effective* ones over the whole
time, *active* ones over the time with matching requests in flight.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from aiperf import Analysis, Needs, RawValues, Result

from aiperf_metric_concurrency.curves import statistics
from aiperf_metric_concurrency.flow import Requests, Row, concurrency, flow

_ORDER = (
    "effective_concurrency", "effective_decode_concurrency", "effective_prefill_concurrency", "effective_decode_throughput",
    "effective_prefill_throughput", "effective_total_throughput", "effective_decode_throughput_per_user",
    "effective_prefill_throughput_per_user", "tokens_in_flight", "active_decode_throughput", "active_prefill_throughput",
    "active_total_throughput", "active_decode_throughput_per_user", "active_prefill_throughput_per_user",
)  # fmt: skip
"""Order of the rows in the console's tables."""


class EffectiveConcurrency(Analysis):
    """Requests in flight at a time, failed ones included."""

    tag = "effective_concurrency"
    title = "Effective Concurrency"
    keeps = ("started_ns", "ended_ns")

    def results(self, kept: RawValues, windows: Sequence[tuple[float, float]]) -> Iterable[Iterable[Result]]:
        curve = concurrency(kept.column("started_ns"), kept.column("ended_ns"))
        return _results([Row(self.tag, "requests", curve)], windows)


class TokenFlow(Analysis):
    """Requests in prefill and in decode, tokens per second, and tokens that the server holds; absent without a first token."""

    tag = "token_flow"
    title = "Token Flow"
    needs = ("time_to_first_token", "input_sequence_length", "output_sequence_length")
    requires = Needs.STREAMING | Needs.TOKENS_IN | Needs.TOKENS_OUT
    keeps = ("started_ns", "ended_ns", *needs)
    lists = ("chunk_ns",)
    gives = _ORDER[1:]

    def results(self, kept: RawValues, windows: Sequence[tuple[float, float]]) -> Iterable[Iterable[Result]]:
        requests = Requests.of(kept)
        return _results(() if np.isnan(requests.first_ns).all() else flow(requests), windows)


def _results(rows: Iterable[Row], windows: Sequence[tuple[float, float]]) -> list[list[Result]]:
    """The statistics of each window, without rows that have no time in it."""
    results: list[list[Result]] = [[] for _ in windows]
    for row in rows:
        group = "Effective" if row.gate is None else "Active"
        title, order = row.tag.replace("_", " ").title(), _ORDER.index(row.tag)
        for window, (begin_ns, end_ns) in zip(results, windows, strict=True):
            stats = statistics(row.curve, begin_ns, end_ns, row.gate)
            if stats is not None:
                window.append(Result(row.tag, title, row.unit, stats, "", group, order))
        del row  # frees its curves before the next row makes new ones
    return results
