"""How long the server says that its answers took, by request (spec: metrics §13)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import msgspec
import numpy as np
from aiperf import Column, Metric, RecordBatch, Unit
from aiperf_dialects.spec_decode import SERVER_TIMING, ServerTiming

_read = msgspec.json.Decoder(ServerTiming).decode


def _column(batch: RecordBatch, name: str, scale: float) -> Column:
    """A field of what each server says; absent where it doesn't say it."""
    texts = batch.texts.get(SERVER_TIMING)
    if texts is None:
        return np.full(len(batch), np.nan)
    values = (None if text is None else getattr(_read(text), name) for text in texts)
    return scale * np.array([np.nan if value is None else value for value in values], dtype=np.float64)


class _Time(Metric):
    """A time of the server's own, which it gives in ms."""

    unit, display, group = Unit.NANOSECONDS, Unit.MILLISECONDS, "Server Timing"
    field: ClassVar[str]

    def column(self, batch: RecordBatch) -> Column:
        return _column(batch, self.field, 1e6)


class ServerTimeToFirstToken(_Time):
    """From when the request left the server's queue to its first token; the client's has the queue and the network, too."""

    tag, title, order = "server_timing_time_to_first_token", "Server Time to First Token", 984
    field = "time_to_first_token_ms"
    detail_field = "server_timing"

    def details(self, batch: RecordBatch) -> Sequence[bytes | None]:
        texts = batch.texts.get(SERVER_TIMING)
        return [None] * len(batch) if texts is None else [None if text is None else text.encode() for text in texts]


class ServerGenerationTime(_Time):
    """The server's time from the first token to the last."""

    tag, title, order = "server_timing_generation_time", "Server Generation Time", 985
    field = "generation_time_ms"


class ServerQueueTime(_Time):
    """The server's time before it worked on the request."""

    tag, title, order = "server_timing_queue_time", "Server Queue Time", 986
    field = "queue_time_ms"


class ServerMeanItl(_Time):
    """The server's mean time between tokens."""

    tag, title, order = "server_timing_mean_itl", "Server Mean Inter Token Latency", 987
    field = "mean_itl_ms"


class ServerTokensPerSecond(Metric):
    """Tokens by the server's time from when the request left its queue to the last token."""

    tag, title, order = "server_timing_tokens_per_second", "Server Tokens per Second", 988
    unit, group, larger_is_better = Unit.TOKENS_PER_SECOND_PER_USER, "Server Timing", True

    def column(self, batch: RecordBatch) -> Column:
        return _column(batch, "tokens_per_second", 1.0)
