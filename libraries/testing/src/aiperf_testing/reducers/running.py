"""What a reducer counts beside the load and behind it, also where reducers die."""

from __future__ import annotations

from pathlib import Path

import pytest
from aiperf.sdk.reducer import Ended
from aiperf.sdk.summary import PhaseSummary

from aiperf_testing.findings import shown, unlike
from aiperf_testing.journals import CLOCK
from aiperf_testing.reducers.load import COUNTS, SHARDS, WHILE_S, SampleLoad, counts, finished, steps
from aiperf_testing.reducers.stage import OnJournal


class RunningTests(OnJournal):
    """Every request is counted once."""

    @pytest.mark.parametrize("reducers", [1, SHARDS])
    def test_requests_are_counted_by_phase(self, tmp_path: Path, reducers: int) -> None:
        load = SampleLoad(tmp_path, reducers)
        running = [self._begun(load, index) for index in range(reducers)]
        for part in range(load.parts):
            load.write(part)
            for reduction in running:
                steps(reduction)
        load.end()
        summary = finished(running, load)
        assert counts(summary) == COUNTS, unlike(counts(summary), COUNTS, "count each arrival once, by its phase")
        assert (summary.valid, summary.failed) == COUNTS["profiling"], "those of the profiling phase"
        assert (summary.complete, summary.incomplete_reason, summary.cancelled) == (True, None, False), (
            unlike((summary.complete, summary.incomplete_reason, summary.cancelled), (True, None, False), "the run ended well")
        )
        assert summary.run_id == load.plan.run.run_id, unlike(summary.run_id, load.plan.run.run_id, "take the plan's")

    def test_phases_are_in_order_and_have_their_times(self, tmp_path: Path) -> None:
        load = SampleLoad(tmp_path).whole()
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

    @pytest.mark.parametrize("reducers", [1, SHARDS])
    def test_a_reducer_that_dies_counts_nothing_twice(self, tmp_path: Path, reducers: int) -> None:
        load = SampleLoad(tmp_path, reducers)
        for part in range(load.parts):
            load.write(part)
            self._died(load, steps, *range(reducers))
        load.end()
        assert counts(self._reduced(load)) == COUNTS, (
            unlike(counts(self._reduced(load)), COUNTS, "forget what a dead reducer had not stored")
        )

    def test_what_a_dead_reducer_has_stored_counts_once(self, tmp_path: Path) -> None:
        load = SampleLoad(tmp_path)
        load.write(0)
        load.write(1)
        self._died(load, lambda reduction: steps(reduction, WHILE_S), 0)
        load.write(2)
        load.end()
        assert counts(self._reduced(load)) == COUNTS, (
            "what a dead reducer stored counts twice, or not at all: begin behind what is stored"
        )
        assert counts(self._report(load.directory)) == COUNTS, (
            "the report has other counts than the run: both read what is stored"
        )

    @pytest.mark.parametrize("reducers", [1, SHARDS])
    def test_a_reducer_that_dies_behind_the_load_loses_nothing(self, tmp_path: Path, reducers: int) -> None:
        load = SampleLoad(tmp_path, reducers).whole()
        self._died(load, lambda reduction: reduction.finish(), *range(reducers))
        assert counts(self._reduced(load)) == COUNTS, (
            "counts are others once a reducer died behind the load: read the journal again"
        )

    def test_another_reducer_goes_on_while_one_begins_again(self, tmp_path: Path) -> None:
        load = SampleLoad(tmp_path, SHARDS)
        first = self._begun(load)
        load.write(0)
        steps(first)
        self._died(load, steps, 1)
        second = self._begun(load, 1)
        for part in range(1, load.parts):
            load.write(part)
        load.end()
        assert counts(finished([first, second], load)) == COUNTS, (
            "counts are others where one of two reducers began again: each has its own shards"
        )

    def test_segments_of_other_shards_stay(self, tmp_path: Path) -> None:
        load = SampleLoad(tmp_path, SHARDS).whole()
        before = load.files()
        running = self._begun(load)
        steps(running)
        running.finish()
        after = load.files()
        others = {name for name in before if not name.startswith("shard-0.")}
        assert {name: after.get(name) for name in others} == {name: before[name] for name in others}, (
            "it changed segments of other shards: write those of the own shards alone"
        )

    def test_requests_that_ended_are_told_once_and_in_order(self, tmp_path: Path) -> None:
        running = self._begun(SampleLoad(tmp_path).whole())
        steps(running)
        ended = list(running.ended())
        assert all(isinstance(each, Ended) and each.phase in (0, 1) for each in ended), "ended gives Ended, with their phases"
        assert [each.at_ns for each in ended] == sorted(each.at_ns for each in ended), "in the order of their ends"
        assert not running.ended(), "what was told is told again"

    def test_live_numbers_do_not_decrease(self, tmp_path: Path) -> None:
        load = SampleLoad(tmp_path)
        running, seen = self._begun(load), [0]
        for part in range(load.parts):
            load.write(part)
            seen += steps(running)
        load.end()
        running.finish()
        seen.append(running.live.done)
        assert seen == sorted(seen) and seen[-1] <= sum(map(sum, COUNTS.values())), (
            f"the live numbers are {shown(seen)}: they grow, and never pass the number of requests"
        )

    def test_a_frame_counts_when_it_is_whole(self, tmp_path: Path) -> None:
        load = SampleLoad(tmp_path)
        running = self._begun(load)
        load.write(0)
        path = load.recording.path(0)
        whole = path.read_bytes()
        path.write_bytes(whole[:-9])
        steps(running)
        path.write_bytes(whole)
        steps(running)
        for part in range(1, load.parts):
            load.write(part)
        load.end()
        assert counts(finished([running], load)) == COUNTS, (
            "half a frame was counted, or a whole one was not: read on when the rest is there"
        )

    def test_lost_requests_make_a_partial_report(self, tmp_path: Path) -> None:
        load = SampleLoad(tmp_path)
        for part in range(load.parts):
            load.write(part)
        load.end(more=3)
        summary = self._reduced(load)
        assert counts(summary) == COUNTS, unlike(counts(summary), COUNTS, "count each arrival once, by its phase")
        assert not summary.complete and summary.incomplete_reason, (
            unlike(
                (summary.complete, summary.incomplete_reason), (False, "a reason"),
                "lost requests make the summary incomplete, with a reason",
            )
        )
        assert summary.extra.get("lost"), "sentences there make the exit code 1"

    def test_requests_without_an_end_are_in_no_count(self, tmp_path: Path) -> None:
        load = SampleLoad(tmp_path).whole(open_requests=2)
        summary = self._reduced(load)
        assert counts(summary) == COUNTS, unlike(counts(summary), COUNTS, "count each arrival once, by its phase")
        assert not summary.complete and summary.incomplete_reason, (
            unlike(
                (summary.complete, summary.incomplete_reason), (False, "a reason"),
                "lost requests make the summary incomplete, with a reason",
            )
        )
