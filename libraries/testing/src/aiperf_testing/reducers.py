"""The contract of reducers: every request is counted once, whatever died, and a report repeats the summary."""

from __future__ import annotations

import gc
import os
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import msgspec
import pytest
from aiperf.errors import BadJournal
from aiperf.rundir import journal
from aiperf.sdk.plan import PhasePlan, Plan, Secrets
from aiperf.sdk.reducer import Reducer, ReducerJob, RunningReduction
from aiperf.sdk.summary import PhaseSummary, Summary

from aiperf_testing.findings import shown, unlike
from aiperf_testing.journals import CLOCK, Plain, Recording, event
from aiperf_testing.manifests import check_row

_MS = 1_000_000
_PHASES = (PhasePlan("warmup", "warmup", 0, "burst"), PhasePlan("profiling", "profiling", 1, "burst"))
_SHARDS, _PART = 2, 6
_MOST_STEPS, _WHILE_S = 1_000, 0.4
_COUNTS = {"warmup": (2 * _SHARDS, 0), "profiling": (13 * _SHARDS, 3 * _SHARDS)}
"""Requests of :class:`_Load` that succeeded and failed."""


class ReducerContract:
    """Subclass with a plugin's class::

        class TestMineKeepsTheContract(ReducerContract):
            reducer = Mine

    The contract writes the journal of a run of two workers, and has it reduced in this process, without a run.  A request is
    good where its answer came whole with content, and has failed where the server said 503.
    """

    reducer: ClassVar[type[Reducer[Any]]]
    options: ClassVar[Any] = None

    @pytest.fixture(autouse=True)
    def _process(self) -> Iterator[None]:
        """A reducer has a process of its own, and may change its priority and its garbage collector."""
        policy, priority, thresholds = os.sched_getscheduler(0), os.sched_getparam(0), gc.get_threshold()
        yield
        os.sched_setscheduler(0, policy, priority)
        gc.set_threshold(*thresholds)

    def _reducer(self) -> Reducer[Any]:
        return type(self).reducer(type(self).options)

    def _begun(self, load: _Load, index: int = 0) -> RunningReduction:
        def trouble(sentence: str) -> None:
            pytest.fail(f"it ends the load: {sentence}", pytrace=False)

        job = ReducerJob(
            load.plan, load.journal, index, CLOCK, Secrets(), say=lambda level, lines: None, trouble=trouble,
            moved=lambda: None, warned=tuple,
        )  # fmt: skip
        reduction = self._reducer().begin(job)
        assert isinstance(reduction, RunningReduction), unlike(type(reduction), "RunningReduction", "begin must return one")
        return reduction

    def _reduced(self, load: _Load) -> Summary:
        """The summary of all that is in the journal, by new reducers."""
        running = [self._begun(load, index) for index in range(load.plan.run.reducers)]
        for reduction in running:
            _steps(reduction)
        return _finished(running, load)

    def _report(self, directory: Path, change: Callable[[Plan], Plan] | None = None) -> Summary:
        summary, _, clock = self._reducer().report(directory, change)
        assert isinstance(summary, Summary) and clock == CLOCK, (
            unlike(type(summary), Summary, "report gives a Summary, and the clock of the run")
        )
        return summary

    def _died(self, load: _Load, work: Callable[[RunningReduction], object], *indices: int) -> None:
        """Let these reducers work in a process that dies then: what they only had in memory is gone."""
        sys.stdout.flush()
        pid = os.fork()
        if pid == 0:
            try:
                for index in indices:
                    work(self._begun(load, index))
            except BaseException:  # noqa: BLE001  # also a failed assertion; nothing of pytest may go on here
                traceback.print_exc()
                os._exit(1)
            os._exit(0)
        assert os.waitpid(pid, 0)[1] == 0, "a reducer failed, see its traceback above"

    def test_its_manifest_says_what_it_is(self) -> None:
        check_row("reducers", self.reducer)

    def test_a_plan_is_taken(self, tmp_path: Path) -> None:
        plan = _Load(tmp_path).plan
        self._reducer().check(plan, Plain())
        self._reducer().preload(plan)

    @pytest.mark.parametrize("reducers", [1, _SHARDS])
    def test_requests_are_counted_by_phase(self, tmp_path: Path, reducers: int) -> None:
        load = _Load(tmp_path, reducers)
        running = [self._begun(load, index) for index in range(reducers)]
        for part in range(load.parts):
            load.write(part)
            for reduction in running:
                _steps(reduction)
        load.end()
        summary = _finished(running, load)
        assert _counts(summary) == _COUNTS, unlike(_counts(summary), _COUNTS, "count each arrival once, by its phase")
        assert (summary.valid, summary.failed) == _COUNTS["profiling"], "those of the profiling phase"
        assert (summary.complete, summary.incomplete_reason, summary.cancelled) == (True, None, False), (
            unlike((summary.complete, summary.incomplete_reason, summary.cancelled), (True, None, False), "the run ended well")
        )
        assert summary.run_id == load.plan.run.run_id, unlike(summary.run_id, load.plan.run.run_id, "take the plan's")

    def test_phases_are_in_order_and_have_their_times(self, tmp_path: Path) -> None:
        load = _Load(tmp_path).whole()
        summary = self._reduced(load)
        assert [(phase.name, phase.kind, phase.index) for phase in summary.phases] == [
            ("warmup", "warmup", 0), ("profiling", "profiling", 1),
        ], (
            unlike(
                [phase.name for phase in summary.phases], ["warmup", "profiling"],
                "give the phases in the order of the plan",
            )
        )  # fmt: skip
        zero = CLOCK.started_wall_ns
        for phase in summary.phases:
            assert isinstance(phase, PhaseSummary) and zero <= phase.start_ns < phase.end_ns <= zero + load.ended_ns, (
                f"the phase lasts from {phase.start_ns} to {phase.end_ns} ns, which is not within the load: take its"
                f" frames' times"
            )
        assert (summary.start_ns, summary.end_ns) == (summary.phases[1].start_ns, summary.phases[1].end_ns), (
            unlike((summary.start_ns, summary.end_ns), "those of profiling", "a summary has the times of its profiling phase")
        )

    @pytest.mark.parametrize("reducers", [1, _SHARDS])
    def test_a_reducer_that_dies_counts_nothing_twice(self, tmp_path: Path, reducers: int) -> None:
        load = _Load(tmp_path, reducers)
        for part in range(load.parts):
            load.write(part)
            self._died(load, _steps, *range(reducers))
        load.end()
        assert _counts(self._reduced(load)) == _COUNTS, (
            unlike(_counts(self._reduced(load)), _COUNTS, "forget what a dead reducer had not stored")
        )

    def test_what_a_dead_reducer_has_stored_counts_once(self, tmp_path: Path) -> None:
        load = _Load(tmp_path)
        load.write(0)
        load.write(1)
        self._died(load, lambda reduction: _steps(reduction, _WHILE_S), 0)
        load.write(2)
        load.end()
        assert _counts(self._reduced(load)) == _COUNTS, (
            "what a dead reducer stored counts twice, or not at all: begin behind what is stored"
        )
        assert _counts(self._report(load.directory)) == _COUNTS, (
            "the report has other counts than the run: both read what is stored"
        )

    @pytest.mark.parametrize("reducers", [1, _SHARDS])
    def test_a_reducer_that_dies_behind_the_load_loses_nothing(self, tmp_path: Path, reducers: int) -> None:
        load = _Load(tmp_path, reducers).whole()
        self._died(load, lambda reduction: reduction.finish(), *range(reducers))
        assert _counts(self._reduced(load)) == _COUNTS, (
            "counts are others once a reducer died behind the load: read the journal again"
        )

    def test_another_reducer_goes_on_while_one_begins_again(self, tmp_path: Path) -> None:
        load = _Load(tmp_path, _SHARDS)
        first = self._begun(load)
        load.write(0)
        _steps(first)
        self._died(load, _steps, 1)
        second = self._begun(load, 1)
        for part in range(1, load.parts):
            load.write(part)
        load.end()
        assert _counts(_finished([first, second], load)) == _COUNTS, (
            "counts are others where one of two reducers began again: each has its own shards"
        )

    def test_segments_of_other_shards_stay(self, tmp_path: Path) -> None:
        load = _Load(tmp_path, _SHARDS).whole()
        before = load.files()
        running = self._begun(load)
        _steps(running)
        running.finish()
        after = load.files()
        others = {name for name in before if not name.startswith("shard-0.")}
        assert {name: after.get(name) for name in others} == {name: before[name] for name in others}, (
            "it changed segments of other shards: write those of the own shards alone"
        )

    def test_live_numbers_do_not_decrease(self, tmp_path: Path) -> None:
        load = _Load(tmp_path)
        running, seen = self._begun(load), [0]
        for part in range(load.parts):
            load.write(part)
            seen += _steps(running)
        load.end()
        running.finish()
        seen.append(running.live.done)
        assert seen == sorted(seen) and seen[-1] <= sum(map(sum, _COUNTS.values())), (
            f"the live numbers are {shown(seen)}: they grow, and never pass the number of requests"
        )

    def test_a_frame_counts_when_it_is_whole(self, tmp_path: Path) -> None:
        load = _Load(tmp_path)
        running = self._begun(load)
        load.write(0)
        path = load.recording.path(0)
        whole = path.read_bytes()
        path.write_bytes(whole[:-9])
        _steps(running)
        path.write_bytes(whole)
        _steps(running)
        for part in range(1, load.parts):
            load.write(part)
        load.end()
        assert _counts(_finished([running], load)) == _COUNTS, (
            "half a frame was counted, or a whole one was not: read on when the rest is there"
        )

    @pytest.mark.parametrize("reducers", [1, _SHARDS])
    def test_a_report_has_the_same_counts(self, tmp_path: Path, reducers: int) -> None:
        load = _Load(tmp_path / "run", reducers).whole()
        summary = self._reduced(load)
        for _ in range(2):
            told = self._report(load.directory)
            assert (_counts(told), told.outcomes, told.complete) == (_counts(summary), summary.outcomes, True), (
                unlike(_counts(told), _counts(summary), "the report has the counts of the run")
            )
            assert load.summary() == told, "a report replaces the summary of the directory"

    def test_a_report_goes_where_the_directory_went(self, tmp_path: Path) -> None:
        load = _Load(tmp_path / "run").whole()
        self._reduced(load)
        (tmp_path / "run").rename(tmp_path / "moved")
        summary, plan, _ = self._reducer().report(tmp_path / "moved", lambda plan: plan.replacing(verbose=True))
        assert _counts(summary) == _COUNTS and not (tmp_path / "run").exists(), (
            "the counts of a directory that was moved are others, or the old place was made again: use the given directory"
        )
        assert (plan.output.artifacts, plan.output.journal) == (str(tmp_path / "moved"), str(tmp_path / "moved" / "journal")), (
            unlike(plan.output.artifacts, str(tmp_path / "moved"), "write the new places into the plan")
        )
        assert plan.run.verbose, "change(plan) is the plan of the report"

    def test_a_run_that_was_killed_has_a_partial_report(self, tmp_path: Path) -> None:
        load = _Load(tmp_path)
        for part in range(load.parts):
            load.write(part)
        summary = self._report(load.directory)
        assert _counts(summary) == _COUNTS, unlike(_counts(summary), _COUNTS, "count each arrival once, by its phase")
        assert not summary.complete and summary.incomplete_reason, (
            "the summary of a killed run is complete, or has no incomplete_reason: say that it was killed"
        )

    def test_lost_requests_make_a_partial_report(self, tmp_path: Path) -> None:
        load = _Load(tmp_path)
        for part in range(load.parts):
            load.write(part)
        load.end(more=3)
        summary = self._reduced(load)
        assert _counts(summary) == _COUNTS, unlike(_counts(summary), _COUNTS, "count each arrival once, by its phase")
        assert not summary.complete and summary.incomplete_reason, (
            unlike(
                (summary.complete, summary.incomplete_reason), (False, "a reason"),
                "lost requests make the summary incomplete, with a reason",
            )
        )
        assert summary.extra.get("lost"), "sentences there make the exit code 1"

    def test_requests_without_an_end_are_in_no_count(self, tmp_path: Path) -> None:
        load = _Load(tmp_path).whole(open_requests=2)
        summary = self._reduced(load)
        assert _counts(summary) == _COUNTS, unlike(_counts(summary), _COUNTS, "count each arrival once, by its phase")
        assert not summary.complete and summary.incomplete_reason, (
            unlike(
                (summary.complete, summary.incomplete_reason), (False, "a reason"),
                "lost requests make the summary incomplete, with a reason",
            )
        )

    def test_a_directory_without_observations_is_refused(self, tmp_path: Path) -> None:
        load = _Load(tmp_path)
        with pytest.raises(BadJournal):
            self._reducer().report(load.directory)


