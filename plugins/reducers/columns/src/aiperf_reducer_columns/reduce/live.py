"""Means for the live display."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from aiperf.parts import journal
from aiperf.sdk.columns import Floats


class LiveMeans:
    """Number of the requests so far and means over the good ones, for the live display."""

    def __init__(self, *, streaming: bool) -> None:
        self.done = 0
        self._streaming = streaming
        self._ttft_sum = self._itl_sum = 0.0
        self._ttft_count = self._itl_count = 0

    @property
    def ttft_ms(self) -> float | None:
        """Mean time to first token; None before the first."""
        return self._ttft_sum / self._ttft_count / 1e6 if self._ttft_count else None

    @property
    def itl_ms(self) -> float | None:
        """Mean inter-token latency; None before the first."""
        return self._itl_sum / self._itl_count / 1e6 if self._itl_count else None

    def count(self, outcome: int, started: int, stamps: list[int], tokens: int) -> None:
        self.done += 1
        if outcome == journal.COMPLETED and self._streaming and stamps:
            self._ttft_sum += stamps[0] - started
            self._ttft_count += 1
            if tokens > 1 and stamps[-1] > stamps[0]:
                self._itl_sum += (stamps[-1] - stamps[0]) / (tokens - 1)
                self._itl_count += 1

    def add(self, numbers: Mapping[str, Floats]) -> None:
        """Count good requests by their columns."""
        first = numbers["first_token_ns"]
        self.done += len(first)
        if self._streaming:
            self._ttft_sum += float((first - numbers["started_ns"]).sum())
            self._ttft_count += len(first)
            tokens = np.nansum([numbers["output_tokens"], numbers["reasoning_tokens"]], axis=0)
            several = (tokens > 1) & (numbers["last_token_ns"] > first)
            self._itl_sum += float(((numbers["last_token_ns"] - first)[several] / (tokens[several] - 1)).sum())
            self._itl_count += int(several.sum())

    def add_batch(self, numbers: Mapping[str, Floats]) -> None:
        """Count requests, good or not, by their columns."""
        counted = (numbers["outcome"] == journal.COMPLETED) & ~np.isnan(numbers["first_token_ns"])
        self.add({name: column[counted] for name, column in numbers.items()})
        self.done += len(counted) - int(counted.sum())
