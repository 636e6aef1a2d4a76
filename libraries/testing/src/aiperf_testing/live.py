"""The contract of live views."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import msgspec
from aiperf.sdk.live import Asked, LiveEnd, LiveFeed, LiveRun, LiveView, Said, Step
from aiperf.sdk.snapshot import (
    STATUSES,
    WORKER_STATUSES,
    CellProgress,
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
)

from aiperf_testing.manifests import check_row
from aiperf_testing.plans import sample_plan

_, WARMUP, _, PROFILING, GRACE, PROCESSING, COMPLETE = STATUSES
_TTFT = LiveStatistics(35.25, 20.5, 90.0, 4.25, 34.0, 50.0, 61.0, 80.5, 883)
_HUGE = LiveStatistics(9e6, 1e-4, 9e12, 1e12, 1.0, 2.0, 3.0, 9e12, 10**9)
_MARKUP = "[red]x[/] <script>alert(1)</script> {} % äöü 🦜"


def full_snapshot(metrics: int = 3, workers: int = 2, series: int = 2, failures: int = 2) -> Snapshot:
    """A snapshot with every field, and so many rows."""
    latency = LiveMetric("time_to_first_token", "Time to First Token", "ms", _TTFT, _TTFT, "TTFT", "Latency", 10, 1)
    more = [
        LiveMetric(f"metric_number_{at:03d}", f"Title of Metric {at:03d}", "ms", _TTFT, _TTFT, f"M{at}", "Latency", at)
        for at in range(metrics - 2)
    ]
    rates = LiveStatistics(14.3), LiveStatistics(15.0)
    throughput = LiveMetric("request_throughput", "Request Throughput", "requests/sec", *rates)
    bound = LiveObjective("TTFT ≤ 50 ms", "time_to_first_token", 50.0, 860, 700, 150, 120)
    labels = [{"model": "m", "engine": str(at)} for at in range(series)]
    phases = (
        PhaseProgress(0, "warmup", "warmup", COMPLETE, 1.0, 10.0, 0.0, 50, None, 50, None, 0, 50, 0, 50, 0, 0.0),
        PhaseProgress(1, "profiling", "profiling", PROFILING, 0.44, 61.5, 78.0, 2000, 900, 900, 4, 17, 880, 3, 860, 23, 0.5),
    )
    return Snapshot(
        "profiling", "profiling", 61.5, 900, 880, 3, 17, 14.3, 0.44, 78.0, None,
        CellProgress(3, 9, "concurrency_4/trial_0002", 130.0), 7, 1_780_000_000_000_000_000, PROFILING, False, 15.5,
        phases, (latency, throughput, *more),
        LiveObjective("all objectives", "", None, 860, 700, 150, 120), (bound,),
        tuple(LiveFailures("TimeoutError", 20 - at % 20, 503, f"{at}: {_MARKUP}"[:200]) for at in range(failures)), 12,
        tuple(LiveWorker(at, WORKER_STATUSES[at % 5], 4000 + at, 9, 440, 1, 35.5, 60 << 20, 10**9) for at in range(workers)),
        LiveDelays(0.25, 1.5, 0.0625),
        tuple(
            LiveSeries("server_metrics", f"vllm:some_series_{at:03d}", 12.5, "requests", one, "http://s:8000", "gauge", 1)
            for at, one in enumerate(labels)
        ),
        5, (LogLine("12:00:00.000 INFO    hello"), LogLine(f"12:00:01.000 ERROR   {_MARKUP}", logging.ERROR)), 2,
        VerdictSoFar("suspect", ("arrivals started late",), ("loopback",), 60.0),
    )  # fmt: skip


SNAPSHOTS: Sequence[Snapshot] = (
    Snapshot("warmup", "warmup", 0.0, 0, 0, 0, 0, 0.0, status=WARMUP),
    Snapshot("warmup", "warmup", 0.25, 12, 0, 0, 12, 0.0, 0.0, None, status=WARMUP),
    full_snapshot(),
    full_snapshot(metrics=60, workers=32, series=200, failures=20),
    msgspec.structs.replace(
        full_snapshot(), elapsed_s=360_000.0, sent=10**9, completed=10**9, errors=10**8, in_flight=10**6, rate=123_456.789,
        share=1.0, eta_s=0.0, metrics=(LiveMetric("time_to_first_token", _MARKUP, "ms", _HUGE, None, "TTFT"),), status=GRACE,
    ),
    Snapshot("profiling", "profiling", 75.0, 900, 0, 900, 0, 12.0, 0.44, 78.0, unreached_s=13.5, status=PROCESSING),
    Snapshot("a phase of a very long name " * 10, "profiling", 3.0, 1, 0, 1, 0, 0.3, 7.5, None),
    msgspec.structs.replace(
        full_snapshot(), workers=(LiveWorker(0, "healthy", 4000, site=_MARKUP), LiveWorker(1, "idle", site="b"))
    ),
    msgspec.structs.replace(full_snapshot(), number=90, last=True, status=COMPLETE, in_flight=0, eta_s=None),
)  # fmt: skip
"""States of a run: at its start, ordinary, extreme, and the last."""


class ScriptedFeed(LiveFeed):
    """A feed that calls the *view* at each :meth:`take`, and is then over.  It has no descriptor: a view with an event loop of
    its own is tried by a run."""

    def __init__(self, view: LiveView, calls: Sequence[tuple[Any, ...]]) -> None:
        self._view, self._calls = view, [*calls]

    def fileno(self) -> int:
        raise OSError("a scripted feed has no descriptor")

    def take(self, wait_s: float | None = 0.0) -> bool:
        if self._calls:
            name, *words = self._calls.pop(0)
            getattr(self._view, name)(*words)
        return bool(self._calls)


class LiveContract:
    """Subclass with a view's class; *options*: of the view's own::

        class TestMineKeepsTheContract(LiveContract):
            live = Mine
    """

    live: ClassVar[type[LiveView[Any]]]
    options: ClassVar[Any] = None

    def _made(self, said: list[Asked | Said]) -> LiveView[Any]:
        made = type(self).live(type(self).options)
        made.answer = said.append
        return made

    def _run(self, folder: Path) -> LiveRun:
        return LiveRun(sample_plan(folder).public(), CellProgress(1, 2, "concurrency_1"), 1_780_000_000_000_000_000)

    def test_its_manifest_says_what_it_is(self) -> None:
        row = check_row("live", self.live)
        option = row.capabilities.get("needs_option", "")
        assert not option or option in {spec.field for spec in row.options}, f"it has no option {option}"

    def test_it_watches_two_plans(self, tmp_path: Path) -> None:
        said: list[Asked | Said] = []
        made = self._made(said)
        for _ in range(2):
            made.begin(self._run(tmp_path))
            made.step(Step("Making the data set", 1.0, 12, None, "entries"))
            for snapshot in SNAPSHOTS:
                made.log(LogLine("12:00:00.000 WARNING in the middle: [bold]\\[/] {} % äöü 🦜", 30))
                made.show(snapshot)
            made.step(Step("Reducing the rest", 3600.5, 10**6, 10**9, "requests"))
            made.end(LiveEnd(str(tmp_path), (str(tmp_path / "a.json"),), 0))
        made.close()
        self._check(said)

    def test_a_run_may_end_before_there_was_anything_to_show(self, tmp_path: Path) -> None:
        said: list[Asked | Said] = []
        made = self._made(said)
        made.begin(self._run(tmp_path))
        made.end(LiveEnd(code=1, failure="the server can't be reached"))
        made.close()
        self._check(said)

    def test_no_run_may_begin(self) -> None:
        self._made([]).close()

    def test_what_is_told_to_it_crosses_processes(self) -> None:
        """Whoever keeps snapshots can write them."""
        for snapshot in SNAPSHOTS:
            read = msgspec.json.decode(msgspec.json.encode(snapshot), type=Snapshot)
            assert read == snapshot, f"{snapshot} is {read} behind a pipe"

    def _check(self, said: Sequence[Asked | Said]) -> None:
        for each in said:
            assert isinstance(each, Asked | Said), f"it sends {type(each).__name__}: use ask_stop, ask_cancel and say"


__all__ = ["LiveContract", "ScriptedFeed", "full_snapshot"]
