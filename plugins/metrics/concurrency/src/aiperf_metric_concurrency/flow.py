"""What a run's requests amount to at each instant: how many are on their way, and how fast tokens are read and written."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from aiperf import Kept
from msgspec import Struct
from numpy.typing import NDArray

from aiperf_metric_concurrency.curves import Curve, Events, Floats, ratio, spans, steps, together

_NS_PER_S = 1e9
_RATE, _PER_USER = "tokens/sec", "tokens/sec/user"


class Requests(Struct, frozen=True):
    """Requests side by side.

    begin_ns, first_ns, end_ns: start, first token, end; NaN where it never came to that, or nobody knows.
    prompt, output: tokens; NaN where they weren't counted.  lengths, instants: at how many instants content came to each, and
    these, one request after the other; none where they were too many to keep.
    """

    begin_ns: Floats
    first_ns: Floats
    end_ns: Floats
    prompt: Floats
    output: Floats
    lengths: NDArray[np.int64]
    instants: Floats

    @classmethod
    def of(cls, kept: Kept) -> Requests:
        began = kept.column("started_ns")
        lengths, instants = kept.lists("chunk_ns") or (np.zeros(len(began), dtype=np.int64), np.empty(0))
        return cls(
            began, began + kept.column("time_to_first_token"), kept.column("ended_ns"), kept.column("input_sequence_length"),
            kept.column("output_sequence_length"), lengths, instants,
        )  # fmt: skip

    def where(self, rows: NDArray[np.bool_]) -> Requests:
        if rows.all():
            return self
        return Requests(
            self.begin_ns[rows], self.first_ns[rows], self.end_ns[rows], self.prompt[rows], self.output[rows],
            self.lengths[rows], self.instants[np.repeat(rows, self.lengths)],
        )  # fmt: skip


class Row(NamedTuple):
    """A metric: its curve, and another that is above zero where it counts."""

    tag: str
    unit: str
    curve: Curve
    gate: Curve | None = None


def flow(requests: Requests) -> Iterator[Row]:
    """The metrics, a few curves at a time: each is as long as the run has requests.

    What failed, or has no first token, is on its way and has no tokens.
    """
    begun = requests.where(~np.isnan(requests.first_ns))
    counted = begun.where(~np.isnan(begun.prompt) & ~np.isnan(begun.output) & ~np.isnan(begun.end_ns))
    yield from _side("decode", concurrency(begun.first_ns, begun.end_ns), steps(_writing(counted)))
    yield from _side("prefill", concurrency(begun.begin_ns, begun.first_ns), steps(_reading(counted)))
    total = steps(together(_reading(counted), _evenly(counted)))
    yield Row("effective_total_throughput", _RATE, total)
    yield Row("active_total_throughput", _RATE, total, concurrency(requests.begin_ns, requests.end_ns))
    del total
    yield Row("tokens_in_flight", "tokens", steps(_held(counted)))


def _side(name: str, users: Curve, throughput: Curve) -> Iterator[Row]:
    yield Row(f"effective_{name}_concurrency", "requests", users)
    yield Row(f"effective_{name}_throughput", _RATE, throughput)
    yield Row(f"active_{name}_throughput", _RATE, throughput, users)
    per_user = ratio(throughput, users)
    yield Row(f"effective_{name}_throughput_per_user", _PER_USER, per_user)
    yield Row(f"active_{name}_throughput_per_user", _PER_USER, per_user, users)


def concurrency(begin_ns: Floats, end_ns: Floats) -> Curve:
    """How many are on their way; one whose end nobody knows stays."""
    return steps(spans(begin_ns, end_ns, np.ones(len(begin_ns))))


def _reading(requests: Requests) -> Events:
    """Each prompt, spread evenly over the time to the first token."""
    waited = requests.where(requests.first_ns > requests.begin_ns)
    rates = waited.prompt / (waited.first_ns - waited.begin_ns) * _NS_PER_S
    return spans(waited.begin_ns, waited.first_ns, rates)


def _evenly(requests: Requests) -> Events:
    """Each answer's tokens but the first, spread evenly from there to the end."""
    long = requests.where((requests.end_ns > requests.first_ns) & (requests.output >= 1))
    return spans(long.first_ns, long.end_ns, (long.output - 1) / (long.end_ns - long.first_ns) * _NS_PER_S)


def _writing(requests: Requests) -> Events:
    """Each answer's tokens but the first, in equal parts over the times between its pieces; evenly where all came at once."""
    pieced = requests.lengths >= 2
    begins, ends, parts = _gaps(requests.where(pieced & (requests.output >= 1)))
    return together(_evenly(requests.where(~pieced)), spans(begins, ends, parts / (ends - begins) * _NS_PER_S))


def _held(requests: Requests) -> Events:
    """Tokens that the server holds: the prompt from the start on, the answer's as they come, until the end."""
    pieced = requests.lengths >= 2
    whole, slowly = requests.where(~pieced), requests.where(pieced)
    _, ends, parts = _gaps(slowly)
    return together(
        (requests.begin_ns, requests.prompt),
        (whole.first_ns, whole.output),
        (slowly.first_ns, np.ones(len(slowly.output))),
        (ends, parts),
        (requests.end_ns, -(requests.prompt + requests.output)),
    )


def _gaps(requests: Requests) -> tuple[Floats, Floats, Floats]:
    """Of answers that came at two instants or more: begin and end of each time between, and the tokens that came then."""
    ends = np.cumsum(requests.lengths)
    first, last = np.zeros(len(requests.instants), dtype=bool), np.zeros(len(requests.instants), dtype=bool)
    first[ends - requests.lengths], last[ends - 1] = True, True
    gaps = requests.lengths - 1
    return requests.instants[~last], requests.instants[~first], np.repeat((requests.output - 1) / gaps, gaps)
