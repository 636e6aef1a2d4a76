"""The counts of a served model, which its page of metrics shows: from the same events as the truth."""

from __future__ import annotations

import time
from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Callable
from typing import Any

_SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0)
_TOKENS = (1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0, 2000.0, 5000.0, 10_000.0, 50_000.0, 100_000.0)
_NS = 1_000_000_000

_DURATIONS = ("first_token", "between_tokens", "per_token", "latency", "queued", "prefill", "decode")
_LENGTHS = ("input_tokens", "cached_tokens", "output_tokens")


class Histogram:
    """Observations by upper bound.  *unit*: what an observation of 1 of the bounds' unit is added as (ns a second)."""

    def __init__(self, bounds: tuple[float, ...], unit: int = 1) -> None:
        self.bounds, self.unit = bounds, unit
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0

    def add(self, value: int) -> None:
        self.counts[bisect_left(self.bounds, value / self.unit)] += 1
        self.total += value


class Meters:
    """Counts by name, ends by reason, and histograms of durations (added in ns) and token counts.

    *lag_s*: everything appears on the page so much later than it happened; *clock* gives ns.
    """

    def __init__(self, lag_s: float = 0.0, clock: Callable[[], int] = time.monotonic_ns) -> None:
        self.counts: Counter[str] = Counter()
        self.success: Counter[str] = Counter({"stop": 0, "length": 0, "abort": 0})
        self.positions: Counter[int] = Counter()
        """Accepted draft tokens by their position behind the last certain one."""
        self.histograms = {name: Histogram(_SECONDS, _NS) for name in _DURATIONS}
        self.histograms |= {name: Histogram(_TOKENS) for name in _LENGTHS}
        self.hit_rate = 0.0
        """Of the prompt that was admitted last, the share found in the prefix cache."""
        self._lag_ns, self._clock = round(lag_s * _NS), clock
        self._late: deque[tuple[int, Callable[..., None], tuple[Any, ...]]] = deque()

    def count(self, name: str, more: int = 1) -> None:
        self._happened(self._count, name, more)

    def observe(self, name: str, value: int) -> None:
        self._happened(self.histograms[name].add, value)

    def finished(self, reason: str) -> None:
        """One of the texts of an answer ended."""
        self._happened(self._finished, reason)

    def admitted(self, prompt_tokens: int, cached_tokens: int, block_size: int) -> None:
        """A request left the queue."""
        self._happened(self._admitted, prompt_tokens, cached_tokens, block_size)

    def drafted(self, account: dict[str, Any]) -> None:
        """An answer that a decoder with drafts made is complete."""
        self._happened(self._drafted, account)

    def settle(self) -> None:
        """Take what is old enough to be seen."""
        now = self._clock()
        while self._late and self._late[0][0] <= now:
            _, step, arguments = self._late.popleft()
            step(*arguments)

    def _happened(self, step: Callable[..., None], *arguments: Any) -> None:
        if self._lag_ns:
            self._late.append((self._clock() + self._lag_ns, step, arguments))
            self.settle()
        else:
            step(*arguments)

    def _count(self, name: str, more: int) -> None:
        self.counts[name] += more

    def _finished(self, reason: str) -> None:
        self.success[reason] += 1

    def _admitted(self, prompt_tokens: int, cached_tokens: int, block_size: int) -> None:
        self.counts["prompt_tokens"] += prompt_tokens
        self.counts["cached_tokens"] += cached_tokens
        reused = cached_tokens // block_size
        self.counts["reused_blocks"] += reused
        self.counts["missed_blocks"] += -(-prompt_tokens // block_size) - reused
        self.histograms["input_tokens"].add(prompt_tokens)
        self.histograms["cached_tokens"].add(cached_tokens)
        self.hit_rate = cached_tokens / prompt_tokens if prompt_tokens else 0.0

    def _drafted(self, account: dict[str, Any]) -> None:
        for name in ("num_spec_steps", "num_draft_tokens", "num_accepted_draft_tokens"):
            self.counts[name] += account[name]
        left = account["num_spec_steps"]
        for position, steps in enumerate(account["acceptance_histogram"][:-1]):
            left -= steps
            self.positions[position] += left
