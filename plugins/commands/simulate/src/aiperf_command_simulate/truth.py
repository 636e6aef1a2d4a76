"""The server's own measurements: a row for each request, and totals.  Their size is bounded."""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec import Struct

from aiperf_command_simulate.known_answers import Told

_BUCKETS_PER_E = 1000
"""Gaps are counted in buckets 0.1 % wide."""

_MOST_CALLS = 1000

IN_FLIGHT = "in flight"
COMPLETED = "completed"
REFUSED = "refused"
FAILED = "failed"
CUT = "cut"
RESET = "reset"
ERROR_SAID = "error said in-band"
CLIENT_GONE = "client disconnected"
EXPIRED = "deadline exceeded"


class Record(Struct):
    """One request as the server saw it.  Times are CLOCK_MONOTONIC ns, ``wall`` ones CLOCK_REALTIME ns; None: never.

    received: the read that completed the request.  admitted: it left the queue.  first, last: just before the first and
    last piece of content was handed to the socket (for an answer that doesn't stream, the answer).
    ended: the answer was complete, or given up.  body: as text, where bodies are kept.
    answers: of a server that knows answers, what it said, by choice.
    job_ends: when the job that the answer names is over.
    over_context: tokens that the prompt and the answer it asks for are more than the context; such a request is refused.
    drafts, timing: what the answer says of speculative decoding and of its times.  made: the engine made the first token.
    """

    number: int
    connection: int
    path: str
    request_id: str | None
    correlation_id: str | None
    received_mono_ns: int
    received_wall_ns: int
    model: str = ""
    stream: bool = False
    status: int = 0
    outcome: str = IN_FLIGHT
    fault: dict[str, Any] | None = None
    admitted_mono_ns: int | None = None
    first_mono_ns: int | None = None
    first_wall_ns: int | None = None
    last_mono_ns: int | None = None
    last_wall_ns: int | None = None
    ended_mono_ns: int | None = None
    prompt_tokens: int = 0
    cached_tokens: int = 0
    over_context: int = 0
    completion_tokens: int = 0
    reasoning_tokens: int = 0
    chunks: int = 0
    body: str | None = None
    drafts: dict[str, Any] | None = None
    timing: dict[str, float] | None = None
    made_mono_ns: int | None = None
    answers: list[Told] | None = None
    job_ends_mono_ns: int | None = None

    def timed(self, now_ns: int) -> dict[str, float]:
        """The times of an answer whose last token was made at *now_ns*, as vLLM counts them: from when it left the queue."""
        first_ns = now_ns if self.made_mono_ns is None else self.made_mono_ns
        admitted_ns = first_ns if self.admitted_mono_ns is None else self.admitted_mono_ns
        times = {
            "time_to_first_token_ms": (first_ns - admitted_ns) / 1e6, "generation_time_ms": (now_ns - first_ns) / 1e6,
            "queue_time_ms": max(0, admitted_ns - self.received_mono_ns) / 1e6,
        }  # fmt: skip
        if self.completion_tokens > 1:
            times["mean_itl_ms"] = times["generation_time_ms"] / (self.completion_tokens - 1)
        if now_ns > admitted_ns:
            times["tokens_per_second"] = self.completion_tokens / ((now_ns - admitted_ns) / 1e9)
        return times

    @property
    def ttft_ns(self) -> int | None:
        return None if self.first_mono_ns is None else self.first_mono_ns - self.received_mono_ns

    @property
    def latency_ns(self) -> int | None:
        return None if self.last_mono_ns is None else self.last_mono_ns - self.received_mono_ns

    @property
    def itl_ns(self) -> float | None:
        """Mean time between tokens after the first; None for fewer than two, or without streaming."""
        if self.first_mono_ns is None or self.last_mono_ns is None or not self.stream or self.completion_tokens < 2:
            return None
        return (self.last_mono_ns - self.first_mono_ns) / (self.completion_tokens - 1)


