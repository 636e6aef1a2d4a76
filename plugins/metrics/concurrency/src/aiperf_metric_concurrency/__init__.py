"""Requests in flight and token rates over time.

Each metric is a curve over the phase with statistics that weight each value by its duration: *effective* ones over the whole
time, *active* ones over the time with matching requests in flight.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from aiperf import Analysis, Needs, RawValues, Result

from aiperf_metric_concurrency.flow import RequestColumns, Row, concurrency, ends_of, flow
from aiperf_metric_concurrency.pieces import Piece, any_request, pieces_of
from aiperf_metric_concurrency.windows import ORDER, results


class EffectiveConcurrency(Analysis):
    """Requests in flight at a time, failed ones included; each ends where its record does, with the last bytes that came."""

    tag = "effective_concurrency"
    title = "Effective Concurrency"
    keeps = ("started_ns", "ended_ns", "last_byte_ns", "outcome")

    def results(self, kept: RawValues, windows: Sequence[tuple[float, float]]) -> Iterable[Iterable[Result]]:
        return results(pieces_of(kept), self._rows, windows, kept.percentiles)

    def _rows(self, piece: Piece) -> Iterable[Row]:
        return [Row(self.tag, "requests", concurrency(piece.columns["started_ns"], ends_of(piece.columns)))]


class TokenFlow(Analysis):
    """Requests in prefill and in decode, tokens per second, and tokens that the server holds; absent without a first token.

    Requests in prefill and in decode have bounds where first content was merged.  Rates of tokens have none: they spread tokens
    evenly, which nobody has seen, and use the likely instant of the first content.
    """

    tag = "token_flow"
    title = "Token Flow"
    needs = ("time_to_first_token", "input_sequence_length", "output_sequence_length")
    requires = Needs.STREAMING | Needs.TOKENS_IN | Needs.TOKENS_OUT
    keeps = ("started_ns", "ended_ns", "last_byte_ns", "outcome", "first_low_ns", "first_high_ns", *needs)
    lists = ("chunk_ns",)
    gives = ORDER[1:]

    def results(self, kept: RawValues, windows: Sequence[tuple[float, float]]) -> Iterable[Iterable[Result]]:
        if not any_request(kept, lambda columns: not np.isnan(columns["time_to_first_token"]).all()):
            return [[] for _ in windows]
        bounded = any_request(kept, lambda columns: bool((columns["first_low_ns"] < columns["first_high_ns"]).any()))
        pieces = pieces_of(kept, "chunk_ns")
        return results(pieces, lambda piece: flow(RequestColumns.of(piece), bounded=bounded), windows, kept.percentiles)
