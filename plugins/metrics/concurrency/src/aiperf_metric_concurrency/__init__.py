"""How many requests were on their way, and how fast tokens flowed, over time.

Curves over the whole phase, and statistics of them that weight each value by how long it held: *effective* ones over all of the
time, *active* ones over the time in which there was something to do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from aiperf import Analysis, Kept, Needs, Result

from aiperf_metric_concurrency.curves import Curve, ratio, statistics
from aiperf_metric_concurrency.flow import Requests, concurrency, flow

_REQUESTS, _RATE, _PER_USER, _TOKENS = "requests", "tokens/sec", "tokens/sec/user", "tokens"


class EffectiveConcurrency(Analysis):
    """Requests on their way at a time, failed ones included."""

    tag = "effective_concurrency"
    title = "Effective Concurrency"
    keeps = ("started_ns", "ended_ns")

    def over(self, kept: Kept) -> Callable[[float, float], Iterable[Result]]:
        curve = concurrency(kept.column("started_ns"), kept.column("ended_ns"))
        return lambda begin_ns, end_ns: _results([(self.tag, _REQUESTS, curve, None)], 0, begin_ns, end_ns)


class TokenFlow(Analysis):
    """Requests that wait for their first token or are being answered, tokens per second, and tokens that the server holds."""

    tag = "token_flow"
    title = "Token Flow"
    needs = ("time_to_first_token", "input_sequence_length", "output_sequence_length")
    requires = Needs.STREAMING | Needs.TOKENS_IN | Needs.TOKENS_OUT
    keeps = ("started_ns", "ended_ns", *needs)
    lists = ("chunk_ns",)

    def over(self, kept: Kept) -> Callable[[float, float], Iterable[Result]]:
        curves = flow(Requests.of(kept))
        decode_per_user = ratio(curves.decode, curves.decode_concurrency)
        prefill_per_user = ratio(curves.prefill, curves.prefill_concurrency)
        rows: list[tuple[str, str, Curve, Curve | None]] = [
            ("effective_decode_concurrency", _REQUESTS, curves.decode_concurrency, None),
            ("effective_prefill_concurrency", _REQUESTS, curves.prefill_concurrency, None),
            ("effective_decode_throughput", _RATE, curves.decode, None),
            ("effective_prefill_throughput", _RATE, curves.prefill, None),
            ("effective_total_throughput", _RATE, curves.total, None),
            ("effective_decode_throughput_per_user", _PER_USER, decode_per_user, None),
            ("effective_prefill_throughput_per_user", _PER_USER, prefill_per_user, None),
            ("tokens_in_flight", _TOKENS, curves.in_flight, None),
            ("active_decode_throughput", _RATE, curves.decode, curves.decode_concurrency),
            ("active_prefill_throughput", _RATE, curves.prefill, curves.prefill_concurrency),
            ("active_total_throughput", _RATE, curves.total, curves.concurrency),
            ("active_decode_throughput_per_user", _PER_USER, decode_per_user, curves.decode_concurrency),
            ("active_prefill_throughput_per_user", _PER_USER, prefill_per_user, curves.prefill_concurrency),
        ]
        return lambda begin_ns, end_ns: _results(rows, 1, begin_ns, end_ns)


def _results(
    rows: list[tuple[str, str, Curve, Curve | None]], first: int, begin_ns: float, end_ns: float
) -> Iterator[Result]:
    """Tag, unit, curve and gate of each, from place *first* on; one of which there was no time has none."""
    for order, (tag, unit, curve, gate) in enumerate(rows, first):
        found = statistics(curve, begin_ns, end_ns, gate)
        if found is not None:
            group = "Effective" if gate is None else "Active"
            yield Result(tag, tag.replace("_", " ").title(), unit, found, "", group, order)
