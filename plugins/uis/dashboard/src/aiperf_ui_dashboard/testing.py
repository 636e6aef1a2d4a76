"""Snapshots of a run that is made up, with foreign text that a screen must not obey; shown on this terminal by

    python -m aiperf_ui_dashboard.testing [SECONDS BETWEEN SNAPSHOTS] [SNAPSHOTS]

and as a picture by

    python -m aiperf_ui_dashboard.testing picture > docs/dashboard.svg
"""

from __future__ import annotations

import math
import os
import select
import sys
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

import msgspec
from aiperf.sdk.live import Asked, EndKind, LiveFeed, LiveView, Said
from aiperf.sdk.snapshot import (
    LiveDelays,
    LiveFailures,
    LiveMetric,
    LiveObjective,
    LiveSeries,
    LiveStatistics,
    LiveWorker,
    LogLine,
    PhaseProgress,
    Snapshot,
    VerdictSoFar,
)  # fmt: skip

CANARY = "[red]canary[/red] \x1b[2J\x1b]0;title\x07 <script>alert(1)</script> \u202etxt.exe"
LITERAL = r"[red]canary[/red] \x1b[2J\x1b]0;title\x07 <script>alert(1)</script> \u202etxt.exe"
"""The canary as it must be shown."""
REASON = "arrivals begin 12 ms late at p99, more than a tenth of their mean gap; lower the rate or add workers"
NAMES = (
    ("time_to_first_token", "Time to First Token", "TTFT", "ms"),
    ("time_to_second_token", "Time to Second Token", "TTST", "ms"),
    ("inter_token_latency", "Inter Token Latency", "ITL", "ms"), ("request_latency", "Request Latency", "Latency", "ms"),
    ("output_token_throughput_per_user", "Output Token Throughput Per User", "TPS/user", "tokens/s/user"),
    ("output_sequence_length", "Output Sequence Length", "OSL", "tokens"),
)  # fmt: skip
SINGLE = (("output_token_throughput", "Output Token Throughput", "TPS", "tokens/s"),
    ("request_throughput", "Request Throughput", "Requests/s", "requests/s"))  # fmt: skip
LOG = [
    LogLine(f"22:00:0{at % 10}.123 {level} line {at} of the log {CANARY if at == 38 else ''}", number)
    for at, (level, number) in enumerate([("INFO", 20), ("WARNING", 30), ("ERROR", 40), ("DEBUG", 10)] * 10)
]


def statistics(at_s: float, scale: int) -> LiveStatistics:
    value = 50 + scale * 10 + 10 * math.sin(at_s / 7 + scale)
    return LiveStatistics(
        value, value / 2, value * 4, value / 5, value * 0.95, value * 1.5, value * 2, value * 3, int(at_s * 40) + 1
    )


