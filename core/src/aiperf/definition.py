"""What other tools mean by the same words.  A definition reads the usual numbers out of the same observations, its own way."""

from __future__ import annotations

from typing import ClassVar, Literal

from msgspec import Struct

from aiperf.columns import Floats, RecordBatch


class Readings(Struct, frozen=True):
    """What a definition sees in a batch.  Times in ns; NaN and what is not there are absent.

    ttft_ns, itl_ns, tpot_ns: as many values as the definition has; weights of the last two, 1 each where None (only an
    ``inverted_cdf`` has any).
    requests, tokens: what counts for throughput.  begin_ns, end_ns: its time base, NaN where the batch has no part in it.
    """

    ttft_ns: Floats
    itl_ns: Floats
    tpot_ns: Floats
    requests: int
    tokens: float
    begin_ns: float
    end_ns: float
    itl_weights: Floats | None = None
    tpot_weights: Floats | None = None


class Definition:
    """A tool's meaning of time to first token, inter-token latency, time per output token and throughput.

    title: the tool.  source: where its definition is read from, with the version.  differs: why its numbers are others, and
    what the columns don't say.  quantiles: what lies between two values of the sample, by numpy's names: a mixture of both, or
    the upper one.
    """

    title: ClassVar[str]
    source: ClassVar[str]
    differs: ClassVar[str]
    quantiles: ClassVar[Literal["linear", "inverted_cdf"]] = "linear"

    def read(self, batch: RecordBatch) -> Readings:
        """*batch* holds all requests that were sent, failed ones too; parts of a batch must add up to the whole."""
        raise NotImplementedError(f"{type(self).__name__} must define read(batch)")
