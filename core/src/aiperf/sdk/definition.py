"""Definitions of other tools: each computes the usual numbers from the same observations in its own way."""

from __future__ import annotations

from typing import ClassVar, Literal

from msgspec import Struct

from aiperf.sdk.columns import Floats, RecordBatch


class Readings(Struct, frozen=True):
    """The values of a batch under a definition.  Times in ns; NaN is absent.

    ttft_ns, itl_ns, tpot_ns: any number of values.  itl_weights, tpot_weights: weights of the last two; None weights each
    value 1 (only an ``inverted_cdf`` has weights).
    requests, tokens: amounts for throughput.  begin_ns, end_ns: its time base, NaN where the batch contributes nothing.
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
    """A tool's definition of time to first token, inter-token latency, time per output token and throughput.

    title: the tool.  version: of the tool, that the definition is of; "" where it has none.  source: file and version that the
    definition comes from.  differs: why its numbers differ, and which details the columns lack.  quantiles: numpy's name of the
    quantile between two values: ``linear`` mixes both, ``inverted_cdf`` takes the upper one.
    """

    title: ClassVar[str]
    version: ClassVar[str] = ""
    source: ClassVar[str]
    differs: ClassVar[str]
    quantiles: ClassVar[Literal["linear", "inverted_cdf"]] = "linear"

    def read(self, batch: RecordBatch) -> Readings:
        """The values of *batch*, which holds all sent requests, failed ones included; parts of a batch add up to the whole."""
        raise NotImplementedError(f"{type(self).__name__} must define read(batch)")


__all__ = ["Definition", "Readings"]