class Gaps:
    """Histogram of the time between two events, in logarithmic buckets, so of bounded size."""

    def __init__(self) -> None:
        self._buckets: Counter[int] = Counter()
        self.count = 0
        self.total_ns = 0
        self.max_ns = 0

    def add(self, ns: int) -> None:
        self._buckets[int(math.log(ns) * _BUCKETS_PER_E) if ns > 0 else -1] += 1
        self.count += 1
        self.total_ns += ns
        self.max_ns = max(self.max_ns, ns)

    def percentile_ns(self, percent: float) -> float:
        """The middle of the bucket that holds the rank; NaN for none."""
        rank = max(1, math.ceil(self.count * percent / 100))
        for bucket in sorted(self._buckets):
            rank -= self._buckets[bucket]
            if rank <= 0:
                return 0.0 if bucket < 0 else min(math.exp((bucket + 0.5) / _BUCKETS_PER_E), float(self.max_ns))
        return math.nan

    def statistics_ms(self) -> dict[str, float] | None:
        if not self.count:
            return None
        figures = {f"p{percent}": self.percentile_ns(percent) / 1e6 for percent in (50, 90, 99)}
        return {"count": self.count, "avg": self.total_ns / self.count / 1e6, **figures, "max": self.max_ns / 1e6}


def percentile(ordered: list[float], percent: float) -> float:
    """By linear interpolation between the two nearest ranks of *ordered*, which isn't empty."""
    place = (len(ordered) - 1) * percent / 100
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


def statistics_ms(values_ns: Iterable[float | None]) -> dict[str, float] | None:
    """Count, mean, percentiles and extremes in ms of the values that are there; None if none is."""
    ordered = sorted(value for value in values_ns if value is not None)
    if not ordered:
        return None
    figures = {f"p{percent}": percentile(ordered, percent) / 1e6 for percent in (50, 90, 95, 99)}
    mean = math.fsum(ordered) / len(ordered) / 1e6
    return {"count": len(ordered), "avg": mean, "min": ordered[0] / 1e6, **figures, "max": ordered[-1] / 1e6}


