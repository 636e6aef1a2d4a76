"""Curves of requests in flight, and of tokens read and written per second."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from aiperf.parts.journal import RECORDED
from aiperf.sdk.columns import Floats
from msgspec import Struct

from aiperf_metric_concurrency.curves import Curve, Events, ratio, spans, steps, together
from aiperf_metric_concurrency.pieces import Piece

if TYPE_CHECKING:
    from numpy.typing import NDArray

_NS_PER_S = 1e9
_RATE, _PER_USER = "tokens/sec", "tokens/sec/user"


class RequestColumns(Struct, frozen=True):
    """Columns of requests.

    begin_ns, first_ns, end_ns: start, first token, end; NaN where it never happened or is unknown.  earliest_ns, latest_ns:
    between which the first token came.
    prompt, output: tokens; NaN where they weren't counted.  lengths, instants: by request, the number of instants with
    content, and these instants joined; empty where they exceeded the memory budget.
    """

    begin_ns: Floats
    first_ns: Floats
    earliest_ns: Floats
    latest_ns: Floats
    end_ns: Floats
    prompt: Floats
    output: Floats
    lengths: NDArray[np.int64]
    instants: Floats

    @classmethod
    def of(cls, piece: Piece) -> RequestColumns:
        columns, began = piece.columns, piece.columns["started_ns"]
        lengths, instants = piece.lists or (np.zeros(len(began), dtype=np.int64), np.empty(0))
        return cls(
            began, began + columns["time_to_first_token"], columns["first_low_ns"], columns["first_high_ns"], ends_of(columns),
            columns["input_sequence_length"], columns["output_sequence_length"], lengths, instants,
        )  # fmt: skip

    def where(self, rows: NDArray[np.bool_]) -> RequestColumns:
        if rows.all():
            return self
        return RequestColumns(
            self.begin_ns[rows], self.first_ns[rows], self.earliest_ns[rows], self.latest_ns[rows], self.end_ns[rows],
            self.prompt[rows], self.output[rows], self.lengths[rows], self.instants[np.repeat(rows, self.lengths)],
        )  # fmt: skip


class Row(NamedTuple):
    """A metric: its curve, and a gate that is above zero where the curve counts.

    between: curves that are never above it, and never below it, where it is an estimate.
    """

    tag: str
    unit: str
    curve: Curve
    gate: Curve | None = None
    between: tuple[Curve, Curve] | None = None


def ends_of(columns: Mapping[str, Floats]) -> Floats:
    """The ends of requests, as in their records: with the last bytes that came.

    Requests without a record, which the end of the run cut off, were in flight until then.
    """
    last, recorded = columns["last_byte_ns"], np.isin(columns["outcome"], RECORDED)
    return np.where(recorded & ~np.isnan(last), last, columns["ended_ns"])


def flow(requests: RequestColumns, *, bounded: bool = False) -> Iterator[Row]:
    """The metrics, with few curves in memory at a time, because each has a point per request.

    *bounded*: of some requests only an interval is known in which the first token came.

    Requests that failed or have no first token are in flight and have no tokens.
    """
    begun = requests.where(~np.isnan(requests.first_ns))
    counted = begun.where(~np.isnan(begun.prompt) & ~np.isnan(begun.output) & ~np.isnan(begun.end_ns))
    ends = (begun.latest_ns, begun.earliest_ns) if bounded else ()  # decoding is longest where it begins earliest
    between = [concurrency(first_ns, begun.end_ns) for first_ns in ends]
    yield from _side("decode", concurrency(begun.first_ns, begun.end_ns), steps(_writing(counted)), between)
    between = [concurrency(begun.begin_ns, first_ns) for first_ns in reversed(ends)]
    yield from _side("prefill", concurrency(begun.begin_ns, begun.first_ns), steps(_reading(counted)), between)
    del between
    total = steps(together(_reading(counted), _evenly(counted)))
    yield Row("effective_total_throughput", _RATE, total)
    yield Row("active_total_throughput", _RATE, total, concurrency(requests.begin_ns, requests.end_ns))
    del total
    yield Row("tokens_in_flight", "tokens", steps(_held(counted)))


def _side(name: str, users: Curve, throughput: Curve, between: list[Curve]) -> Iterator[Row]:
    yield Row(f"effective_{name}_concurrency", "requests", users, between=(between[0], between[1]) if between else None)
    yield Row(f"effective_{name}_throughput", _RATE, throughput)
    yield Row(f"active_{name}_throughput", _RATE, throughput, users)
    per_user = ratio(throughput, users)
    del throughput
    yield Row(f"effective_{name}_throughput_per_user", _PER_USER, per_user)
    yield Row(f"active_{name}_throughput_per_user", _PER_USER, per_user, users)


def concurrency(begin_ns: Floats, end_ns: Floats) -> Curve:
    """Requests in flight; one with an unknown end stays."""
    return steps(spans(begin_ns, end_ns, np.ones(len(begin_ns))))


def _reading(requests: RequestColumns) -> Events:
    """Prompt tokens, spread evenly over the time to the first token."""
    waited = requests.where(requests.first_ns > requests.begin_ns)
    rates = waited.prompt / (waited.first_ns - waited.begin_ns) * _NS_PER_S
    return spans(waited.begin_ns, waited.first_ns, rates)


def _evenly(requests: RequestColumns) -> Events:
    """Answer tokens after the first, spread evenly from the first token to the end."""
    long = requests.where((requests.end_ns > requests.first_ns) & (requests.output >= 1))
    return spans(long.first_ns, long.end_ns, (long.output - 1) / (long.end_ns - long.first_ns) * _NS_PER_S)


def _writing(requests: RequestColumns) -> Events:
    """Answer tokens after the first, in equal parts over the times between pieces; evenly for answers in one piece."""
    pieced = requests.lengths >= 2
    slowly = requests.where(pieced & (requests.output >= 1))
    first, last, parts = _gaps(slowly)
    instants, rises = slowly.instants, np.zeros(len(slowly.instants))
    rates = parts / (instants[~first] - instants[~last]) * _NS_PER_S
    rises[~last] = rates  # an instant ends one gap and begins the next: one change for both
    rises[~first] -= rates
    return together(_evenly(requests.where(~pieced)), (instants, rises))


def _held(requests: RequestColumns) -> Events:
    """Tokens that the server holds: the prompt from the start, the answer's tokens from their arrival, until the end."""
    pieced = requests.lengths >= 2
    whole, slowly = requests.where(~pieced), requests.where(pieced)
    first, _, parts = _gaps(slowly)
    return together(
        (requests.begin_ns, requests.prompt),
        (whole.first_ns, whole.output),
        (slowly.first_ns, np.ones(len(slowly.output))),
        (slowly.instants[~first], parts),
        (requests.end_ns, -(requests.prompt + requests.output)),
    )


def _gaps(requests: RequestColumns) -> tuple[NDArray[np.bool_], NDArray[np.bool_], Floats]:
    """For answers with two instants or more: which instants are the first and the last of an answer, and for each gap between
    two of an answer the tokens that arrived at its end."""
    ends = np.cumsum(requests.lengths)
    first, last = np.zeros(len(requests.instants), dtype=bool), np.zeros(len(requests.instants), dtype=bool)
    first[ends - requests.lengths], last[ends - 1] = True, True
    gaps = requests.lengths - 1
    return first, last, np.repeat((requests.output - 1) / gaps, gaps)
