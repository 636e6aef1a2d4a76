"""A command that runs a load at several concurrencies, and the display that it uses."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from aiperf import Command, Run, Snapshot, Ui, UsageError


class Ticker(Ui):
    """A line on standard error for each snapshot."""

    def show(self, snapshot: Snapshot) -> None:
        print(f"tick: {snapshot.phase} {snapshot.completed} of {snapshot.sent}", file=sys.stderr, flush=True)

    def close(self) -> None:
        print("tick: over", file=sys.stderr, flush=True)


class Sweep(Command):
    """Prints the median TTFT at each concurrency."""

    arguments = "URL CONCURRENCY..."

    def run(self, options: Any, words: Sequence[str]) -> int:
        url, *levels = words
        if not all(map(str.isdecimal, levels)):
            raise UsageError(f"aiperf sweep takes whole numbers after the URL, not {' '.join(levels)}")
        failed = 0
        with Run() as run:
            for level in levels:
                summary = run.profile(
                    model="m", url=url, streaming=True, tokenizer="builtin", isl=10, osl=2, ui="ticker",
                    concurrency=int(level), request_count=4 * int(level), artifact_dir=f"sweep/{level}",
                )  # fmt: skip
                failed += summary.failed
                ttft = summary.results["time_to_first_token"]
                print(f"concurrency {level}: {summary.valid} requests, p50 {ttft.stats['p50']:.2f} {ttft.unit}")
        return 1 if failed else 0


__all__ = ["Sweep", "Ticker"]