class Truth:
    """Counts everything since the last reset and keeps the rows of the last *keep* requests that ended.

    Percentiles of requests are those of the rows kept; ``dropped`` says how many rows are gone.
    """

    def __init__(self, keep: int) -> None:
        self.keep = keep
        self.connections_open = 0
        self._numbers = 0
        self._open: dict[int, Record] = {}
        self._forget()

    def _forget(self) -> None:
        self._first_number = self._numbers + 1
        self._ended: deque[Record] = deque(maxlen=self.keep)
        self._outcomes: Counter[str] = Counter()
        self._statuses: Counter[int] = Counter()
        self._requests = 0
        self._dropped = self._overflows = 0
        self._in_flight_max = len(self._open)
        self._connections = 0
        self._tokens: Counter[str] = Counter()
        self._answers: Counter[str] = Counter()
        self._starts = Gaps()
        self._first_start_ns: int | None = None
        self._last_start_ns: int | None = None
        self.gaps = Gaps()
        self._calls: list[dict[str, Any]] = []

    def reset(self) -> None:
        """Start again at zero; requests in flight are not counted when they end."""
        self._forget()

    def connected(self) -> None:
        self._connections += 1
        self.connections_open += 1

    def called(self, path: str) -> None:
        """An operator's word; the first thousand are kept, each with the number of requests before it."""
        if len(self._calls) < _MOST_CALLS:
            self._calls.append({"path": path, "requests_before": self._requests})

    def disconnected(self) -> None:
        self.connections_open -= 1

    def begin(
        self, connection: int, path: str, received_ns: int, received_wall_ns: int, request_id: str | None,
        correlation_id: str | None,
    ) -> Record:  # fmt: skip
        """A row for a new request."""
        self._numbers += 1
        record = Record(self._numbers, connection, path, request_id, correlation_id, received_ns, received_wall_ns)
        self._open[record.number] = record
        self._requests += 1
        self._in_flight_max = max(self._in_flight_max, len(self._open))
        if self._last_start_ns is None:
            self._first_start_ns = received_ns
        else:
            self._starts.add(received_ns - self._last_start_ns)
        self._last_start_ns = received_ns
        return record

    def end(self, record: Record, outcome: str, now_ns: int) -> None:
        """The request has ended, completed or not."""
        del self._open[record.number]
        record.outcome = outcome
        record.ended_mono_ns = now_ns
        if record.number < self._first_number:
            return
        self._outcomes[outcome] += 1
        self._statuses[record.status] += 1
        self._overflows += record.over_context > 0
        for field in ("prompt_tokens", "cached_tokens", "completion_tokens", "reasoning_tokens", "chunks"):
            self._tokens[field] += getattr(record, field)
        if record.answers is not None and outcome == COMPLETED:
            kinds = ("unknown" if told.line is None else "right" if told.right else "wrong" for told in record.answers)
            self._answers.update(kinds)
        if len(self._ended) == self.keep:
            self._dropped += 1
        self._ended.append(record)

    def rows(self, last: int | None = None) -> list[Record]:
        """The rows kept, in order of ending, then those in flight; *last* limits the former."""
        ended = list(self._ended)
        if last is not None:
            ended = ended[len(ended) - min(last, len(ended)) :]
        return ended + [record for record in self._open.values() if record.number >= self._first_number]

    def summary(self) -> dict[str, Any]:
        """Totals, ready for JSON; times in ms, None where there are none."""
        done = [record for record in self._ended if record.outcome == COMPLETED]
        first, last = self._first_start_ns, self._last_start_ns
        span_ns = 0 if first is None or last is None else last - first
        return {
            "requests": self._requests,
            "in_flight": len(self._open),
            "in_flight_max": self._in_flight_max,
            "outcomes": dict(self._outcomes),
            "statuses": {str(status): count for status, count in sorted(self._statuses.items())},
            "connections": self._connections,
            "connections_open": self.connections_open,
            "calls": self._calls,
            **{field: self._tokens[field] for field in
               ("prompt_tokens", "cached_tokens", "completion_tokens", "reasoning_tokens", "chunks")},
            "context_overflows": self._overflows,
            **({"answers": dict(self._answers)} if self._answers else {}),
            "starts": {
                "first_mono_ns": first,
                "last_mono_ns": last,
                "rate_per_s": (self._requests - 1) / span_ns * 1e9 if span_ns else None,
                "gap_ms": self._starts.statistics_ms(),
            },
            "ttft_ms": statistics_ms(record.ttft_ns for record in done if record.stream),
            "itl_ms": statistics_ms(record.itl_ns for record in done),
            "latency_ms": statistics_ms(record.latency_ns for record in done),
            "chunk_gap_ms": self.gaps.statistics_ms(),
            "rows_kept": len(self._ended),
            "rows_dropped": self._dropped,
        }  # fmt: skip

    def written(self, engine: dict[str, Any], *, summary_only: bool, last: int | None = None) -> bytes:
        """``/truth`` as JSON; *engine* has the figures of the engine."""
        answer: dict[str, Any] = {"summary": self.summary() | {"engine": engine}}
        if not summary_only:
            answer["requests"] = self.rows(last)
        return msgspec.json.encode(answer)

    def paragraph(self) -> str:
        """The summary as a few sentences."""
        totals = self.summary()
        outcomes = ", ".join(f"{count:,} {outcome}" for outcome, count in sorted(totals["outcomes"].items())) or "none ended"
        parts = [
            f"{totals['requests']:,} requests on {totals['connections']:,} connections ({outcomes}), "
            f"at most {totals['in_flight_max']:,} in flight, {totals['in_flight']:,} cut short by the end",
            f"{totals['prompt_tokens']:,} prompt tokens ({totals['cached_tokens']:,} cached), "
            f"{totals['completion_tokens']:,} completion tokens in {totals['chunks']:,} chunks",
        ]
        names = {"ttft_ms": "first token", "itl_ms": "between tokens", "latency_ms": "latency"}
        times = [
            f"{name} p50 {spread['p50']:.2f} ms, p99 {spread['p99']:.2f} ms"
            for key, name in names.items()
            if (spread := totals[key])
        ]
        if times:
            parts.append("; ".join(times))
        if totals["rows_dropped"]:
            parts.append(f"times are of the last {totals['rows_kept']:,} requests")
        return ". ".join(parts) + "."