class _Load:
    """A run of a warmup and a profiling phase by two workers, whose journal grows part by part."""

    def __init__(self, directory: Path, reducers: int = 1) -> None:
        self.directory = directory
        self.recording = Recording(directory, phases=_PHASES, workers=_SHARDS, reducers=reducers)
        self.plan, self.journal = self.recording.plan, self.recording.journal
        self.parts, self._sent, self.ended_ns = 3, 0, 0

    def write(self, part: int) -> None:
        """Six requests of each worker, the first two of them the warmup's; a new segment begins behind the second part."""
        for shard in range(_SHARDS):
            for request in range(part * _PART, part * _PART + _PART):
                self._write(shard, request)
            self.recording.flush((part + 1) * 10 * _MS, shard=shard)
            if part == 1:
                self.recording.roll(shard=shard)
        self._sent = (part + 1) * _PART

    def _write(self, shard: int, request: int) -> None:
        made, phase = self.recording, int(request >= 2)
        at_ns = request * _MS
        n = (request - 2 * phase) * _SHARDS + shard
        self.ended_ns = at_ns + 900_000
        if not request:
            made.phase("begin", 0, phase=0, shard=shard)
        if request == 2:
            made.phase("end", at_ns, phase=0, shard=shard)
            made.phase("begin", at_ns, phase=1, shard=shard)
        made.sent(request, at_ns, n=n, phase=phase, entry=n % 2, shard=shard)
        if request % 5 == 4:
            made.text(request, "error", {"message": "busy", "type": "Service Unavailable", "code": 503}, shard=shard)
            made.done(request, self.ended_ns, outcome=journal.ERROR, status=503, flags=0, shard=shard)
            return
        made.read(request, at_ns + 300_000, event(text="one two"), shard=shard)
        made.read(request, at_ns + 600_000, event(text=" three") + b"data: [DONE]\n\n", shard=shard)
        made.done(request, self.ended_ns, shard=shard)

    def end(self, more: int = 0) -> None:
        """The workers end; *more*: requests that the first sent, and that are in no segment."""
        for shard in range(_SHARDS):
            self.recording.phase("end", self.ended_ns, phase=1, shard=shard)
        self.recording.ended(requests={shard: self._sent + (0 if shard else more) for shard in range(_SHARDS)})

    def whole(self, open_requests: int = 0) -> _Load:
        for part in range(self.parts):
            self.write(part)
        for request in range(self._sent, self._sent + open_requests):
            self.recording.sent(request, self.ended_ns, n=2 * request, phase=1)
        self.recording.flush(self.ended_ns)
        self._sent += open_requests
        self.end()
        return self

    def files(self) -> dict[str, bytes]:
        """The segments, and what the run wrote of itself."""
        return {
            path.name: path.read_bytes()
            for path in self.journal.iterdir()
            if path.suffix == ".seg" or path.name == "run.json" or path.name.startswith("dataset.")
        }

    def summary(self) -> Summary:
        return msgspec.msgpack.decode((self.journal / "summary.msgpack").read_bytes(), type=Summary)


def _steps(reduction: RunningReduction, while_s: float = 0.0) -> list[int]:
    """Step until the reducer rests, or so long with its rests; the live count behind each step."""
    seen, until_s = [], time.monotonic() + while_s
    for _ in range(_MOST_STEPS):
        rest_ms = reduction.step()
        assert type(rest_ms) is int and rest_ms >= 0, "step() gives the rest until the next one, in whole ms"
        seen.append(reduction.live.done)
        if rest_ms and time.monotonic() >= until_s:
            return seen
        time.sleep(min(rest_ms / 1000, while_s))
    raise AssertionError(f"step() does not rest after {_MOST_STEPS:,} steps over 50 requests")


def _finished(running: list[RunningReduction], load: _Load) -> Summary:
    for reduction in running:
        reduction.finish()
    running[0].summarize()
    for reduction in running:
        if reduction.rows_wait:
            assert reduction.write_rows() == [], "write_rows gave rows in a run without exporters of rows: give []"
    return load.summary()


def _counts(summary: Summary) -> dict[str, tuple[int, int]]:
    return {phase.name: (phase.valid, phase.failed) for phase in summary.phases}
