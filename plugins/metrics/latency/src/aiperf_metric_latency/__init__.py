"""Latency and speed of single requests.

Time zero of a request is its start, before pool wait, name lookup and connect.  Instants are receive stamps of content;
trailing usage and end markers don't count.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from aiperf import Column, Metric, Needs, RecordBatch, Unit
from aiperf.sdk.columns import Bounds

if TYPE_CHECKING:
    from numpy.typing import NDArray

_TOKENS_STREAMED = Needs.STREAMING | Needs.TOKENS_OUT


class TimeToFirstToken(Metric):
    """From the start to the first content of any kind, reasoning included.

    Bounded where it was merged with later content, or where an event before it is unreadable.
    """

    tag = "time_to_first_token"
    title = "Time to First Token"
    short = "TTFT"
    unit = Unit.NANOSECONDS
    display = Unit.MILLISECONDS
    requires = _TOKENS_STREAMED
    order = 100
    headline = 1
    adjusted = True
    since = "started_ns"
    early = True
    rises = ("first_token_ns",)
    by = ("depth", "position")

    def column(self, batch: RecordBatch) -> Column:
        return batch["first_token_ns"] - batch["started_ns"]

    def bounds(self, batch: RecordBatch) -> Bounds | None:
        if not np.isfinite(batch["unreadable_ns"]).any():
            return super().bounds(batch)
        started, low, high = batch["started_ns"], batch["first_token_ns"], batch["first_token_ns"]
        if "first_low_ns" in batch.columns:
            low, high = batch["first_low_ns"], batch["first_high_ns"]
        return Bounds.around(self.column(batch), np.fmin(low, batch["unreadable_ns"]) - started, high - started)


class TimeToSecondToken(Metric):
    """From the first content to the next content of a later instant; bounded where a merged read hides one of the two."""

    tag = "time_to_second_token"
    title = "Time to Second Token"
    short = "TTST"
    unit = Unit.NANOSECONDS
    display = Unit.MILLISECONDS
    requires = _TOKENS_STREAMED
    order = 200
    between = ("second_low_ns", "second_high_ns")

    def column(self, batch: RecordBatch) -> Column:
        if "second_low_ns" in batch.columns:
            return (batch["second_low_ns"] + batch["second_high_ns"]) / 2
        return batch["second_token_ns"] - batch["first_token_ns"]


class TimeToFirstOutputToken(Metric):
    """From the start to the first content that isn't reasoning; absent if only reasoning came.

    Bounded where it was merged with later content.
    """

    tag = "time_to_first_output_token"
    title = "Time to First Output Token"
    short = "TTFO"
    unit = Unit.NANOSECONDS
    display = Unit.MILLISECONDS
    requires = _TOKENS_STREAMED
    order = 210
    since = "started_ns"
    early = True
    rises = ("first_output_ns",)

    def column(self, batch: RecordBatch) -> Column:
        return batch["first_output_ns"] - batch["started_ns"]


class RequestLatency(Metric):
    """From the start to the last content."""

    tag = "request_latency"
    title = "Request Latency"
    short = "Req Latency"
    unit = Unit.NANOSECONDS
    display = Unit.MILLISECONDS
    order = 300
    headline = 3
    adjusted = True
    since = "started_ns"
    by = ("depth", "position")

    def column(self, batch: RecordBatch) -> Column:
        return batch["last_token_ns"] - batch["started_ns"]


class ResponseLatency(Metric):
    """From the due time to the end of the answer, as a user sees it who sends on schedule."""

    tag = "response_latency"
    title = "Response Latency"
    unit = Unit.NANOSECONDS
    display = Unit.MILLISECONDS
    requires = Needs.PACED
    order: int | None = 320
    since: str | None = "due_ns"

    def column(self, batch: RecordBatch) -> Column:
        return batch["last_byte_ns"] - batch["due_ns"]  # the end with trailing usage, as in the reference's files


class EffectiveLatency(ResponseLatency):
    """The reference's name for the response latency, kept for readers of its files."""

    tag = "effective_latency"
    title = "Effective Latency (CO-aware)"
    order = None
    since = None


class ScheduleSlip(Metric):
    """Time from the due time of a request to its start."""

    tag = "schedule_slip"
    title = "Schedule Slip"
    unit = Unit.NANOSECONDS
    display = Unit.MILLISECONDS
    requires = Needs.PACED
    order: int | None = 330

    def column(self, batch: RecordBatch) -> Column:
        return batch["started_ns"] - batch["due_ns"]


class CreditToStartLatency(ScheduleSlip):
    """The reference's name for the schedule slip, kept for readers of its files."""

    tag = "credit_to_start_latency"
    title = "Credit-to-Start Latency"
    order = None

    def column(self, batch: RecordBatch) -> Column:
        return np.maximum(batch["started_ns"] - batch["due_ns"], 0)


class StreamSetupLatency(Metric):
    """From the start to the status line and headers of the answer."""

    tag = "stream_setup_latency"
    title = "Stream Setup Latency"
    unit = Unit.NANOSECONDS
    display = Unit.MILLISECONDS
    requires = Needs.STREAMING | Needs.EXPERIMENTAL
    group = "Experimental"
    order = 1

    def column(self, batch: RecordBatch) -> Column:
        return batch["ack_ns"] - batch["started_ns"]


