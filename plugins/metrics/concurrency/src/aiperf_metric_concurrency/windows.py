"""The results of each window of time, from curves of one piece of the time after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from aiperf import Result

from aiperf_metric_concurrency.curves import weighted
from aiperf_metric_concurrency.flow import Row
from aiperf_metric_concurrency.pieces import Piece
from aiperf_metric_concurrency.spread import Spread

ORDER = (
    "effective_concurrency", "effective_decode_concurrency", "effective_prefill_concurrency", "effective_decode_throughput",
    "effective_prefill_throughput", "effective_total_throughput", "effective_decode_throughput_per_user",
    "effective_prefill_throughput_per_user", "tokens_in_flight", "active_decode_throughput", "active_prefill_throughput",
    "active_total_throughput", "active_decode_throughput_per_user", "active_prefill_throughput_per_user",
)  # fmt: skip
"""Order of the rows in the console's tables."""


class _Window:
    """A window's results so far, and the values of rows that go on in the next piece."""

    def __init__(self, begin_ns: float, end_ns: float, percentiles: Sequence[float]) -> None:
        self._begin_ns, self._end_ns, self._percentiles = begin_ns, end_ns, percentiles
        self._spreads: dict[str, list[Spread]] = {}
        self.results: list[Result] = []

    def take(self, row: Row, begin_ns: float, end_ns: float) -> None:
        """Add a row of a piece, from one instant to another; pieces come in order.  No result without time in the window."""
        if begin_ns >= self._end_ns or end_ns <= self._begin_ns:
            return
        curves = (row.curve, *(row.between or ()))
        spreads = self._spreads.pop(row.tag, None) or [Spread() for _ in curves]
        for spread, curve in zip(spreads, curves, strict=True):
            part = weighted(curve, max(self._begin_ns, begin_ns), min(self._end_ns, end_ns), row.gate)
            if part is not None:
                spread.add(*part)
        if end_ns < self._end_ns:
            self._spreads[row.tag] = spreads
        elif (stats := spreads[0].statistics(self._percentiles)) is not None:
            group = "Effective" if row.gate is None else "Active"
            title, order = row.tag.replace("_", " ").title(), ORDER.index(row.tag)
            lower, upper = [_without_deviation(spread.statistics(self._percentiles)) for spread in spreads[1:]] or [{}, {}]
            if lower == upper:  # the estimates are of another window
                lower = upper = {}
            self.results.append(Result(row.tag, title, row.unit, stats, "", group, order, lower, upper))


def _without_deviation(stats: dict[str, float] | None) -> dict[str, float]:
    """Bounds of the curve bound all but its deviation."""
    return {name: value for name, value in (stats or {}).items() if name != "std"}


def results(
    pieces: Iterable[Piece], rows: Callable[[Piece], Iterable[Row]], windows: Sequence[tuple[float, float]],
    percentiles: Sequence[float] = (),
) -> list[list[Result]]:  # fmt: skip
    """The statistics of each row in each window.  *rows*: of a piece, always the same ones.  *percentiles*: further ones."""
    found = [_Window(*window, percentiles) for window in windows]
    for piece in pieces:
        begin_ns, end_ns, made = piece.begin_ns, piece.end_ns, rows(piece)
        del piece  # frees the columns that no row needs, before their curves are made
        for row in made:
            for window in found:
                window.take(row, begin_ns, end_ns)
            del row  # frees its curves before the next row makes new ones
    return [window.results for window in found]