def snapshot(number: int, **changes: Any) -> Snapshot:
    """The snapshot of *number*: two a second, 38 answers and 2 failures a second; *changes*: fields."""
    at_s = number / 2
    done, failed = int(at_s * 38), int(at_s * 2)
    metrics = [
        LiveMetric(tag, title, unit, statistics(at_s, at), statistics(at_s * 2, at), short, "", at)
        for at, (tag, title, short, unit) in enumerate(NAMES)
    ]
    metrics += [
        LiveMetric(tag, title, unit, LiveStatistics(1900 + at_s), LiveStatistics(1910 - at_s), short, "", 20 + at)
        for at, (tag, title, short, unit) in enumerate(SINGLE)
    ]
    sent = done + failed + 16
    phases = (
        PhaseProgress(0, "warmup", "warmup", "Complete", 1.0, 10.0, 0.0, 100, None, 100, None, 0, 100, 0, 100, 0, 0.0),
        PhaseProgress(1, "profiling", "profiling", "Profiling", at_s / 600, at_s, 600 - at_s, 24000, sent + 1, sent, 3, 16,
             done, failed, max(0, done - 5), failed, 0.4),
    )  # fmt: skip
    fields: dict[str, Any] = {
        "phase": "profiling", "kind": "profiling", "elapsed_s": at_s, "sent": sent, "completed": done, "errors": failed,
        "in_flight": 16, "rate": 40.0,
        "share": at_s / 600, "eta_s": 600 - at_s, "number": number + 1, "at_ns": int((1.7e9 + at_s) * 1e9),
        "recent_rate": 39.8, "phases": phases, "metrics": tuple(metrics),
        "good": LiveObjective("all objectives", "", None, done, done * 8 // 10, 380, 300),
        "objectives": (LiveObjective("TTFT ≤ 200 ms", "time_to_first_token", 200.0, done, done, 380, 380),
            LiveObjective("ITL ≤ 20 ms", "inter_token_latency", 20.0, done, done * 8 // 10, 380, 300)),
        "failures": (LiveFailures("Timeout", 9, None, "no answer within 30 s " * 4), LiveFailures("HTTPError", 3, 503, CANARY)),
        "further_failures": 7,
        "workers": tuple(LiveWorker(at, status, 4000 + at, 4, done // 4, failed // 4, 12.0 + at, 50_000_000, 9_000 * number)
            for at, status in enumerate(("healthy", "high load", "idle", "error", "stale"))),
        "delays": LiveDelays(0.21, 1.3, 0.05),
        "series": tuple(
            LiveSeries(("server_metrics", "acme")[at % 2], f"acme:number_{at:02d} {CANARY if at == 2 else ''}", at_s * at % 97,
                "requests", {"gpu": str(at)}, "http://127.0.0.1:8000/metrics", ("gauge", "counter", "histogram")[at % 3])
            for at in range(30)),
        "verdict": VerdictSoFar("suspect", (REASON,), ("Another user of the server was seen.",), at_s),
    }  # fmt: skip
    return Snapshot(**fields | changes)


def picture(columns: int, lines: int) -> str:
    """A board of this size after 100 s of the run, as SVG, without foreign text."""
    import asyncio

    from aiperf_ui_dashboard.board import Board

    async def drawn() -> str:
        board = Board(lambda what: None)
        async with board.run_test(size=(columns, lines)) as pilot:
            board.next_run("llama-3.1-8b  chat  http://127.0.0.1:8000")
            for line in LOG:
                board.log_line(LogLine(line.text.replace(CANARY, ""), line.level))
            for number in range(1, 201):
                made = snapshot(number)
                failures = (made.failures[0], LiveFailures("HTTPError", 3, 503, "the server is busy"))
                board.take(msgspec.structs.replace(made, failures=failures, in_flight=16 + number * 7 % 5))
            board.action_view("overview")
            await pilot.pause(0.2)
            return board.picture()

    return asyncio.run(drawn())


class MadeFeed(LiveFeed):
    """Gives a view the *shown* snapshots, each *every_s* later than the one before, until they or *over* end it."""

    def __init__(
        self, view: LiveView[Any], shown: Iterable[Snapshot], every_s: float, over: Callable[[], bool] = lambda: False
    ) -> None:
        self._view, self._shown, self._every_s, self._over = view, iter(shown), every_s, over
        self._read, self._write = os.pipe()
        threading.Thread(target=self._tick, daemon=True).start()

    def fileno(self) -> int:
        return self._read

    def take(self, wait_s: float | None = 0.0) -> bool:
        if not select.select([self._read], [], [], wait_s)[0]:
            return True
        os.read(self._read, 1)
        shown = None if self._over() else next(self._shown, None)
        if shown is None:
            return False
        for line in shown.log:
            self._view.log(line)
        self._view.show(shown)
        return True

    def _tick(self) -> None:
        while True:
            time.sleep(self._every_s)
            os.write(self._write, b".")


def main(every_s: float = 0.5, count: int = 1200) -> None:
    """Show a run on this terminal; Ctrl-C twice ends it sooner."""
    from aiperf_ui_dashboard import Dashboard

    view, asked = Dashboard(None), list[str]()

    def note(message: Asked | Said) -> None:
        asked.append(message.kind if isinstance(message, Asked) else message.sentence)

    view.answer = note
    shown = (snapshot(number, log=(LOG[number % len(LOG)],)) for number in range(1, count))
    view.run(MadeFeed(view, shown, every_s, lambda: EndKind.CANCEL in asked))
    view.close()
    print(f"asked: {', '.join(asked)}", file=sys.stderr)


if __name__ == "__main__" and sys.argv[1:2] == ["picture"]:
    print(picture(120, 36), end="")
elif __name__ == "__main__":
    main(*(kind(word) for kind, word in zip((float, int), sys.argv[1:], strict=False)))