class StreamPrefillLatency(Metric):
    """From the headers of the answer to the first content: the time to the first token without the stream setup."""

    tag = "stream_prefill_latency"
    title = "Stream Prefill Latency"
    unit = Unit.NANOSECONDS
    display = Unit.MILLISECONDS
    requires = _TOKENS_STREAMED | Needs.EXPERIMENTAL
    group = "Experimental"
    order = 2
    rises = ("first_token_ns",)

    def column(self, batch: RecordBatch) -> Column:
        return batch["first_token_ns"] - batch["ack_ns"]


class DecodeDuration(Metric):
    """From the first content to the last; bounded where one of the two was merged with later content."""

    tag = "decode_duration"
    title = "Decode Duration"
    unit = Unit.NANOSECONDS
    display = Unit.MILLISECONDS
    requires = _TOKENS_STREAMED
    order = 350
    adjusted = True
    between = ("decode_low_ns", "decode_high_ns")

    def column(self, batch: RecordBatch) -> Column:
        return batch["last_token_ns"] - batch["first_token_ns"]


class InterTokenLatency(Metric):
    """Decode duration divided by its tokens: all but those of the first content.

    The first content has one token, unless the server's count per chunk shows more (speculative decoding, stream intervals).
    Absent for answers of one token, and where all content came at one instant.
    """

    tag = "inter_token_latency"
    title = "Inter Token Latency"
    short = "ITL"
    unit = Unit.NANOSECONDS
    display = Unit.MILLISECONDS
    needs = ("output_sequence_length",)
    requires = _TOKENS_STREAMED | Needs.ONE_ANSWER
    order = 400
    headline = 2
    adjusted = True

    def column(self, batch: RecordBatch) -> Column:
        return self._per_token(batch, batch["last_token_ns"] - batch["first_token_ns"])

    def bounds(self, batch: RecordBatch) -> Bounds | None:
        if "decode_low_ns" not in batch.columns:
            return None
        ends = (self._per_token(batch, batch[name]) for name in ("decode_low_ns", "decode_high_ns"))
        return Bounds.around(self.column(batch), *ends)

    @staticmethod
    def _per_token(batch: RecordBatch, duration: NDArray[np.float64]) -> NDArray[np.float64]:
        tokens, first = batch["output_sequence_length"], batch["first_tokens"]
        gaps = np.where((first >= 1) & (tokens - first >= 1), tokens - first, tokens - 1)
        return _quotient(duration, gaps, (duration > 0) & (gaps >= 1))


class InterChunkLatency(Metric):
    """Times between neighbouring arrivals of content, as a list; bounded where a merged read hides when some of it came."""

    tag = "inter_chunk_latency"
    title = "Inter Chunk Latency"
    short = "ICL"
    unit = Unit.NANOSECONDS
    display = Unit.MILLISECONDS
    requires = _TOKENS_STREAMED

    def column(self, batch: RecordBatch) -> Column:
        return batch.lists("gap_ns")

    def bounds(self, batch: RecordBatch) -> Bounds | None:
        if "gap_low_ns" not in batch.columns:
            return None
        return Bounds(*map(batch.lists, ("gap_low_ns", "gap_high_ns", "gap_slack_ns")))


class OutputTokenThroughputPerUser(Metric):
    """Tokens per second of one answer after its first token."""

    tag = "output_token_throughput_per_user"
    title = "Output Token Throughput Per User"
    short = "Output TPS/User"
    unit = Unit.TOKENS_PER_SECOND_PER_USER
    needs = ("inter_token_latency",)
    falls = needs
    requires = _TOKENS_STREAMED
    larger_is_better = True
    order = 500

    def column(self, batch: RecordBatch) -> Column:
        gap = batch["inter_token_latency"]
        return _quotient(np.full(len(batch), 1e9), gap, gap > 0)


class EndToEndOutputTokenThroughput(Metric):
    """Output tokens divided by the request latency."""

    tag = "e2e_output_token_throughput"
    title = "E2E Output Token Throughput"
    short = "E2E Output TPS/User"
    unit = Unit.TOKENS_PER_SECOND_PER_USER
    needs = ("output_sequence_length", "request_latency")
    requires = Needs.TOKENS_OUT | Needs.ONE_ANSWER
    larger_is_better = True
    order = 510

    def column(self, batch: RecordBatch) -> Column:
        latency = batch["request_latency"] / 1e9
        return _quotient(batch["output_sequence_length"], latency, latency > 0)


class PrefillThroughputPerUser(Metric):
    """Input tokens divided by the time to the first token."""

    tag = "prefill_throughput_per_user"
    title = "Prefill Throughput Per User"
    unit = Unit.TOKENS_PER_SECOND_PER_USER
    needs = ("input_sequence_length", "time_to_first_token")
    falls = ("time_to_first_token",)
    requires = _TOKENS_STREAMED | Needs.TOKENS_IN
    larger_is_better = True

    def column(self, batch: RecordBatch) -> Column:
        first = batch["time_to_first_token"] / 1e9
        return _quotient(batch["input_sequence_length"], first, first > 0)


def _quotient(above: NDArray[np.float64], below: NDArray[np.float64], where: NDArray[np.bool_]) -> NDArray[np.float64]:
    """The quotient where *where* is true, absent elsewhere."""
    quotient: NDArray[np.float64] = np.divide(above, below, out=np.full(len(above), np.nan), where=where)
    return quotient
